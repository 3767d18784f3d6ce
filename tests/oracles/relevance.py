"""Relevance by its definition (Skype §3), in plain Python: score, window, the k best, dominance, k-skyband."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log, sqrt

from nearcast.common.geo.distance import haversine_km


@dataclass(frozen=True)
class Post:
    id: int
    ts: int
    lon: float
    lat: float
    terms: tuple[int, ...]  # as often as they are in the text


@dataclass(frozen=True)
class Taste:
    lon: float
    lat: float
    words: frozenset[int]
    alpha: float
    reach: float
    k: int
    posts: int | None = None  # the window: so many posts, or
    length: int | None = None  # so long


@dataclass(frozen=True)
class Statistics:
    posts: int = 0
    counts: tuple[tuple[int, int], ...] = ()

    def idf(self, term: int) -> float:
        return log((1.0 + self.posts) / (1.0 + dict(self.counts).get(term, 0))) + 1.0


def vector(terms: Iterable[int], statistics: Statistics) -> dict[int, float]:
    """tf-idf, of unit length."""
    weights = {term: count * statistics.idf(term) for term, count in sorted(Counter(terms).items())}
    square = 0.0
    for weight in weights.values():
        square += weight * weight
    return {term: weight / sqrt(square) for term, weight in weights.items()}


def score(profile: Taste, post: Post, statistics: Statistics) -> float | None:
    """Equation 1; None where no word is common."""
    if not profile.words & set(post.terms):
        return None
    mine, theirs = vector(profile.words, statistics), vector(post.terms, statistics)
    alike = 0.0
    for term in sorted(mine.keys() & theirs.keys()):
        alike += mine[term] * theirs[term]
    km = haversine_km(profile.lon, profile.lat, post.lon, post.lat)
    near = 1.0 - km / profile.reach if km < profile.reach else 0.0
    return profile.alpha * near + (1.0 - profile.alpha) * alike


def window(posts: Sequence[Post], profile: Taste, clock: int) -> list[Post]:
    """The posts in a subscriber's window: the n greatest by (time, id) of all, or those of (clock - T, clock]."""
    if profile.posts is not None:
        return sorted(posts, key=lambda post: (post.ts, post.id))[-profile.posts :]
    if profile.length is not None:
        return [post for post in posts if clock - profile.length < post.ts <= clock]
    return list(posts)


def best(posts: Sequence[Post], profile: Taste, clock: int, statistics: Statistics) -> list[tuple[float, Post]]:
    """The k best of the window, best first, ties by later time, then by id."""
    scored = [(score(profile, post, statistics), post) for post in window(posts, profile, clock)]
    found = [(value, post) for value, post in scored if value is not None]
    return sorted(found, key=lambda each: (-each[0], -each[1].ts, each[1].id))[: profile.k]


def dominates(first: tuple[float, Post], second: tuple[float, Post]) -> bool:
    """Definition 10, for answers whose ties go to the later, then to the lower id: it comes before the other in any
    answer that has both, and leaves every window after it.
    """
    (score1, post1), (score2, post2) = first, second
    outlives = (post1.ts, post1.id) > (post2.ts, post2.id)
    return outlives and (score1 > score2 or (score1 == score2 and post1.ts > post2.ts))


def skyband(scored: Sequence[tuple[float, Post]], k: int) -> list[tuple[float, Post]]:
    """Definition 11: those that fewer than k others dominate."""
    return [each for each in scored if sum(dominates(other, each) for other in scored) < k]
