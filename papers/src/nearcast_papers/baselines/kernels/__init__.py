"""Numba functions of the baselines."""
