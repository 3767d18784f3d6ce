"""Expired posts, from the Parquet files of the archive: read as far as a question needs, searched as any others."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.common.arrays import arrow, chunk
from nearcast.common.post_schema import attribute_of
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.storage.posts.post_segment import BASE, PostSegment, are_deleted
from nearcast.storage.posts.question import Question

TIME = pa.timestamp("us", tz="UTC")
EARLIEST, LATEST = -(2**62), 2**62


def read_archive(
    path: Path, question: Question, columns: Sequence[str] | None, deletes: pa.Table, tokenizer: Tokenizer
) -> PostSegment:
    """The posts of a file that lie in the question's bounding box and time, as a segment in memory.

    `columns` are the attributes wanted beside those of the question, None for all.
    """
    names = _columns(path, question, columns)
    posts = pq.read_table(path, columns=names, partitioning=None, filters=_filter(question)).combine_chunks()
    posts = posts.set_column(posts.schema.get_field_index("ts"), "ts", posts["ts"].cast(pa.int64()))
    if len(deletes):
        gone = are_deleted(posts["id"].to_numpy(), chunk(posts["id_text"]), deletes)
        posts = posts.filter(arrow(~gone)).combine_chunks()
    terms, offsets = tokenizer.terms(posts["text"])
    lists = pa.ListArray.from_arrays(arrow(offsets.astype(np.int32)), arrow(terms))
    posts = posts.append_column("leaf", arrow(np.zeros(len(posts), np.int32)))
    return PostSegment.of(posts.append_column("terms", lists))


def _columns(path: Path, question: Question, columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    wanted = {*columns}
    looked_at = {*question.attribute_columns}
    needed = []
    for name in pq.read_schema(path).names:
        attribute = attribute_of(name)
        if name in BASE or name in looked_at or (attribute and attribute[0] in wanted):
            needed.append(name)
    return needed


def _filter(question: Question) -> pc.Expression:
    """By which whole row groups are left out, and then single posts."""
    west, south, east, north = question.box
    lon, lat, ts = pc.field("lon"), pc.field("lat"), pc.field("ts")
    since = pa.scalar(max(question.since, EARLIEST), pa.int64()).cast(TIME)
    until = pa.scalar(min(question.until, LATEST), pa.int64()).cast(TIME)
    wanted = (lat >= south) & (lat <= north) & (ts >= since) & (ts < until)
    if west <= east:
        return wanted & (lon >= west) & (lon <= east)
    return wanted & ((lon >= west) | (lon <= east))
