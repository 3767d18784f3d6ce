"""What kernels take of subscribers and of posts: places, and words as vectors of unit length, as named tuples."""

from typing import NamedTuple

import numpy as np


class SubscriberArrays(NamedTuple):
    """Subscribers by row."""

    lon: np.ndarray
    lat: np.ndarray
    alpha: np.ndarray  # 1: nearness alone, 0: words alone
    reach: np.ndarray  # km
    words: np.ndarray  # of each row ascending
    offsets: np.ndarray  # where those of each row begin, and an end
    weights: np.ndarray  # of the words


class PostVectors(NamedTuple):
    """Posts of a batch."""

    lon: np.ndarray
    lat: np.ndarray
    terms: np.ndarray  # of each post ascending
    starts: np.ndarray  # where those of each post begin, and an end
    weights: np.ndarray  # of the terms


class ScoredPairs(NamedTuple):
    """Pairs of a subscriber and a post, to be filled."""

    rows: np.ndarray
    posts: np.ndarray
    scores: np.ndarray
