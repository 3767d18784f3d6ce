"""Numba functions over flat arrays, and nothing else."""
