"""PS2Stream's query sets Q1, Q2 and Q3 (PS2Stream, §VI-A and §VI-C).

A query is a square about the place of a post, with 1 to 3 distinct words joined by AND or by OR.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nearcast.sources.world.stream import World
from nearcast_papers.query_sets.post_sample import PostSample
from nearcast_papers.query_sets.query_tables import (
    BLOCK,
    SCHEMA,
    Floats,
    Integers,
    in_blocks,
    join_words,
    make_distinct,
    query_table,
    square_around,
)

Flags = npt.NDArray[np.bool_]
Source: TypeAlias = "World | pa.Table | PostSample"

SMALLEST_KM, Q1_LARGEST_KM, Q2_LARGEST_KM = 1.0, 50.0, 100.0
REGIONS_A_SIDE = 10
SWITCHED = 10  # regions of Q3 that change sides at every switch


def q1(source: Source, count: int, seed: int = 1, first: int = 0, or_share: float = 0.5) -> pa.Table:
    """Q1: sides of 1-50 km, words as frequent as in the posts."""
    return _queries(source, count, seed, first, or_share, lambda number, lon, lat: np.zeros(len(lon), bool))


def q2(source: Source, count: int, seed: int = 1, first: int = 0, or_share: float = 0.5) -> pa.Table:
    """Q2: sides of 1-100 km, at least one word that is not in the top 1% most frequent."""
    return _queries(source, count, seed, first, or_share, lambda number, lon, lat: np.ones(len(lon), bool))


def q3(
    source: Source, count: int, seed: int = 1, first: int = 0, or_share: float = 0.5, switch_every: int = 10_000_000
) -> pa.Table:
    """Q3: the extent of the posts in 100 equal regions, each with queries like Q1 or like Q2; every `switch_every`
    queries a tenth of the regions change from one to the other."""
    sample = PostSample.of(source)
    return _queries(sample, count, seed, first, or_share, partial(_rare_by_region, sample, seed, switch_every))


def region_of(sample: PostSample, lon: Floats, lat: Floats) -> Integers:
    """Which of the 100 regions of Q3 a place lies in."""
    column, row = (
        np.clip((value - low) / max(high - low, 1e-9) * REGIONS_A_SIDE, 0, REGIONS_A_SIDE - 1).astype(np.int64)
        for value, low, high in (
            (lon, sample.lon.min(), sample.lon.max()),
            (lat, sample.lat.min(), sample.lat.max()),
        )
    )
    region: Integers = row * REGIONS_A_SIDE + column
    return region


def regions_like_q2(seed: int, switches: int) -> Flags:
    """Which regions of Q3 have queries like Q2 after so many switches."""
    rng = np.random.default_rng((seed, 0x0903))
    like_q2: Flags = rng.permutation(REGIONS_A_SIDE**2) % 2 == 0
    for _ in range(switches):
        like_q2[rng.choice(REGIONS_A_SIDE**2, SWITCHED, replace=False)] ^= True
    return like_q2


def _rare_by_region(sample: PostSample, seed: int, switch_every: int, number: int, lon: Floats, lat: Floats) -> Flags:
    switches = np.arange(number * BLOCK, (number + 1) * BLOCK) // switch_every
    region = region_of(sample, lon, lat)
    rare = np.empty(len(lon), bool)
    for switch in np.unique(switches):
        now = switches == switch
        rare[now] = regions_like_q2(seed, int(switch))[region[now]]
    return rare


def _queries(
    source: Source,
    count: int,
    seed: int,
    first: int,
    or_share: float,
    rare: Callable[[int, Floats, Floats], Flags],
) -> pa.Table:
    sample = PostSample.of(source)
    return in_blocks(first, count, SCHEMA, lambda number: _block(sample, seed, or_share, rare, number))


def _block(
    sample: PostSample, seed: int, or_share: float, rare: Callable[[int, Floats, Floats], Flags], number: int
) -> pa.Table:
    rng = np.random.default_rng((seed, 0x0515, number))
    centre = rng.integers(len(sample.lon), size=BLOCK)
    lon, lat = sample.lon[centre], sample.lat[centre]
    like_q2 = rare(number, lon, lat)
    side = SMALLEST_KM + rng.random(BLOCK) * (np.where(like_q2, Q2_LARGEST_KM, Q1_LARGEST_KM) - SMALLEST_KM)
    size = rng.integers(1, 4, BLOCK)
    words = _words(sample, rng, size, like_q2)
    any_word = (rng.random(BLOCK) < or_share) & (size > 1)
    return query_table(number, square_around(lon, lat, side), join_words(sample.words, words, size), any_word)


def _words(sample: PostSample, rng: np.random.Generator, size: Integers, like_q2: Flags) -> npt.NDArray[np.int32]:
    """Three distinct words a query, drawn as often as posts use them; of those that count, one in Q2 is no top word."""

    def draw(count: int) -> npt.NDArray[np.int32]:
        return sample.terms[rng.integers(len(sample.terms), size=count)]

    words = draw(3 * len(size)).reshape(-1, 3)
    make_distinct(words, draw)
    used = np.arange(3) < size[:, None]
    too_frequent = np.flatnonzero(like_q2 & ~((words >= sample.top) & used).any(axis=1))
    uncommon = sample.terms[sample.terms >= sample.top]
    words[too_frequent, 0] = uncommon[rng.integers(len(uncommon), size=len(too_frequent))]
    return words
