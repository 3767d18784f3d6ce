"""Hashing (Skype §7.3.1): each subscriber at one worker by its id, every post to all."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.subscriber_arrays import as_kind, keys_of, one_of, to_all
from nearcast.kinds.relevance.kernels.distribution import dealt
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class Hashing:
    """Equation 14, with ids mixed first, so that ids with a pattern spread too. Replication 1, messages = workers."""

    workers: int
    name: ClassVar[str] = "hashing"
    follows_theta: ClassVar[bool] = False

    @classmethod
    def build(cls, sample: SubscriberSample, workers: int) -> "Hashing":
        return cls(workers)

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        counts = as_kind(np.full(len(profiles), self.workers), np.int64)
        return one_of(dealt(keys_of(profiles, ids), counts), self.workers)

    def targets(self, posts: Vectors) -> np.ndarray:
        return to_all(posts, self.workers)

    def arrays(self) -> Arrays:
        return {}

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "Hashing":
        return cls(workers)
