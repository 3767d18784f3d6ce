"""Keyword (Skype §7.3.3): each worker has a run of words; subscribers and posts go wherever one of theirs is."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import cut_words
from nearcast.kinds.relevance.distributions.word_cut import WordCut
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class Keyword:
    """Replication at most the words of a subscriber, messages at most the words of a post."""

    workers: int
    cut: WordCut
    name: ClassVar[str] = "keyword"
    follows_theta: ClassVar[bool] = False

    @classmethod
    def build(cls, sample: SubscriberSample, workers: int) -> "Keyword":
        one_each = np.ones(workers, np.int64)
        ends = cut_words(len(sample.vocabulary), sample.held(None), sample.posted, one_each)
        return cls(workers, WordCut.whole(sample.vocabulary, ends))

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        ranks = self.cut.vocabulary.ranks(profiles.words)
        return self.cut.of_profiles(profiles, ranks, np.ones(len(ranks), np.bool_), None)

    def targets(self, posts: Vectors) -> np.ndarray:
        return self.cut.of_posts(posts)

    def arrays(self) -> Arrays:
        return self.cut.arrays()

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "Keyword":
        return cls(workers, WordCut.restored(arrays))
