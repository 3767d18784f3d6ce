"""Searching and sorting small arrays. NumPy's own would do, but compiling them takes Numba seconds."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def lower_bound(values, value):
    """The first position in sorted `values` that is not before `value`."""
    low, high = np.int64(0), np.int64(values.size)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def sort_in_place(values, n):
    """Heapsort of the first n values."""
    for begin in range(n // 2 - 1, -1, -1):
        _sift(values, begin, n)
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        _sift(values, 0, end)


@njit(cache=True, nogil=True)
def _sift(values, root, n):
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and values[child] < values[child + 1]:
            child += 1
        if values[root] >= values[child]:
            return
        values[root], values[child] = values[child], values[root]
        root = child
