"""Searching and sorting small arrays. NumPy's own would do, but compiling them takes Numba seconds."""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel


@inlined
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


@kernel
def hashed_bound(values, value):
    """The first position in sorted `values` that is not before `value`. Both are hashes, evenly spread over 64 bits, so
    that a guess comes close and a gallop from it takes few steps.
    """
    n = np.int64(values.size)
    if n == 0:
        return n
    guess = np.int64(np.float64(value) / 18446744073709551616.0 * n)
    guess = guess if guess < n else n - 1
    step = np.int64(8)
    if values[guess] < value:
        low, high = guess + 1, guess + 1 + step
        while high < n and values[high] < value:
            low, step = high + 1, step * 2
            high = low + step
        high = high if high < n else n
    else:
        low, high = guess - step, guess
        while low >= 0 and values[low] >= value:
            high, step = low, step * 2
            low = high - step
        low = low + 1 if low >= 0 else np.int64(0)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def sort_in_place(values, n):
    """Heapsort of the first n values."""
    for begin in range(n // 2 - 1, -1, -1):
        sift(values, begin, n)
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        sift(values, np.int64(0), end)  # a literal would be a type of its own, and compiled for it


@kernel
def sift(values, root, n):
    """Let a value sink to its place in a heap of n values, the greatest on top."""
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
