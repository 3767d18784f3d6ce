"""What distributions are built from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearcast.kinds.relevance.distributions.subscriber_vocabulary import Pairs, SubscriberVocabulary, pairs_of, prefixes
from nearcast.kinds.relevance.vectors import Profiles, Vectors

MOST = 100_000  # subscribers, and posts, that are looked at


@dataclass(frozen=True)
class SubscriberSample:
    """Some subscribers with their theta, some posts, and how often words are in posts."""

    profiles: Profiles
    theta: np.ndarray
    posts: Vectors
    vocabulary: SubscriberVocabulary

    @classmethod
    def of(
        cls, profiles: Profiles, theta: np.ndarray, posts: Vectors, frequency: tuple[np.ndarray, np.ndarray]
    ) -> "SubscriberSample":
        """Of more than MOST, as many at equal steps. Posts without words are left out: nobody looks at them."""
        if len(profiles) > MOST:
            rows = np.linspace(0, len(profiles) - 1, MOST).astype(np.int64)
            profiles, theta = profiles.take(rows), theta[rows]
        worded = np.flatnonzero(np.diff(posts.offsets))
        if len(worded) > MOST:
            worded = worded[np.linspace(0, len(worded) - 1, MOST).astype(np.int64)]
        if len(worded) < len(posts):
            posts = posts.take(worded)
        return cls(profiles, theta, posts, SubscriberVocabulary.of(*frequency))

    @property
    def words_a_post(self) -> float:
        return len(self.posts.terms) / max(len(self.posts), 1)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Of the subscribers' words."""
        return self.vocabulary.ranks(self.profiles.words)

    @cached_property
    def posted(self) -> Pairs:
        """The words of the posts."""
        return pairs_of(self.posts.offsets, self.vocabulary.ranks(self.posts.terms))

    def held(self, by_sum: bool | None) -> Pairs:
        """The words that subscribers are held by: all of them, or those of their loose prefix."""
        chosen = None if by_sum is None else prefixes(self.profiles, self.theta, self.ranks, by_sum)
        return pairs_of(self.profiles.offsets, self.ranks, chosen)
