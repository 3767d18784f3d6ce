"""A segment of posts: sorted by leaf and along the Z-order curve, words as numbers into its own vocabulary.

Three files hold one: `.arrow` with what searches look at, memory-mapped; `.index.arrow` with the vocabulary and the
sorted fingerprints by which duplicates are recognised; `.text.arrow` with texts and attributes in compressed blocks
of BLOCK rows, of which only those that hold a wanted post are read.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.index.filing import WORLD
from nearcast.index.rows import is_text
from nearcast.index.segment import PostColumns
from nearcast.kernels.mix import fingerprints
from nearcast.kernels.register import z_codes
from nearcast.kernels.terms import decode_terms, encode_terms
from nearcast.state.bundle import bundle_table, open_bundle
from nearcast.state.files import open_table, write_table

BLOCK = 4096
HOT = ("id", "id_text", "ts", "lon", "lat", "leaf", "codes")


@dataclass(frozen=True)
class Vocabulary:
    """The distinct terms of a segment, sorted, and in how many of its posts each occurs."""

    terms: np.ndarray
    counts: np.ndarray


def post_fingerprints(table: pa.Table) -> np.ndarray:
    """Equal for a duplicate: the same id, time and place."""
    textual = is_text(chunk(table["id_text"]), len(table))
    return fingerprints(
        chunk(table["id"]).to_numpy(), textual, chunk(table["ts"]).to_numpy(),
        chunk(table["lon"]).to_numpy(), chunk(table["lat"]).to_numpy(),
    )  # fmt: skip


def chunk(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; no copy where it has one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def write_posts(path: Path, table: pa.Table, order: np.ndarray | None = None) -> tuple[int, Vocabulary]:
    """Write posts (columns of the model, `leaf` and `terms`) as one segment; returns its size and vocabulary."""
    lon, lat = chunk(table["lon"]).to_numpy(), chunk(table["lat"]).to_numpy()
    if order is None:
        order = np.lexsort((z_codes(lon, lat, np.array(WORLD)), chunk(table["leaf"]).to_numpy()))
    table = table.take(pa.array(order))
    terms = chunk(table["terms"])
    offsets = terms.offsets.to_numpy()
    flat = terms.values.to_numpy()
    codes, vocabulary, counts = encode_terms(flat, offsets.astype(np.int64))
    by_term = np.argsort(vocabulary)
    rank = np.empty(len(by_term), np.uint32)
    rank[by_term] = np.arange(len(by_term), dtype=np.uint32)
    coded = pa.ListArray.from_arrays(pa.array(offsets - offsets[0]), pa.array(rank[codes]))
    hot = table.select(["id", "id_text", "ts", "lon", "lat", "leaf"]).append_column("codes", coded)
    cold = table.drop_columns([name for name in ("id", "id_text", "ts", "lon", "lat", "leaf", "terms")])
    words = Vocabulary(vocabulary[by_term], counts[by_term])
    index = {"vocabulary": words.terms, "counts": words.counts, "fingerprints": np.sort(post_fingerprints(hot))}
    size = write_table(path.with_suffix(".arrow"), hot.combine_chunks())
    size += write_table(path.with_suffix(".index.arrow"), bundle_table(index))
    size += write_table(path.with_suffix(".text.arrow"), cold, compression="lz4", rows=BLOCK)
    return size, words


class PostSegment:
    def __init__(self, path: Path) -> None:
        self.path = path
        hot = open_table(path.with_suffix(".arrow"))
        column = {name: chunk(hot[name]) for name in HOT}
        self.id = column["id"].to_numpy()
        self.id_text = column["id_text"]
        self.ts = column["ts"].to_numpy()
        self.lon = column["lon"].to_numpy()
        self.lat = column["lat"].to_numpy()
        self.leaf = column["leaf"].to_numpy()
        self.codes = column["codes"].values.to_numpy()
        self.offsets = column["codes"].offsets.to_numpy()
        self._index = open_bundle(path.with_suffix(".index.arrow"))

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(np.asarray(self._index["vocabulary"]), np.asarray(self._index["counts"]))

    @property
    def fingerprints(self) -> np.ndarray:
        return np.asarray(self._index["fingerprints"])

    @cached_property
    def _blocks(self) -> pa.ipc.RecordBatchFileReader:
        return pa.ipc.open_file(pa.memory_map(str(self.path.with_suffix(".text.arrow"))))

    def columns(self, rows: np.ndarray) -> PostColumns:
        """What matching needs of some posts."""
        terms, offsets = decode_terms(self.codes, self.offsets, self.vocabulary.terms, rows)
        return PostColumns(self.lon[rows], self.lat[rows], self.ts[rows], terms, offsets)

    def take(self, rows: np.ndarray) -> pa.Table:
        """Whole posts, in the order of `rows`: the model's columns and attributes."""
        picked = pa.array(rows)
        base = {"id": pa.array(self.id[rows]), "id_text": self.id_text.take(picked)}
        base |= {name: pa.array(getattr(self, name)[rows]) for name in ("ts", "lon", "lat")}
        cold = self._take_cold(rows)
        return pa.table({**base, **dict(zip(cold.column_names, cold.columns, strict=True))})

    def _take_cold(self, rows: np.ndarray) -> pa.Table:
        blocks, order = rows // BLOCK, np.argsort(rows, kind="stable")
        parts = []
        for block in np.unique(blocks):
            inside = rows[order][blocks[order] == block] - block * BLOCK
            parts.append(pa.Table.from_batches([self._blocks.get_batch(int(block))]).take(pa.array(inside)))
        if not parts:
            return self._blocks.schema.empty_table()
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return pa.concat_tables(parts).take(pa.array(back))

    def all(self) -> pa.Table:
        """All posts with their leaves and terms, as `write_posts` takes them."""
        rows = np.arange(len(self))
        terms, offsets = decode_terms(self.codes, self.offsets, self.vocabulary.terms, rows)
        table = self._blocks.read_all()
        base = pa.table({"id": self.id, "id_text": self.id_text, "ts": self.ts, "lon": self.lon, "lat": self.lat})
        for name in table.column_names:
            base = base.append_column(name, table[name])
        base = base.append_column("leaf", pa.array(self.leaf))
        return base.append_column(
            "terms", pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms))
        )

    def deleted(self, deletes: pa.Table) -> np.ndarray:
        """Which posts have one of the ids of `deletes` (columns id, id_text)."""
        return are_deleted(self.id, self.id_text, deletes)


def are_deleted(ids: np.ndarray, id_texts: pa.StringArray, deletes: pa.Table) -> np.ndarray:
    """Which ids are among those of `deletes` (columns id, id_text)."""
    if not len(deletes):
        return np.zeros(len(ids), np.bool_)
    out = np.isin(ids, deletes["id"].to_numpy())
    if out.any():  # an integer id and a hash may be equal: the text decides
        hit = np.flatnonzero(out)
        texts = id_texts.take(pa.array(hit)).to_pylist()
        wanted = set(zip(deletes["id"].to_pylist(), deletes["id_text"].to_pylist(), strict=True))
        out[hit] = [(int(i), t) in wanted for i, t in zip(ids[hit], texts, strict=True)]
    return out
