"""A state directory opened for reading."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.index.attributes import satisfied
from nearcast.index.posts import PostSegment, are_deleted, chunk
from nearcast.kernels.scan import scan_posts
from nearcast.language import check_search, encode_query, parse
from nearcast.model.errors import BadInput
from nearcast.model.ops import BEGINNING
from nearcast.model.posts import BASE_FIELDS
from nearcast.model.queries import RangeQuery
from nearcast.reader.rows import post_rows
from nearcast.state.deletes import deletes_for
from nearcast.state.directory import StateDirectory
from nearcast.state.manifest import ARCHIVE, POSTS, Manifest, SegmentRef
from nearcast.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Found:
    """The answer of a search: posts, newest first, ties by id; and how many candidates were looked at."""

    posts: pa.Table
    columns: tuple[str, ...] | None
    candidates_checked: int
    segments_opened: int

    def __len__(self) -> int:
        return len(self.posts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(post_rows(self.posts, self.columns))

    def to_arrow(self) -> pa.Table:
        """The rows as a table: `id` is a number where all ids are, else a string; `ts` a time."""
        table = self.posts
        texts = table["id_text"]
        ids = table["id"] if texts.null_count == len(table) else pc.coalesce(texts, table["id"].cast(pa.string()))
        out = {"id": ids, "ts": table["ts"].cast(pa.timestamp("us", tz="UTC"))}
        out |= {name: table[name] for name in ("lon", "lat", "text")}
        by_name: dict[str, list[str]] = {}
        for name in table.column_names:
            if ":" in name:
                by_name.setdefault(name.rpartition(":")[0], []).append(name)
        for name, columns in by_name.items():
            out[name] = (
                table[columns[0]]
                if len(columns) == 1
                else pc.coalesce(*(pc.cast(table[c], pa.string()) for c in columns))
            )
        whole = pa.table(out)
        if self.columns is None:
            return whole
        missing = pa.nulls(len(whole))
        return pa.table({name: whole[name] if name in out else missing for name in self.columns})

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()


class Reader:
    """Searches over one manifest. Every answer is exact for the batch that the manifest committed."""

    def __init__(self, state: StateDirectory | str | Path, manifest: Manifest | None = None) -> None:
        self.state = state if isinstance(state, StateDirectory) else StateDirectory(state)
        self.manifest = manifest or self.state.newest()
        self._segments: dict[str, PostSegment] = {}

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(keep_accents=bool(self.manifest.settings.get("keep_accents")))

    def search(self, sql: str) -> Found:
        """Answer a `SELECT` from the posts kept and archived."""
        statement = parse(sql, self.tokenizer)
        check_search(statement)
        if self.manifest.settings.get("keep") == "none":
            raise BadInput("this state keeps no posts (--keep none): there is nothing to search")
        return self.range(statement.query)

    def range(self, query: RangeQuery) -> Found:
        clock = BEGINNING if self.manifest.clock is None else self.manifest.clock
        encoded = encode_query(query, clock)
        since, until = encoded["since"], encoded["until"]
        parts, candidates, opened = [pa.schema(BASE_FIELDS).empty_table()], 0, 0
        refs = [*self.manifest.of(POSTS), *self.manifest.of(ARCHIVE)]
        for ref in sorted(refs, key=lambda ref: -ref.max_ts):
            if ref.max_ts < since or ref.min_ts >= until:
                continue
            posts, looked = (self._scan_archive if ref.kind == ARCHIVE else self._scan)(ref, encoded)
            candidates += looked
            opened += 1
            if len(posts):
                parts.append(posts)
            since = self._narrowed(since, parts, query.limit)
        posts = pa.concat_tables(parts, promote_options="default")
        newest_first = [("ts", "descending"), ("id_text", "ascending", "at_start"), ("id", "ascending")]
        order = pc.sort_indices(posts, newest_first)
        posts = posts.take(order[: query.limit] if query.limit is not None else order)
        return Found(posts, query.columns, candidates, opened)

    @staticmethod
    def _narrowed(since: int, parts: list[pa.Table], limit: int | None) -> int:
        """With enough newer posts in hand, older segments need not be opened."""
        if limit is None or sum(len(part) for part in parts) < limit or limit == 0:
            return since
        ts = np.concatenate([part["ts"].to_numpy() for part in parts])
        return max(since, int(np.partition(ts, len(ts) - limit)[len(ts) - limit]))

    def _scan(self, ref: SegmentRef, encoded: dict[str, Any]) -> tuple[pa.Table, int]:
        segment = self._segments.get(ref.name)
        if segment is None:
            segment = self._segments[ref.name] = PostSegment(self.state.path(ref.name))
        rows, looked = scan_posts(
            segment.lon, segment.lat, segment.ts, segment.codes, segment.offsets, segment.vocabulary.terms,
            0, len(segment), *scan_arguments(encoded),
        )  # fmt: skip
        rows = rows[~segment.deleted(deletes_for(self.state, self.manifest, ref))[rows]]
        posts = segment.take(rows)
        if encoded["predicates"]:
            posts = posts.filter(pa.array(satisfied(encoded["predicates"], posts)))
        return posts, looked

    def _scan_archive(self, ref: SegmentRef, encoded: dict[str, Any]) -> tuple[pa.Table, int]:
        posts = pq.read_table(self.state.path(ref.name, ".parquet"), partitioning=None)
        posts = posts.set_column(
            posts.schema.get_field_index("ts"), "ts", posts["ts"].cast(pa.int64())
        ).combine_chunks()
        terms, offsets = self.tokenizer.terms(posts["text"])
        vocabulary, codes = np.unique(terms, return_inverse=True)
        rows, looked = scan_posts(
            posts["lon"].to_numpy(), posts["lat"].to_numpy(), posts["ts"].to_numpy(),
            codes.astype(np.uint32), offsets.astype(np.int32), vocabulary, 0, len(posts), *scan_arguments(encoded),
        )  # fmt: skip
        posts = posts.take(pa.array(rows)).combine_chunks()
        deletes = deletes_for(self.state, self.manifest, ref)
        posts = posts.filter(pa.array(~are_deleted(posts["id"].to_numpy(), chunk(posts["id_text"]), deletes)))
        if encoded["predicates"]:
            posts = posts.filter(pa.array(satisfied(encoded["predicates"], posts)))
        return posts, looked


def scan_arguments(encoded: dict[str, Any]) -> tuple[Any, ...]:
    return (
        encoded["region_kind"], encoded["min_lon"], encoded["min_lat"], encoded["max_lon"], encoded["max_lat"],
        np.array(encoded["shape"], np.float64), np.array(encoded["code"], np.uint64),
        np.int64(encoded["since"]), np.int64(encoded["until"]),
    )  # fmt: skip
