"""Prefix (Skype §7.3.4): as keyword, but a subscriber only goes where a word of its loose prefix is."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.sample import SubscriberSample
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import cut_words, prefixes
from nearcast.kinds.relevance.distributions.word_cut import WordCut
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class Prefix:
    """Replication at most the words of a loose prefix, messages at most the words of a post.

    Costs are those of the prefixes in the sample. Theta may rise with nothing done; where it falls, or weights change,
    `protocol.lacking` tells who needs more workers. `by_sum` bounds by the paper's sum of weights (see `prefixes`).
    """

    workers: int
    cut: WordCut
    by_sum: bool = False
    name: ClassVar[str] = "prefix"
    follows_theta: ClassVar[bool] = True

    @classmethod
    def build(cls, sample: SubscriberSample, workers: int, by_sum: bool = False) -> "Prefix":
        one_each = np.ones(workers, np.int64)
        ends = cut_words(len(sample.vocabulary), sample.held(by_sum), sample.posted, one_each)
        return cls(workers, WordCut.whole(sample.vocabulary, ends), by_sum)

    def holders(self, profiles: Profiles, theta: np.ndarray, ids: np.ndarray | None = None) -> np.ndarray:
        ranks = self.cut.vocabulary.ranks(profiles.words)
        return self.cut.of_profiles(profiles, ranks, prefixes(profiles, theta, ranks, self.by_sum), None)

    def targets(self, posts: Vectors) -> np.ndarray:
        return self.cut.of_posts(posts)

    def arrays(self) -> Arrays:
        return {**self.cut.arrays(), "by_sum": np.array([self.by_sum], np.uint8)}

    @classmethod
    def restored(cls, workers: int, arrays: Arrays) -> "Prefix":
        return cls(workers, WordCut.restored(arrays), bool(arrays["by_sum"][0]))
