"""How many workers each of l1 parts has (the hybrids' l1 x l2, Skype §8.2)."""

from math import isqrt

import numpy as np


def shares_of(workers: int, parts: int | None) -> np.ndarray:
    """`parts` numbers that differ by at most 1 and add up to the workers; as many parts as workers in each, about,
    unless given.
    """
    parts = isqrt(workers) if parts is None else min(max(parts, 1), workers)
    return np.diff(np.arange(parts + 1) * workers // parts)


def firsts(shares: np.ndarray) -> np.ndarray:
    """The first worker of each part, and the end."""
    return np.r_[0, np.cumsum(shares)]
