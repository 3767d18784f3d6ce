"""The set that the matching kernel is measured with: uniform places, small squares, words of rank ⌊vocabulary^u⌋."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nearcast_papers.query_sets.query_tables import BLOCK, SCHEMA, in_blocks, join_words, make_distinct, query_table

EXTENT = (-50.0, -50.0, 50.0, 50.0)  # min_lon, min_lat, max_lon, max_lat
SMALLEST_SIDE, LARGEST_SIDE = 0.001, 0.01  # of the extent's
WORDS_A_POST = 8

POSTS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("lon", pa.float64(), nullable=False),
        pa.field("lat", pa.float64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("ranks", pa.list_(pa.int32(), WORDS_A_POST), nullable=False),
    ]
)
QUERIES = SCHEMA.append(pa.field("ranks", pa.list_(pa.int32()), nullable=False))

Ranks = npt.NDArray[np.int32]


def kernel_word(rank: int) -> str:
    """The word that stands for a rank."""
    return f"w{rank}"


def kernel_queries(
    count: int,
    seed: int = 1,
    first: int = 0,
    vocabulary: int = 50_000,
    extent: tuple[float, float, float, float] = EXTENT,
) -> pa.Table:
    """Boxes with sides of 0.1-1% of the extent's, about uniform places, and 1-3 distinct words, all to be contained;
    the columns of a query set and `ranks`, the words as numbers from 1 on."""

    def block(number: int) -> pa.Table:
        rng = np.random.default_rng((seed, 0x4E51, number))
        lon, lat = _places(rng, extent)
        side = rng.uniform(SMALLEST_SIDE, LARGEST_SIDE, BLOCK) / 2
        width, height = side * (extent[2] - extent[0]), side * (extent[3] - extent[1])
        size = rng.integers(1, 4, BLOCK)
        ranks = _ranks(rng, 3, vocabulary)
        used = ranks[np.arange(3) < size[:, None]]
        offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(size, dtype=np.int32)])
        table = query_table(
            number,
            (lon - width, lat - height, lon + width, lat + height),
            join_words(_words(vocabulary), ranks, size),
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(used))
        return table.append_column(QUERIES.field("ranks"), lists)

    return in_blocks(first, count, QUERIES, block)


def kernel_posts(
    count: int,
    seed: int = 1,
    first: int = 0,
    vocabulary: int = 50_000,
    extent: tuple[float, float, float, float] = EXTENT,
) -> pa.Table:
    """Posts at uniform places with 8 distinct words each, as text and as `ranks`."""

    def block(number: int) -> pa.Table:
        rng = np.random.default_rng((seed, 0x4E50, number))
        lon, lat = _places(rng, extent)
        ranks = _ranks(rng, WORDS_A_POST, vocabulary)
        text = join_words(_words(vocabulary), ranks, np.full(BLOCK, WORDS_A_POST))
        lists = pa.FixedSizeListArray.from_arrays(pa.array(ranks.ravel()), WORDS_A_POST)
        ids = pa.array(np.arange(number * BLOCK, (number + 1) * BLOCK))
        return pa.table([ids, pa.array(lon), pa.array(lat), text, lists], schema=POSTS)

    return in_blocks(first, count, POSTS, block)


def _places(
    rng: np.random.Generator, extent: tuple[float, float, float, float]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return rng.uniform(extent[0], extent[2], BLOCK), rng.uniform(extent[1], extent[3], BLOCK)


def _ranks(rng: np.random.Generator, columns: int, vocabulary: int) -> Ranks:
    def draw(count: int) -> Ranks:
        return np.floor(vocabulary ** rng.random(count)).astype(np.int32)

    ranks = draw(BLOCK * columns).reshape(BLOCK, columns)
    make_distinct(ranks, draw)
    return ranks


_WORDS: dict[int, pa.StringArray] = {}


def _words(vocabulary: int) -> pa.StringArray:
    if vocabulary not in _WORDS:
        _WORDS[vocabulary] = pa.array([kernel_word(rank) for rank in range(vocabulary + 1)])
    return _WORDS[vocabulary]
