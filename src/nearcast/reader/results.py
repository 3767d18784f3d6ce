"""The outbox, read in order: each result whole, as a dictionary."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.reader.reader import Reader
from nearcast.reader.row_format import post_rows
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import RESULTS, SegmentRef
from nearcast.storage.outbox import ENTER, KINDS, LATE, LEAVE, REPORT, Results
from nearcast.storage.outbox import RESULTS as RESULT_SCHEMA
from nearcast.storage.posts.derived import DERIVED, with_derived

CHUNK = 4096
POLL = 0.5  # seconds between two looks at the newest manifest

RESULT_COLUMNS = frozenset(RESULT_SCHEMA.names)  # that all results have
ResultRow = dict[str, Any]


def read_results(
    source: Reader | StateDirectory | str | Path, query: str | int | None = None, since_seq: int = 0
) -> Iterator[ResultRow]:
    """The results of one committed batch and all before it, from number `since_seq` on, in order of `seq`.

    Each has `query_id`, `seq`, `batch` and `kind`, then by kind: of a `match`, `post_id`, `ts` (microseconds) and the
    columns of its SELECT (of `*` every field that the post has; its id is `post_id`); of `late`, `post_id` and `ts`;
    of an `answer`, `rows`; of a `report`, `window_end` (microseconds), `rows`, and `skipped` where it stands for so
    many empty ones; of `enter` and `leave`, what a match has, `rank` (the one it has, or had) and what
    its kind ranks by: `distance_km`, or `score` and the version of `idf` that it comes from.
    A `query` given as text stands for the integer id too: '17' and 17.
    """
    reader = source if isinstance(source, Reader) else Reader(source)
    for ref in sorted(reader.manifest.of(RESULTS), key=first_seq):
        if first_seq(ref) + ref.rows > since_seq:
            yield from _of_segment(reader.state, ref, query, since_seq)


def follow_results(
    state: StateDirectory,
    query: str | int | None = None,
    since_seq: int = 0,
    stop: threading.Event | None = None,
    poll: float = POLL,
) -> Iterator[ResultRow]:
    """As `read_results`, and then those of every batch that is committed, until `stop` is set."""
    stop = stop or threading.Event()
    while not stop.is_set():
        manifest = state.newest()
        if manifest.next_seq > since_seq:
            yield from read_results(Reader(state, manifest), query, since_seq)
            since_seq = manifest.next_seq
        stop.wait(poll)


def first_seq(ref: SegmentRef) -> int:
    """The number of a segment's first result."""
    return int(ref.facts["seq"])


def _of_segment(state: StateDirectory, ref: SegmentRef, query: str | int | None, since_seq: int) -> Iterator[ResultRow]:
    results = Results.open(state.path(ref.name))
    rows = np.arange(len(results.table))
    if query is not None:
        rows = np.flatnonzero(_asked_by(results.table, query))
    rows = rows[rows + first_seq(ref) >= since_seq]
    for begin in range(0, len(rows), CHUNK):
        yield from _rows(results, ref, rows[begin : begin + CHUNK])


def _asked_by(table: pa.Table, query: str | int) -> np.ndarray:
    text = table["query_text"]
    mask = pc.fill_null(pc.equal(text, str(query)), False)
    number = _integer(query)
    if number is not None:
        mask = pc.or_(mask, pc.and_(pc.is_null(text), pc.equal(table["query"], number)))
    return np.asarray(mask.to_numpy(), np.bool_)


def _integer(query: str | int) -> pa.Scalar | None:
    try:
        number = int(query)
    except ValueError:
        return None
    return pa.scalar(number, pa.int64()) if -(2**63) <= number < 2**63 else None


def _rows(results: Results, ref: SegmentRef, rows: np.ndarray) -> Iterator[ResultRow]:
    table = results.table.take(pa.array(rows))
    about = table["post"].to_numpy()
    needed = np.unique(about[about >= 0])
    hit = results.posts.take(pa.array(needed))
    posts = dict(zip(needed.tolist(), post_rows(hit), strict=True))
    asked = _derived(table["columns"])
    whole = dict(zip(needed.tolist(), post_rows(with_derived(hit, asked)), strict=True)) if asked else posts
    for seq, record in zip((rows + first_seq(ref)).tolist(), table.to_pylist(), strict=True):
        query_id = record["query"] if record["query_text"] is None else record["query_text"]
        row: ResultRow = {"query_id": query_id, "seq": seq, "batch": record["batch"], "kind": KINDS[record["kind"]]}
        if record["post"] >= 0:
            row |= _about_post((posts if record["columns"] is None else whole)[record["post"]], record)
        if record["rows"] is not None:
            row["rows"] = json.loads(record["rows"])
        if record["kind"] == REPORT:
            rows = record["terms"] if record["terms"] is not None else row.pop("rows")
            row |= {"window_end": record["window_end"], "rows": rows}
            row |= {"skipped": record["skipped"]} if record["skipped"] else {}
        yield row


def _derived(columns: pa.ChunkedArray) -> set[str]:
    """The derived attributes that are among the columns of some results."""
    return {name for each in columns.unique().to_pylist() if each for name in json.loads(each) if name in DERIVED}


def _about_post(post: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """What a result says of its post. Where all columns were asked for, those it lacks are left out: which others there
    are depends on the posts that happen to lie in the same file."""
    about = {"post_id": post["id"], "ts": post["ts"]}
    if record["kind"] == LATE:
        return about
    if record["columns"] is not None:
        more = {name: post.get(name) for name in json.loads(record["columns"])}
    else:
        more = {name: value for name, value in post.items() if name != "id" and value is not None}
    more = {name: value for name, value in more.items() if name not in ("query_id", "seq", "batch", "kind", "post_id")}
    if record["kind"] in (ENTER, LEAVE):
        own = {name: value for name, value in record.items() if name not in RESULT_COLUMNS and value is not None}
        more |= own  # the rank, and what its kind ranks by
    return about | more
