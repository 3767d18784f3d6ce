"""Posts and subscribers for `bench topk`, made as Skype §8.1.1 makes them, and thresholds as buffers have them.

Posts have some nine words of a Zipf vocabulary, and lie in cities. A subscriber is drawn from a post: its place, one to
five of its words, any alpha. Its threshold is the score that `passing` posts of a window of `window` would reach, told
from a sample of posts. All is a function of the seed.
"""

from dataclasses import dataclass, field

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.vectors import Idf, Profiles, Vectors
from nearcast.storage.subscriptions.rows import is_first
from nearcast_papers.baselines.kernels.sample_thresholds import thresholds

HALF_THE_WORLD = 20_015.0


@dataclass(frozen=True)
class PostTexts:
    """Posts as they come: places, and terms as often as they are in the text."""

    lon: np.ndarray
    lat: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.lon)


@dataclass(frozen=True)
class TopkWorld:
    """Where posts come from, and of what words they are made: the r-th comes as often as 1 / (r + flattened), which is
    some 12 where the commonest words are left out, and 1 in raw text.
    """

    seed: int = 0
    vocabulary: int = 300_000
    cities: int = 2_000
    words: int = 9
    flattened: float = 12.0
    _parts: dict[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng((self.seed, 1))
        share = 1.0 / (np.arange(self.vocabulary) + self.flattened)
        self._parts["words"] = np.cumsum(share) / share.sum()
        self._parts["terms"] = rng.integers(1, 2**64 - 1, self.vocabulary, dtype=np.uint64)
        size = 1.0 / (np.arange(self.cities) + 5.0)
        self._parts["size"] = np.cumsum(size) / size.sum()
        self._parts["lon"] = rng.uniform(-180.0, 180.0, self.cities)
        self._parts["lat"] = np.degrees(np.arcsin(rng.uniform(-0.6, 0.95, self.cities)))

    def texts(self, count: int, part: int) -> PostTexts:
        """So many posts; another `part` gives others of the same kind."""
        rng = np.random.default_rng((self.seed, 2, part))
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(1 + rng.poisson(self.words - 1, count), out=offsets[1:])
        words = np.searchsorted(self._parts["words"], rng.random(offsets[-1]))
        city = np.searchsorted(self._parts["size"], rng.random(count))
        lon = self._parts["lon"][city] + rng.normal(0.0, 0.15, count)
        lat = np.clip(self._parts["lat"][city] + rng.normal(0.0, 0.12, count), -90.0, 90.0)
        return PostTexts((lon + 180.0) % 360.0 - 180.0, lat, self._parts["terms"][words], offsets)


def statistics(texts: PostTexts) -> Idf:
    """In how many of the posts each term is."""
    owner = np.repeat(np.arange(len(texts)), np.diff(texts.offsets))
    order = np.lexsort((owner, texts.terms))
    term, who = texts.terms[order], owner[order]
    once = is_first(term) | is_first(who)
    terms, counts = np.unique(term[once], return_counts=True)
    return Idf(1, len(texts), frozen(terms), frozen(counts.astype(np.int64)))


def vectors(texts: PostTexts, idf: Idf) -> Vectors:
    return Vectors.of(texts.lon, texts.lat, texts.terms, texts.offsets, idf)


def subscribers(texts: PostTexts, idf: Idf, seed: int, words: tuple[int, int] = (1, 5), k: int = 20) -> Profiles:
    """One of every post: its place and some of its words, their number drawn from `words`, both ends included."""
    rng = np.random.default_rng((seed, 3))
    terms, offsets, _ = idf.weigh(texts.terms, texts.offsets)
    sizes = np.diff(offsets)
    wanted = np.minimum(rng.integers(words[0], words[1] + 1, len(texts)), sizes)
    owner = np.repeat(np.arange(len(texts)), sizes)
    order = np.lexsort((rng.random(len(terms)), owner))
    place = np.arange(len(terms)) - np.repeat(offsets[:-1], sizes)
    picked = order[place < wanted[owner]]
    starts = np.concatenate(([0], np.cumsum(wanted)))
    own, ends, weights = idf.weigh(terms[picked], starts)
    n = len(texts)
    return Profiles(
        texts.lon,
        texts.lat,
        rng.random(n),
        np.full(n, HALF_THE_WORLD),
        np.full(n, k, np.int64),
        own,
        ends,
        weights,
    )


def sampled_theta(profiles: Profiles, sample: Vectors, passing: float = 55.0, window: int = 1_000_000) -> np.ndarray:
    """The threshold of each subscriber, at which about `passing` of `window` posts pass; told from the sample."""
    rank = max(1, round(passing * len(sample) / window))
    owner = np.repeat(np.arange(len(sample)), np.diff(sample.offsets))
    order = np.argsort(sample.terms, kind="stable")
    ordered = sample.terms[order]
    begins = np.flatnonzero(is_first(ordered))
    found: np.ndarray = thresholds(
        profiles.lon,
        profiles.lat,
        profiles.alpha,
        profiles.reach,
        profiles.words,
        profiles.offsets,
        profiles.weights,
        sample.lon,
        sample.lat,
        sample.terms,
        sample.offsets,
        sample.weights,
        frozen(ordered[begins]),
        frozen(np.append(begins, len(ordered))),
        frozen(owner[order]),
        rank,
    )
    return found


@dataclass(frozen=True)
class TopkWorkload:
    """Subscribers with thresholds, and posts that come to them."""

    profiles: Profiles
    theta: np.ndarray
    posts: Vectors


def workload(
    count: int, posts: int = 2_000, sample: int = 36_000, seed: int = 0, flattened: float = 12.0
) -> TopkWorkload:
    """The paper's defaults: 1-5 words, k = 20, window 1 M."""
    world = TopkWorld(seed, flattened=flattened)
    idf = statistics(world.texts(200_000, 0))
    profiles = subscribers(world.texts(count, 1), idf, seed)
    theta = sampled_theta(profiles, vectors(world.texts(sample, 2), idf))
    return TopkWorkload(profiles, theta, vectors(world.texts(posts, 3), idf))
