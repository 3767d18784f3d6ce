"""The newest posts, so many of them: what `WINDOW n POSTS` of a search holds."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import frozen
from nearcast.common.kernels.mix import fingerprints
from nearcast.common.op_schema import BEGINNING
from nearcast.reader.reader import OpenSegment, Reader
from nearcast.storage.manifest import ARCHIVE, SegmentRef
from nearcast.storage.posts.post_segment import PostSegment, post_fingerprints
from nearcast.storage.posts.question import NOTHING
from nearcast.storage.subscriptions.rows import is_text


@dataclass(frozen=True)
class Cut:
    """Posts from `since` on, but some of that moment: `outside` are their fingerprints (sorted), and `rows` of segments
    by name where they lie.
    """

    since: int
    outside: np.ndarray
    rows: dict[str, np.ndarray]

    def hidden(self, each: OpenSegment) -> np.ndarray:
        """The rows of a segment that do not count (ascending): deleted ones, and those that the cut leaves out."""
        left_out = self.rows.get(each.ref.name, NOTHING)
        if each.ref.kind == ARCHIVE and len(self.outside) and each.ref.min_ts <= self.since <= each.ref.max_ts:
            rows = np.flatnonzero(each.segment.ts == self.since)
            left_out = rows[np.isin(_prints_of(each.segment, rows), self.outside)]
        return frozen(np.union1d(each.gone, left_out).astype(np.int64)) if len(left_out) else each.gone


TIED = pa.schema(
    [("id", pa.int64()), ("id_text", pa.string()), ("ts", pa.int64()), ("lon", pa.float64()), ("lat", pa.float64())]
)
EVERYTHING = Cut(BEGINNING, np.empty(0, np.uint64), {})


def newest_posts(reader: Reader, count: int) -> Cut:
    """The `count` greatest posts by (time, id) of those kept and archived. A deleted post has its place among them for
    as long as its file has it.
    """
    return reader.once(("relevance", "newest posts", count), lambda: _newest(reader, count))


def _newest(reader: Reader, count: int) -> Cut:
    refs = reader.refs
    if sum(ref.rows for ref in refs) <= count:
        return EVERYTHING
    # The count-th greatest time lies between the greatest bounds from which on so many posts must, or may, be.
    low = _reached(sorted(((ref.min_ts, ref.rows) for ref in refs), reverse=True), count)
    high = _reached(sorted(((ref.max_ts, ref.rows) for ref in refs), reverse=True), count)
    inside = sum(ref.rows for ref in refs if ref.min_ts > high)
    doubtful = [ref for ref in refs if ref.min_ts <= high and ref.max_ts >= low]
    columns = [_times(reader, ref) for ref in doubtful]
    ts = np.concatenate(columns)
    wanted = count - inside  # of the doubtful ones
    since = int(np.partition(ts, len(ts) - wanted)[len(ts) - wanted])
    left = wanted - int((ts > since).sum())  # of those at that moment
    same = [ref for ref, times in zip(doubtful, columns, strict=True) if (times == since).any()]
    tied = pa.concat_tables([_tied(reader, ref, since) for ref in same])
    keys = [("id_text", "ascending", "at_start"), ("number", "ascending"), ("lon", "ascending"), ("lat", "ascending")]
    order = np.asarray(pc.sort_indices(tied, keys))
    tied = tied.take(pa.array(np.sort(order[: len(order) - left])))
    names, rows = np.array(tied["segment"].to_pylist(), object), np.asarray(tied["row"])
    own = {ref.name: frozen(rows[names == ref.name]) for ref in same if ref.kind != ARCHIVE}
    return Cut(since, np.sort(post_fingerprints(tied)), own)


def _reached(bounds: list[tuple[int, int]], count: int) -> int:
    """The bound at which so many rows are reached."""
    total = 0
    for bound, rows in bounds:
        total += rows
        if total >= count:
            return bound
    raise AssertionError("there are more rows than that")


def _times(reader: Reader, ref: SegmentRef) -> np.ndarray:
    if ref.kind == ARCHIVE:
        return np.asarray(_archived(reader, ref, ["ts"])["ts"])
    segment = reader.files.segment(ref.name)
    return segment.ts_of(segment.all_rows)


def _tied(reader: Reader, ref: SegmentRef, moment: int) -> pa.Table:
    """The posts of one moment; `number` is the id of those whose id is no text."""
    rows = np.flatnonzero(_times(reader, ref) == moment)
    if ref.kind == ARCHIVE:
        table = _archived(reader, ref, TIED.names).select(TIED.names).take(pa.array(rows)).cast(TIED)
    else:
        segment = reader.files.segment(ref.name)
        columns = [segment.ids(rows), segment.id_texts(rows), segment.ts_of(rows), *segment.places(rows)]
        table = pa.table(columns, schema=TIED)
    number = pc.if_else(pc.is_valid(table["id_text"]), 0, table["id"])
    where = {"number": number, "segment": pa.array([ref.name] * len(rows), pa.string()), "row": pa.array(rows)}
    for name, values in where.items():
        table = table.append_column(name, values)
    return table


def _archived(reader: Reader, ref: SegmentRef, columns: list[str]) -> pa.Table:
    import pyarrow.parquet as pq

    table = pq.read_table(reader.state.path(ref.name, ".parquet"), columns=columns, partitioning=None).combine_chunks()
    return table.set_column(table.schema.get_field_index("ts"), "ts", table["ts"].cast(pa.int64()))


def _prints_of(segment: PostSegment, rows: np.ndarray) -> np.ndarray:
    columns = (segment.ts_of(rows), *segment.places(rows))
    textual = is_text(segment.id_texts(rows), len(rows))
    return fingerprints(*(frozen(segment.ids(rows)), textual, *(frozen(column) for column in columns)))
