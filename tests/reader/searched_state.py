"""States made of segments of every kind, without a pipeline: sealed, fresh, archived; with deletions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.sources.records import normalise
from nearcast.storage.deletes import SCHEMA as DELETED
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import create_exclusively, write_parquet, write_table
from nearcast.storage.manifest import ARCHIVE, DELETES, POSTS, TERMS, Manifest, SegmentRef, path_of
from nearcast.storage.posts.post_segment import Vocabulary, write_posts
from nearcast.storage.term_table import TermTable

SEALED, FRESH, ARCHIVED = "sealed", "fresh", "archived"
Post = dict[str, Any]


def table_of(posts: Sequence[Post]) -> pa.Table:
    """Posts (ts in microseconds) as the columns of the model."""
    tables = []
    for post in posts:
        record = {**post, "ts": post["ts"] // 1000}
        table, rejects = normalise(pa.Table.from_pylist([record]))
        assert not len(rejects), rejects.to_pylist()
        tables.append(table)
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def with_words(table: pa.Table, leaves: int = 3) -> pa.Table:
    """The columns that `write_posts` takes."""
    terms, offsets = Tokenizer().terms(table["text"])
    leaf = (np.abs(table["lon"].to_numpy()) / 181 * leaves).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms))
    return table.append_column("leaf", pa.array(leaf)).append_column("terms", lists)


def make_state(root: Path, parts: Sequence[tuple[str, Sequence[Post]]], deleted: Sequence[int | str] = ()) -> Path:
    """One segment for each part, in batches 0, 1, …; then, in a last batch, deletions."""
    state = StateDirectory(root)
    state.create({})
    refs = [_segment(state, batch, kind, posts) for batch, (kind, posts) in enumerate(parts) if posts]
    texts = [post.get("text") or "" for _, posts in parts for post in posts]
    refs.append(_dictionary(state, texts))
    if deleted:
        refs.append(_deletes(state, deleted, len(parts)))
    times = [post["ts"] for _, posts in parts for post in posts]
    manifest = Manifest(version=1, batch=len(parts), clock=max(times, default=None), segments=tuple(refs))
    create_exclusively(path_of(state.manifests, 1), manifest.to_json())
    return root


def _segment(state: StateDirectory, batch: int, kind: str, posts: Sequence[Post]) -> SegmentRef:
    table = table_of(posts)
    ts = table["ts"].to_numpy()
    bounds = {"min_ts": int(ts.min()), "max_ts": int(ts.max())}
    if kind == ARCHIVED:
        name = f"archive/slot={batch}/posts"
        times = table["ts"].cast(pa.timestamp("us", tz="UTC"))
        archived = table.set_column(table.schema.get_field_index("ts"), "ts", times)
        size = write_parquet(state.path(name, ".parquet"), archived)
        return SegmentRef(ARCHIVE, name, len(table), size, batch, **bounds)
    name = state.new_name(POSTS, batch, 0)
    size, words = write_posts(state.path(name), with_words(table), sealed=kind == SEALED)
    assert isinstance(words, Vocabulary)
    return SegmentRef(POSTS, name, len(table), size, batch, **bounds)


def _dictionary(state: StateDirectory, texts: Sequence[str]) -> SegmentRef:
    column = pa.array(texts, pa.string())
    terms = np.unique(Tokenizer().terms(column)[0])
    found, words = Tokenizer().words_of(column, terms)
    order = np.argsort(found)
    table = TermTable(found[order], np.ones(len(found), np.uint64), pa.array(words, pa.string()).take(pa.array(order)))
    name = state.new_name(TERMS, 0, 0)
    return SegmentRef(TERMS, name, len(found), table.write(state.path(name)), 0)


def _deletes(state: StateDirectory, ids: Sequence[int | str], batch: int) -> SegmentRef:
    known = table_of([{"id": each, "ts": 0, "lon": 0.0, "lat": 0.0, "text": ""} for each in ids])
    table = known.select(["id", "id_text"]).append_column("batch", pa.array(np.full(len(ids), batch))).cast(DELETED)
    name = state.new_name(DELETES, batch, 0)
    size = write_table(state.path(name), table)
    return SegmentRef(DELETES, name, len(table), size, batch, min_ts=BEGINNING, max_ts=BEGINNING)
