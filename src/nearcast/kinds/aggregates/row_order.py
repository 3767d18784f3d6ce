"""The order of rows by several whole numbers each."""

from collections.abc import Sequence
from math import prod

import numpy as np

MANY = 1_000  # rows; of fewer, to look at the numbers takes longer than to sort them
ROOM = 16  # places for each row, that are sooner looked through than the rows sorted
LARGEST = 1 << 62


def in_order(keys: Sequence[np.ndarray]) -> np.ndarray:
    """The rows by the first of the keys, ties by the second and so on, as they were where all are equal.

    Many rows are sorted by one number each that stands for all its keys, where there is such; if such numbers are few
    for so many rows, and all different, each row goes to its place.
    """
    count = len(keys[0])
    if count < MANY:
        return np.lexsort(keys[::-1])
    lows = [int(key.min()) for key in keys]
    spans = [int(key.max()) - low + 1 for key, low in zip(keys, lows, strict=True)]
    total = prod(spans)
    if total > LARGEST:
        return np.lexsort(keys[::-1])
    joined = np.zeros(count, np.int64)
    for key, low, span in zip(keys, lows, spans, strict=True):
        joined = joined * span + (key - low)
    if total <= ROOM * count:
        at = np.full(total, -1)
        at[joined] = np.arange(count)
        placed = at[at >= 0]
        if len(placed) == count:
            return placed
    return np.argsort(joined, kind="stable")
