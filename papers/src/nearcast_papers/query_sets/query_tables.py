"""What all query sets share: their columns, their blocks, and boxes on the globe."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.sources.world.geography import KM_PER_DEGREE

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Boxes = tuple[Floats, Floats, Floats, Floats]  # min_lon, min_lat, max_lon, max_lat

BLOCK = 1 << 15

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("min_lon", pa.float64(), nullable=False),
        pa.field("min_lat", pa.float64(), nullable=False),
        pa.field("max_lon", pa.float64(), nullable=False),
        pa.field("max_lat", pa.float64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("overlaps", pa.string()),
    ]
)


def in_blocks(first: int, count: int, schema: pa.Schema, block: Callable[[int], pa.Table]) -> pa.Table:
    """The rows [first, first + count) of an endless table, of which `block` makes BLOCK rows at a time."""
    if first < 0 or count < 0:
        raise BadInput(f"rows are counted from 0: cannot make {count} from number {first} on")
    tables = [schema.empty_table()]
    for number in range(first // BLOCK, -(-(first + count) // BLOCK) if count else 0):
        begin, end = max(first, number * BLOCK), min(first + count, (number + 1) * BLOCK)
        tables.append(block(number).slice(begin - number * BLOCK, end - begin))
    return pa.concat_tables(tables)


def query_table(
    number: int, box: Boxes, text: pa.StringArray, any_word: npt.NDArray[np.bool_] | None = None
) -> pa.Table:
    """A block of queries; where `any_word` is true the words are `overlaps`, else `text`."""
    ids = np.arange(number * BLOCK, (number + 1) * BLOCK)
    none = pa.nulls(BLOCK, pa.string())
    either = pa.array(np.zeros(BLOCK, bool) if any_word is None else any_word)
    columns = [ids, *box, pc.if_else(either, none, text), pc.if_else(either, text, none)]
    return pa.table([pa.array(column) for column in columns], schema=SCHEMA)


def join_words(words: pa.StringArray, rows: npt.NDArray[np.int32], size: Integers) -> pa.StringArray:
    """The first `size[i]` words of each row, with a blank between them."""
    used = np.arange(rows.shape[1]) < size[:, None]
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(size, dtype=np.int32)])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), words.take(pa.array(rows[used]))), " ")


def make_distinct(rows: npt.NDArray[np.int32], draw: Callable[[int], npt.NDArray[np.int32]]) -> None:
    """Draws again, in place, until no row has a value twice; there must be enough different values to draw."""
    while True:
        again = np.zeros(rows.shape, bool)
        for later in range(1, rows.shape[1]):
            again[:, later] = (rows[:, :later] == rows[:, later : later + 1]).any(axis=1)
        missing = int(again.sum())
        if not missing:
            return
        rows[again] = draw(missing)


def box_around(lon: Floats, lat: Floats, width: Floats, height: Floats) -> Boxes:
    """Boxes of a width and height in degrees about their middles: cut off at the poles, and with min_lon > max_lon
    where they cross the antimeridian."""
    whole = width >= 360
    west, east = lon - width / 2, lon + width / 2
    west = np.where(whole, -180.0, np.where(west < -180, west + 360, west))
    east = np.where(whole, 180.0, np.where(east > 180, east - 360, east))
    return west, np.maximum(lat - height / 2, -90.0), east, np.minimum(lat + height / 2, 90.0)


def square_around(lon: Floats, lat: Floats, side_km: Floats) -> Boxes:
    """Squares of a side in km about their middles."""
    height = side_km / KM_PER_DEGREE
    return box_around(lon, lat, height / np.maximum(np.cos(np.radians(lat)), 1e-3), height)
