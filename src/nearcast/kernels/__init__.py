"""Numba functions over flat arrays, and nothing else: the hot loops of every other package."""
