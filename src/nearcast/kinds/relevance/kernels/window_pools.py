"""Pools of the best posts found so far, one for each subscriber."""

import numpy as np

from nearcast.common.kernels.compiled import kernel

FULL = -1  # the size of a pool that could not hold all ties


@kernel
def keep_best(scores, numbers, size, n, spare):
    """Drop all but the n best and what ties with the last of them: (how many are left, the score of the last)."""
    if size < n or n <= 0:
        return size, -1.0
    spare[:size] = scores[:size]
    low, high, at = 0, size - 1, n - 1
    while low < high:  # quickselect, greatest first
        pivot = spare[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while spare[i] > pivot:
                i += 1
            while spare[j] < pivot:
                j -= 1
            if i <= j:
                spare[i], spare[j] = spare[j], spare[i]
                i += 1
                j -= 1
        if at <= j:
            high = j
        elif at >= i:
            low = i
        else:
            break
    last = spare[at]
    left = 0
    for i in range(size):
        if scores[i] >= last:
            scores[left], numbers[left] = scores[i], numbers[i]
            left += 1
    return left, last


@kernel
def make_room(scores, numbers, limits, spare, i, size, n):
    """Leave the best of a subscriber's full pool: (how many there are now, the score that a post needs from now on)."""
    size, floor = keep_best(scores[i], numbers[i], size, n, spare)
    limits[i] = min(scores.shape[1], max(limits[i], 2 * size))
    if size == limits[i]:
        return FULL, np.inf
    return size, floor


@kernel
def after(scores, numbers, i, j, base, ts, order):
    """Whether a post comes after another in an answer."""
    if scores[i] != scores[j]:
        return scores[i] < scores[j]
    first, second = numbers[i] - base, numbers[j] - base
    if ts[first] != ts[second]:
        return ts[first] < ts[second]
    return order[first] > order[second]


@kernel
def _sift(scores, numbers, root, size, base, ts, order):
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and after(scores, numbers, child + 1, child, base, ts, order):
            child += 1
        if not after(scores, numbers, child, root, base, ts, order):
            return
        scores[root], scores[child] = scores[child], scores[root]
        numbers[root], numbers[child] = numbers[child], numbers[root]
        root = child


@kernel
def finish(pool, sizes, n, base, ts, order):
    """Leave the n best of each pool and what ties with the last, in answer order (a heapsort). A full pool stays."""
    scores, numbers, _, spare = pool
    for i in range(sizes.size):
        if sizes[i] == FULL:
            continue
        size, _ = keep_best(scores[i], numbers[i], sizes[i], n[i], spare)
        sizes[i] = size
        for root in range(size // 2 - 1, -1, -1):
            _sift(scores[i], numbers[i], root, size, base, ts, order)
        for last in range(size - 1, 0, -1):
            scores[i, 0], scores[i, last] = scores[i, last], scores[i, 0]
            numbers[i, 0], numbers[i, last] = numbers[i, last], numbers[i, 0]
            _sift(scores[i], numbers[i], 0, last, base, ts, order)
