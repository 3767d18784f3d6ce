"""Location (Skype §7.3.2): each subscriber at the worker of its leaf of a kd-tree, every post to all."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.kd import KdTree
from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.subscriber_arrays import keys_of, one_of, to_all
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class Location:
    """Neighbours are together, so that each worker's index has tight bounds on nearness. A post may score by its words
    alone wherever it is, so it goes to all. Replication 1, messages = workers.
    """

    workers: int
    tree: KdTree
    name: ClassVar[str] = "location"
    follows_theta: ClassVar[bool] = False

    @classmethod
    def build(cls, sample: SubscriberSample, workers: int) -> "Location":
        profiles, posts = sample.profiles, sample.posts
        one_each = np.ones(workers, np.int64)
        return cls(workers, KdTree.of((profiles.lon, profiles.lat), (posts.lon, posts.lat), one_each))

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        return one_of(self.tree.slots(profiles.lon, profiles.lat, keys_of(profiles, ids)), self.workers)

    def targets(self, posts: Vectors) -> np.ndarray:
        return to_all(posts, self.workers)

    def arrays(self) -> Arrays:
        return dict(self.tree.__dict__)

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "Location":
        return cls(workers, KdTree(**arrays))
