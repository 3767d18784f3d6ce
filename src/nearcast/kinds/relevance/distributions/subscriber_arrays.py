"""Arrays as the kernels of distributions take them, keys of subscribers, and posts that all workers look at."""

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.kernels.distribution import profile_keys
from nearcast.kinds.relevance.vectors import Profiles, Vectors


def as_kind(array: np.ndarray, kind: type) -> np.ndarray:
    """Of one type and read-only, so that each kernel is compiled for one kind of array."""
    return frozen(np.ascontiguousarray(array, kind))


def keys_of(profiles: Profiles, ids: np.ndarray | None) -> np.ndarray:
    """What a subscriber is dealt by: its id, or else what it asks for."""
    if ids is not None:
        return as_kind(np.ascontiguousarray(ids).astype(np.int64).view(np.uint64), np.uint64)
    lon, lat, alpha = (as_kind(each, np.float64) for each in (profiles.lon, profiles.lat, profiles.alpha))
    return frozen(
        profile_keys(lon, lat, alpha, as_kind(profiles.words, np.uint64), as_kind(profiles.offsets, np.int64))
    )


def to_all(posts: Vectors, workers: int) -> np.ndarray:
    """Every post that has words goes to every worker."""
    return np.repeat((np.diff(posts.offsets) > 0)[:, None], workers, axis=1)


def one_of(slots: np.ndarray, count: int) -> np.ndarray:
    """bool[rows, count] with one slot a row."""
    out = np.zeros((len(slots), count), np.bool_)
    out[np.arange(len(slots)), slots] = True
    return out
