"""Spatial-first (Skype §8.2): location into l1 parts, and in each of them prefix over its own workers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.kd import COLUMNS, KdTree
from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.shares import firsts, shares_of
from nearcast.kinds.relevance.distributions.subscriber_arrays import keys_of
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import cut_words, prefixes
from nearcast.kinds.relevance.distributions.word_cut import WordCut
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class SpatialFirst:
    """A subscriber is held in its part only, a post goes to every part, there to the workers that have its words."""

    workers: int
    tree: KdTree
    words: WordCut
    name: ClassVar[str] = "spatial-first"
    follows_theta: ClassVar[bool] = True

    @classmethod
    def build(cls, sample: SubscriberSample, workers: int, parts: int | None = None) -> "SpatialFirst":
        profiles, posts = sample.profiles, sample.posts
        shares = shares_of(workers, parts)
        tree = KdTree.of((profiles.lon, profiles.lat), (posts.lon, posts.lat), shares)
        part = tree.slots(profiles.lon, profiles.lat, keys_of(profiles, None))
        rows, ranks = sample.held(by_sum=False)
        ends = []
        for number, share in enumerate(shares):
            own = part[rows] == number
            one_each = np.ones(share, np.int64)
            ends.append(cut_words(len(sample.vocabulary), (rows[own], ranks[own]), sample.posted, one_each))
        return cls(workers, tree, WordCut(sample.vocabulary, firsts(shares), np.concatenate(ends)))

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        part = self.tree.slots(profiles.lon, profiles.lat, keys_of(profiles, ids))
        ranks = self.words.vocabulary.ranks(profiles.words)
        return self.words.of_profiles(profiles, ranks, prefixes(profiles, theta, ranks, by_sum=False), part)

    def targets(self, posts: Vectors) -> np.ndarray:
        return self.words.of_posts(posts)

    def arrays(self) -> Arrays:
        return {**self.words.arrays(), **self.tree.__dict__}

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "SpatialFirst":
        tree = KdTree(*(arrays[name] for name in COLUMNS))
        return cls(workers, tree, WordCut.restored(arrays))
