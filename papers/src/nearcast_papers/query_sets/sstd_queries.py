"""SSTD's query set (SSTD, §7.1): a region of a given share of the space about a post, and some of its words."""

import numpy as np
import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.sources.world.stream import World
from nearcast_papers.query_sets.post_sample import PostSample
from nearcast_papers.query_sets.query_tables import (
    BLOCK,
    SCHEMA,
    Integers,
    box_around,
    in_blocks,
    join_words,
    query_table,
)

WORLD = (-180.0, -90.0, 180.0, 90.0)


def sstd(
    source: World | pa.Table | PostSample,
    count: int,
    seed: int = 1,
    first: int = 0,
    words: tuple[int, int] = (1, 1),
    area_share: float = 0.0001,
    side_scale: float = 1.0,
    extent: tuple[float, float, float, float] = WORLD,
) -> pa.Table:
    """Range queries made from sampled posts.

    The region has the shape of the extent and `area_share` of its area (in degrees), then its sides are multiplied by
    `side_scale`; it is cut off at the poles only. `words` is the fewest and the most words taken, all of one post; a
    post with fewer gives all it has.
    """
    if not 1 <= words[0] <= words[1] <= 3:
        raise BadInput(f"a query of this set has 1 to 3 words, not {words[0]} to {words[1]}")
    if not (area_share > 0 and side_scale > 0):
        raise BadInput(f"area_share and side_scale must be above 0, not {area_share} and {side_scale}")
    sample = PostSample.of(source)
    side = area_share**0.5 * side_scale
    width, height = (extent[2] - extent[0]) * side, (extent[3] - extent[1]) * side

    def block(number: int) -> pa.Table:
        rng = np.random.default_rng((seed, 0x557D, number))
        post = rng.integers(len(sample.lon), size=BLOCK)
        start, known = sample.start[post], np.diff(sample.start)[post]
        size = np.minimum(rng.integers(words[0], words[1] + 1, BLOCK), known)
        chosen = sample.terms[start[:, None] + _three_of(rng, known)]
        box = box_around(sample.lon[post], sample.lat[post], np.full(BLOCK, width), np.full(BLOCK, height))
        return query_table(number, box, join_words(sample.words, chosen, size))

    return in_blocks(first, count, SCHEMA, block)


def _three_of(rng: np.random.Generator, known: Integers) -> Integers:
    """Three different numbers below each of `known` at random, or, where it is below 3, as many as there are first."""
    first = (rng.random(len(known)) * known).astype(np.int64)
    second = (rng.random(len(known)) * np.maximum(known - 1, 1)).astype(np.int64)
    third = (rng.random(len(known)) * np.maximum(known - 2, 1)).astype(np.int64)
    second += second >= first
    low, high = np.minimum(first, second), np.maximum(first, second)
    third += third >= low
    third += third >= high
    three: Integers = np.minimum(np.stack([first, second, third], axis=1), known[:, None] - 1)
    return three
