"""Hashing (Skype §7.3.1): each subscriber at one worker by its id, every post to all."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.arrays import as_kind, keys_of, one_of, to_all
from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import Sample
from nearcast.kinds.relevance.kernels.distribution import dealt
from nearcast.kinds.relevance.vectors import Tastes, Vectors


@dataclass(frozen=True)
class Hashing:
    """Equation 14, with ids mixed first, so that ids with a pattern spread too. Replication 1, messages = workers."""

    workers: int
    name: ClassVar[str] = "hashing"
    follows_theta: ClassVar[bool] = False

    @classmethod
    def build(cls, sample: Sample, workers: int) -> "Hashing":
        return cls(workers)

    def holders(self, tastes: Tastes, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        counts = as_kind(np.full(len(tastes), self.workers), np.int64)
        return one_of(dealt(keys_of(tastes, ids), counts), self.workers)

    def targets(self, posts: Vectors) -> np.ndarray:
        return to_all(posts, self.workers)

    def arrays(self) -> Arrays:
        return {}

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "Hashing":
        return cls(workers)
