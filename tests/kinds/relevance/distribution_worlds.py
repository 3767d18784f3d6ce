"""Worlds of subscribers and posts for distributions: random ones, and such that one could break on."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from math import inf
from random import Random

import numpy as np

from nearcast.kinds.relevance.distributions.protocol import Distribution
from nearcast.kinds.relevance.distributions.registry import build
from nearcast.kinds.relevance.vectors import Idf, Profiles, Vectors
from tests.oracles.relevance import Post, Statistics, Taste, score

World = tuple[list[Taste], list[Post]]
EDGES = [(-180.0, 0.0), (180.0, 0.0), (0.0, 90.0), (17.0, 90.0), (0.0, -90.0), (-0.0, -0.0), (0.0, 0.0)]


def some_word(random: Random, words: int) -> int:
    """Low numbers often, high ones seldom; spread over 64 bits as terms are."""
    return (1 + int(words * random.random() ** 3)) * 0x9E3779B97F4A7C15 % 2**64


def crowd(random: Random, words: int = 30, subscribers: int = 60, posts: int = 60) -> World:
    def place() -> tuple[float, float]:
        if random.random() < 0.15:
            return random.choice(EDGES)
        return random.choice((10.0, 10.5, random.uniform(-180, 180))), random.choice((50.0, random.uniform(-90, 90)))

    profiles = [
        Taste(
            *place(), frozenset(some_word(random, words) for _ in range(random.randint(1, 5))),
            random.choice((0.0, 1.0, 0.5, random.random())), random.choice((1.0, 300.0, 20_100.0)), 3,
        )
        for _ in range(subscribers)
    ]  # fmt: skip
    return profiles, [
        Post(i, i, *place(), tuple(some_word(random, words) for _ in range(random.randint(0, 9)))) for i in range(posts)
    ]


def one_word() -> World:
    return [Taste(i, i, frozenset({7}), i / 9, 500.0, 3) for i in range(10)], [
        Post(i, i, i, -i, (7,)) for i in range(10)
    ]


def one_point() -> World:
    profiles, posts = crowd(Random(4))
    return [Taste(5.0, 6.0, t.words, t.alpha, t.reach, t.k) for t in profiles], [
        Post(p.id, p.ts, 5.0, 6.0, p.terms) for p in posts
    ]


def posts_alike() -> World:
    profiles, _ = crowd(Random(5))
    words = tuple(sorted(profiles[0].words | profiles[1].words))
    return profiles, [Post(i, i, 10.0, 50.0, words) for i in range(20)]


def subscribers_alike() -> World:
    profiles, posts = crowd(Random(6))
    return profiles[:1] * 30, posts


def few_words() -> World:
    return crowd(Random(7), words=3)


WORLDS: dict[str, Callable[[], World]] = {
    "crowded": lambda: crowd(Random(1)),
    "many words": lambda: crowd(Random(2), words=2000),
    "one word": one_word,
    "one point": one_point,
    "posts alike": posts_alike,
    "subscribers alike": subscribers_alike,
    "fewer words than workers": few_words,
    "no posts": lambda: (crowd(Random(8))[0], []),
    "no subscribers": lambda: ([], crowd(Random(9))[1]),
    "nothing": lambda: ([], []),
}


class Cast:
    """A world as the distributions take it, with the score of every pair by definition."""

    def __init__(self, world: World, seed: int = 0) -> None:
        profiles, posts = world
        counts = Counter(term for post in posts for term in set(post.terms))
        statistics = Statistics(len(posts), tuple(sorted(counts.items())))
        self.scores = np.array(
            [[score(t, p, statistics) for p in posts] for t in profiles], float
        )  # nan: no common word
        self.scores = self.scores.reshape(len(profiles), len(posts))
        self.frequency = np.array(sorted(counts), np.uint64), np.array([counts[term] for term in sorted(counts)])
        idf = Idf(0, len(posts), *self.frequency)
        self.profiles = Profiles(
            *(np.array([getattr(t, name) for t in profiles], float) for name in ("lon", "lat", "alpha", "reach")),
            np.array([t.k for t in profiles], np.int64), *idf.weigh(*flat([sorted(t.words) for t in profiles])),
        )  # fmt: skip
        self.posts = Vectors.of(
            *(np.array([getattr(p, name) for p in posts], float) for name in ("lon", "lat")),
            *flat([list(p.terms) for p in posts]), idf,
        )  # fmt: skip
        self.theta = np.array([self.some_theta(row, Random(f"{seed} {row}")) for row in range(len(profiles))])

    def some_theta(self, row: int, random: Random) -> float:
        """Often the score of a post exactly, which then is still wanted."""
        scores = self.scores[row][~np.isnan(self.scores[row])].tolist()
        return random.choice([0.0, inf, random.random(), *sorted(scores)[-6:], *sorted(scores)[-3:]])

    def build(self, name: str, workers: int, **options: int) -> Distribution:
        return build(name, self.profiles, self.theta, self.posts, workers, self.frequency, **options)


@cache
def cast_of(world: str) -> Cast:
    return Cast(crowd(Random(3), 200, subscribers=200, posts=100) if world == "large" else WORLDS[world]())


def flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([x for each in lists for x in each], np.uint64), np.cumsum([0, *map(len, lists)])


def hold(distribution: Distribution, cast: Cast, ids: np.ndarray | None = None) -> int:
    """Check the guarantee, and that masks have their shapes; how many pairs there were."""
    holders, targets = distribution.holders(cast.profiles, cast.theta, ids), distribution.targets(cast.posts)
    assert holders.shape == (len(cast.profiles), distribution.workers) and holders.dtype == np.bool_
    assert targets.shape == (len(cast.posts), distribution.workers) and targets.dtype == np.bool_
    assert holders.any(axis=1).all()
    assert np.array_equal(targets.any(axis=1), np.diff(cast.posts.offsets) > 0)
    wanted = cast.scores >= cast.theta[:, None]
    together = holders.astype(int) @ targets.T.astype(int) > 0
    assert not (wanted & ~together).any()
    return int(wanted.sum())
