"""Attributes that follow from what every post has (STAR §3.1: extracted or derived attributes).

`date`, `hour` and `minute` are the start of the post's day, hour and minute (UTC), `weekday` is 1 (Monday) to 7,
`length` the number of characters of its text, and `cell` the name of the grid cell it lies in: its geohash of five
characters, a square of 45/1024 degrees. Each is a few instructions on columns that a search reads anyway, so they take
no disk and are there for posts that were stored before anyone asked; only the length is kept, in a byte or two a post,
because counting means decoding the text.

A post's own value of that name wins, post by post: so an answer does not depend on which segment a post lies in.
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, chunk, numbers
from nearcast.common.post_schema import ATTRIBUTE_KINDS, attribute_column, attribute_of
from nearcast.storage.posts.post_segment import PostSegment

DERIVED: dict[str, str] = {"date": "t", "hour": "t", "minute": "t", "weekday": "i", "length": "i", "cell": "s"}

MINUTE = 60_000_000
SPANS = {"date": 1440 * MINUTE, "hour": 60 * MINUTE, "minute": MINUTE}
THURSDAY = 3  # weekday of the epoch, counted from 0

CELL_SIDE = 45 / 1024  # degrees, exact as a double: 2^13 columns and 2^12 rows of cells
COLUMNS, ROWS = 1 << 13, 1 << 12
LETTERS = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)


def derive(segment: PostSegment, rows: np.ndarray, name: str) -> pa.Array:
    """The derived values `name` of some posts of a segment, as if no post had its own."""
    if name == "length":
        return arrow(segment.lengths(rows))
    if name == "cell":
        return cell_names(*segment.places(rows))
    return _of_time(name, segment.ts_of(rows))


def derive_from(posts: pa.Table, name: str) -> pa.Array:
    """The same of a table with columns as in `post_schema`."""
    if name == "length":
        return chunk(pc.utf8_length(posts["text"]).fill_null(0)).cast(pa.int64())
    if name == "cell":
        return cell_names(numbers(chunk(posts["lon"])), numbers(chunk(posts["lat"])))
    return _of_time(name, numbers(chunk(posts["ts"])))


def attributes_of(segment: PostSegment, rows: np.ndarray, names: Collection[str]) -> pa.Table:
    """The attributes with these names, stored or derived, as columns of the model; never a table that forgets its
    length.
    """
    wanted = [attribute_column(name, kind) for name in names for kind in ATTRIBUTE_KINDS]
    found = segment.attributes(rows, wanted)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {"": pa.nulls(len(rows))}
    columns |= zip(found.column_names, found.columns, strict=True)
    return pa.table(_completed(columns, names, lambda name: derive(segment, rows, name)))


def with_derived(posts: pa.Table, names: Collection[str]) -> pa.Table:
    """Posts (columns as in `post_schema`) and those of the derived attributes that are named."""
    if not any(name in DERIVED for name in names):
        return posts
    columns = dict(zip(posts.column_names, posts.columns, strict=True))
    return pa.table(_completed(columns, names, lambda name: derive_from(posts, name)))


def _completed(
    columns: dict[str, pa.Array | pa.ChunkedArray], names: Collection[str], value: Callable[[str], pa.Array]
) -> Mapping[str, pa.Array | pa.ChunkedArray]:
    """The columns and the derived ones among `names`, null where a post has its own value of another kind."""
    for name in names:
        if name not in DERIVED:
            continue
        own = {kind: column for column in columns if (kind := _kind_of(column, name))}
        made, target = value(name), attribute_column(name, DERIVED[name])
        for kind, column in own.items():
            if kind != DERIVED[name]:
                made = pc.if_else(pc.is_valid(columns[column]), pa.scalar(None, made.type), made)
        columns[target] = pc.coalesce(columns[target], made) if target in columns else made
    return columns


def _kind_of(column: str, name: str) -> str | None:
    attribute = attribute_of(column)
    return attribute[1] if attribute is not None and attribute[0] == name else None


def _of_time(name: str, ts: np.ndarray) -> pa.Array:
    if name == "weekday":
        return arrow((ts // SPANS["date"] + THURSDAY) % 7 + 1)
    span = SPANS[name]
    return arrow(ts // span * span).cast(ATTRIBUTE_KINDS["t"])


def cell_names(lon: np.ndarray, lat: np.ndarray) -> pa.StringArray:
    """The geohash of each place. A cell has its western and southern edges; the last ones also that at 180 or 90."""
    across = np.minimum(_steps(lon) + COLUMNS // 2, COLUMNS - 1)
    up = np.minimum(_steps(lat) + ROWS // 2, ROWS - 1)
    bits = _spread(across) | _spread(up) << 1  # the longitude begins, and has a bit more
    letters = np.empty((len(lon), 5), np.uint8)
    for i in range(5):
        letters[:, i] = LETTERS[bits >> (20 - 5 * i) & 31]
    edges = np.arange(0, 5 * len(lon) + 5, 5, dtype=np.int32)
    return pa.StringArray.from_buffers(len(lon), pa.py_buffer(edges), pa.py_buffer(letters))


def _steps(degrees: np.ndarray) -> np.ndarray:
    """Whole cells from 0: exact, as edges of cells are doubles and a quotient next to one may be rounded to it."""
    steps = np.floor(degrees / CELL_SIDE)
    steps -= steps * CELL_SIDE > degrees
    return steps.astype(np.int32)


def _spread(values: np.ndarray) -> np.ndarray:
    """The bits of numbers below 2^16 with a gap after each."""
    for shift, kept in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        values = (values | values << shift) & kept
    return values
