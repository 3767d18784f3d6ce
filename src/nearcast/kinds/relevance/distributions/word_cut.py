"""A vocabulary that is cut into runs of words, in one way or in one for each part of space."""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import freeze
from nearcast.kinds.relevance.distributions.protocol import Arrays
from nearcast.kinds.relevance.distributions.subscriber_arrays import as_kind
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import SubscriberVocabulary
from nearcast.kinds.relevance.kernels.distribution import mark
from nearcast.kinds.relevance.vectors import Profiles, Vectors


@dataclass(frozen=True)
class WordCut:
    """Part p has the slots first[p] to first[p + 1]; slot i has the words whose rank is below ends[i], of which no slot
    of its part before it has any. A term that is not known belongs to the slot that its hash says.
    """

    vocabulary: SubscriberVocabulary
    first: np.ndarray
    ends: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def whole(cls, vocabulary: SubscriberVocabulary, ends: np.ndarray) -> "WordCut":
        """One cut everywhere."""
        return cls(vocabulary, np.array([0, len(ends)]), ends)

    @property
    def slots(self) -> int:
        return len(self.ends)

    def of_profiles(
        self, profiles: Profiles, ranks: np.ndarray, chosen: np.ndarray, part: np.ndarray | None
    ) -> np.ndarray:
        """bool[subscribers, slots]: those of their chosen words; the first of their part where they have no word."""
        part = np.zeros(len(profiles), np.int64) if part is None else part
        out = np.zeros((len(profiles), self.slots), np.bool_)
        self._mark(profiles.offsets, profiles.words, ranks, chosen, part, out)
        bare = np.flatnonzero(np.diff(profiles.offsets) == 0)
        out[bare, self.first[part[bare]]] = True
        return out

    def of_posts(self, posts: Vectors) -> np.ndarray:
        """bool[posts, slots]: those that have one of its words, in every part."""
        out = np.zeros((len(posts), self.slots), np.bool_)
        ranks = self.vocabulary.ranks(posts.terms)
        every = np.ones(len(ranks), np.bool_)
        for part in range(len(self.first) - 1):
            self._mark(posts.offsets, posts.terms, ranks, every, np.full(len(posts), part), out)
        return out

    def _mark(
        self,
        offsets: np.ndarray,
        terms: np.ndarray,
        ranks: np.ndarray,
        chosen: np.ndarray,
        part: np.ndarray,
        out: np.ndarray,
    ) -> None:
        mark(
            as_kind(offsets, np.int64), as_kind(terms, np.uint64), as_kind(ranks, np.int64), as_kind(chosen, np.bool_),
            as_kind(part, np.int64), as_kind(self.first, np.int64), as_kind(self.ends, np.int64), out,
        )  # fmt: skip

    def arrays(self) -> Arrays:
        words = {"known": self.vocabulary.known, "rank": self.vocabulary.rank}
        return {**words, "first": self.first, "ends": self.ends}

    @classmethod
    def restored(cls, arrays: Arrays) -> "WordCut":
        return cls(SubscriberVocabulary(arrays["known"], arrays["rank"]), arrays["first"], arrays["ends"])
