"""Subscribers and posts for the suite of matchers: as the oracle has them, and as columns."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from nearcast.kinds.relevance.vectors import Idf, Profiles, Vectors
from tests.oracles.relevance import Post, Statistics, Taste

TERMS = (3, 5, 8, 13, 2**40, 2**63 + 1, 2**64 - 1)
PLACES = ((0.0, 0.0), (0.001, 0.0), (10.0, 50.0), (180.0, 0.0), (-180.0, 0.0), (179.9, 1.0), (77.0, 90.0), (-3.0, 90.0),
          (5.0, -90.0), (-170.0, 89.9), (12.5, 48.1))  # fmt: skip
STATISTICS = Statistics(1000, ((3, 900), (5, 400), (8, 40), (13, 3), (2**40, 1)))

places = st.one_of(st.sampled_from(PLACES), st.tuples(st.floats(-180, 180), st.floats(-90, 90)))
alphas = st.one_of(st.sampled_from((0.0, 0.5, 1.0)), st.floats(0, 1))
reaches = st.one_of(st.sampled_from((1e-3, 1.0, 700.0, 20015.2)), st.floats(0.1, 20015.2))
posts = st.builds(
    lambda place, terms: Post(0, 0, place[0], place[1], tuple(terms)),
    places,
    st.lists(st.sampled_from(TERMS), max_size=9),
)
profiles = st.builds(
    lambda place, words, alpha, reach: Taste(place[0], place[1], words, alpha, reach, 1),
    places,
    st.frozensets(st.sampled_from(TERMS), min_size=1, max_size=5),
    alphas,
    reaches,
)


@dataclass(frozen=True)
class Columns:
    idf: Idf

    def vectors(self, posts: list[Post]) -> Vectors:
        return Vectors.of(
            np.array([p.lon for p in posts], float),
            np.array([p.lat for p in posts], float),
            *self.lists([p.terms for p in posts]),
            self.idf,
        )

    def profiles(self, profiles: list[Taste]) -> Profiles:
        names = ("lon", "lat", "alpha", "reach")
        plain = {name: np.array([getattr(t, name) for t in profiles], float) for name in names}
        words, offsets, weights = self.idf.weigh(*self.lists([tuple(t.words) for t in profiles]))
        k = np.array([t.k for t in profiles], np.int64)
        return Profiles(**plain, k=k, words=words, offsets=offsets, weights=weights)

    @staticmethod
    def lists(lists: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
        flat = np.array([term for terms in lists for term in terms], np.uint64)
        return flat, np.concatenate(([0], np.cumsum([len(terms) for terms in lists]))).astype(np.int64)


def columns(statistics: Statistics = STATISTICS) -> Columns:
    pairs = sorted(statistics.counts)
    terms = np.array([term for term, _ in pairs], np.uint64)
    return Columns(Idf(1, statistics.posts, terms, np.array([count for _, count in pairs], np.int64)))


def crowd(seed: int, count: int, terms: int, towns: int = 12) -> tuple[Profiles, np.ndarray]:
    """Many subscribers of few words, in towns, some of them on the same spot; and thresholds of all sizes."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(-180, 180, towns), np.degrees(np.arcsin(rng.uniform(-1, 1, towns)))
    town = rng.integers(towns, size=count)
    spread = rng.choice((0.0, 0.1, 3.0), count)
    alpha = rng.choice((0.0, 1.0, -1.0), count, p=(0.05, 0.05, 0.9))
    alpha = np.where(alpha < 0, rng.random(count), alpha)
    words, offsets = zipf_lists(rng, count, terms, 5)
    theta = np.minimum(alpha * rng.uniform(0.3, 1.0, count) + (1 - alpha) * rng.beta(2, 2, count), 2.0)
    theta = np.where(rng.random(count) < 0.05, rng.choice((0.0, np.inf), count), theta)
    idf = small_idf(terms)
    profiles = Profiles(
        np.clip(lon[town] + rng.normal(0, 1, count) * spread, -180, 180),
        np.clip(lat[town] + rng.normal(0, 1, count) * spread, -90, 90),
        alpha,
        rng.choice((1.0, 50.0, 3000.0, 20015.2), count),
        np.ones(count, np.int64),
        *idf.weigh(words, offsets),
    )
    return profiles, theta


def stream(seed: int, count: int, terms: int, profiles: Profiles) -> Vectors:
    """Posts near subscribers."""
    rng = np.random.default_rng((seed, 1))
    at = rng.integers(len(profiles), size=count)
    shift = rng.normal(0, 1, (2, count)) * rng.choice((0.0, 0.05, 2.0), count)
    lists = zipf_lists(rng, count, terms, 9)
    return Vectors.of(
        np.clip(profiles.lon[at] + shift[0], -180, 180), np.clip(profiles.lat[at] + shift[1], -90, 90), *lists,
        small_idf(terms),
    )  # fmt: skip


def zipf_lists(rng: np.random.Generator, count: int, terms: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    sizes = rng.integers(1, most + 1, count)
    share = 1.0 / (np.arange(terms) + 2.0)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return 1 + rng.choice(terms, offsets[-1], p=share / share.sum()).astype(np.uint64), offsets


def small_idf(terms: int) -> Idf:
    counts = (20_000 / (np.arange(terms) + 2.0)).astype(np.int64)
    return Idf(1, 20_000, np.arange(1, terms + 1, dtype=np.uint64), counts)
