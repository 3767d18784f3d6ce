"""What relevance (Skype §3) is worked out from: subscribers, posts as vectors, and the idf of a version."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Protocol

import numpy as np

from nearcast.common.arrays import freeze, frozen
from nearcast.kinds.relevance.kernels.score import rarities, weigh
from nearcast.kinds.relevance.kernels.vector_arrays import SubscriberArrays
from nearcast.storage.subscriptions.rows import take_lists


class Numbered(Protocol):
    """What is asked of a ledger: ts and order of the posts with numbers base, base + 1, …"""

    @property
    def base(self) -> int: ...
    @property
    def ts(self) -> np.ndarray: ...
    @property
    def order(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Idf:
    """Term statistics of one version: `posts` were counted, and term[i] (sorted) is in `count[i]` of them.

    The idf of a term in n of N posts is ln((1 + N) / (1 + n)) + 1: never 0, and 1 for all terms where N is 0.
    """

    version: int
    posts: int
    term: np.ndarray
    count: np.ndarray

    @classmethod
    def none(cls) -> "Idf":
        """Before any post was counted: all words weigh the same."""
        return cls(0, 0, frozen(np.empty(0, np.uint64)), frozen(np.empty(0, np.int64)))

    def rarity(self) -> np.ndarray:
        return self._rarity

    @cached_property
    def _rarity(self) -> np.ndarray:
        return frozen(rarities(np.float64(self.posts), frozen(self.count.astype(np.float64))))

    @property
    def unknown(self) -> float:
        """The idf of a term that was never counted."""
        return log(1.0 + self.posts) + 1.0

    def weigh(self, terms: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(terms, offsets, weights) of texts given by their terms: see `kinds.relevance.kernels.score.weigh`."""
        offsets = frozen(offsets.astype(np.int64))
        return weigh(frozen(terms), offsets, frozen(self.term), self.rarity(), self.unknown)


@dataclass(frozen=True)
class Vectors:
    """Posts: where they are, and their distinct terms (ascending) with weights of unit length, of one version."""

    lon: np.ndarray
    lat: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.lon)

    @classmethod
    def of(cls, lon: np.ndarray, lat: np.ndarray, terms: np.ndarray, offsets: np.ndarray, idf: Idf) -> "Vectors":
        return cls(lon, lat, *idf.weigh(terms, offsets))

    @classmethod
    def join(cls, parts: Sequence["Vectors"]) -> "Vectors":
        """Posts end to end."""
        sizes = [np.diff(part.offsets) for part in parts]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *sizes]))]).astype(np.int64)
        floats = [np.concatenate([np.empty(0), *(getattr(p, n) for p in parts)]) for n in ("lon", "lat", "weights")]
        terms = np.concatenate([np.empty(0, np.uint64), *(part.terms for part in parts)])
        return cls(floats[0], floats[1], terms, offsets, floats[2])

    def take(self, rows: np.ndarray) -> "Vectors":
        weights, _ = take_lists(self.weights, self.offsets, rows)
        terms, offsets = take_lists(self.terms, self.offsets, rows)
        return Vectors(self.lon[rows], self.lat[rows], terms, offsets, weights)


@dataclass(frozen=True)
class Profiles:
    """Subscribers: place, alpha (1: nearness alone, 0: words alone), reach in km, k, and their words as a vector
    (distinct terms ascending, weights of unit length, of one version).
    """

    lon: np.ndarray
    lat: np.ndarray
    alpha: np.ndarray
    reach: np.ndarray
    k: np.ndarray
    words: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.lon)

    @property
    def for_kernels(self) -> SubscriberArrays:
        columns = (self.lon, self.lat, self.alpha, self.reach)
        return SubscriberArrays(*columns, self.words, self.offsets, self.weights)

    def take(self, rows: np.ndarray) -> "Profiles":
        weights, _ = take_lists(self.weights, self.offsets, rows)
        words, offsets = take_lists(self.words, self.offsets, rows)
        lon, lat, alpha, reach, k = (getattr(self, name)[rows] for name in ("lon", "lat", "alpha", "reach", "k"))
        return Profiles(lon, lat, alpha, reach, k, words, offsets, weights)
