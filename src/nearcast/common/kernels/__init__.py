"""Numba functions that several packages share. Kernels import NumPy, Numba and other kernels, nothing else."""
