"""A segment of posts on disk, memory-mapped.

Up to three files hold one: `.arrow` with the arrays of `post_layout`, `.index.arrow` with the sorted fingerprints by
which duplicates are recognised, and `.attributes.arrow`, where posts have attributes, with those in compressed blocks
of ATTRIBUTE_BLOCK rows, of which only those that hold a wanted post are read.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, chunk, frozen, numbers, open_arrays
from nearcast.common.kernels.mix import fingerprints
from nearcast.common.kernels.packing import take_integers, take_places
from nearcast.common.post_schema import no_rows
from nearcast.storage.bundle import Arrays, bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.kernels.check import rows_with_ids
from nearcast.storage.posts.kernels.forward import forward_codes
from nearcast.storage.posts.kernels.segment_arrays import BlockTree, InvertedLists, PostArrays
from nearcast.storage.posts.kernels.texts import decode_texts
from nearcast.storage.posts.kernels.vocabulary import find_terms
from nearcast.storage.posts.post_layout import Vocabulary, lay_out, place_order
from nearcast.storage.subscriptions.rows import is_text

__all__ = ["PostSegment", "Vocabulary", "are_deleted", "chunk", "post_fingerprints", "write_posts"]

SEALED_ROWS = 100_000  # segments of so many posts are worth inverted lists; smaller ones are scanned
ATTRIBUTE_BLOCK = 1024
MANY = 8  # attributes of more than one of so many posts are read as whole columns
BASE = ("id", "id_text", "ts", "lon", "lat", "text")
OWN = frozenset((*BASE, "leaf", "terms"))
TEXT_LIMIT = 1 << 30  # bytes of texts in one Arrow array


def post_fingerprints(table: pa.Table) -> np.ndarray:
    """Equal for a duplicate: the same id, time and place."""
    textual = is_text(chunk(table["id_text"]), len(table))
    return fingerprints(
        chunk(table["id"]).to_numpy(), textual, chunk(table["ts"]).to_numpy(),
        chunk(table["lon"]).to_numpy(), chunk(table["lat"]).to_numpy(),
    )  # fmt: skip


def write_posts(
    path: Path, table: pa.Table, order: np.ndarray | None = None, sealed: bool | None = None
) -> tuple[int, Vocabulary]:
    """Write posts (columns of the model, `leaf` and `terms`) as one segment; returns its size and vocabulary.

    `order` are the rows to write, in the order of a segment; without it all are. Large segments are sealed.
    """
    if order is None:
        order = place_order(table)
    arrays, words = lay_out(table, order, len(order) >= SEALED_ROWS if sealed is None else sealed)
    prints = post_fingerprints(table)
    prints = np.sort(prints if len(order) == len(table) else prints[order])
    size = write_table(path.with_suffix(".arrow"), bundle_table(arrays))
    size += write_table(path.with_suffix(".index.arrow"), bundle_table({"fingerprints": prints}))
    attributes = [name for name in table.column_names if name not in OWN]
    if attributes:
        cold = table.select(attributes).take(arrow(order))
        size += write_table(path.with_suffix(".attributes.arrow"), cold, compression="lz4", rows=ATTRIBUTE_BLOCK)
    return size, words


class PostSegment:
    """Posts by row number. What is read is read when it is asked for; the files stay mapped."""

    def __init__(self, path: Path, arrays: Arrays | None = None, attributes: pa.Table | None = None) -> None:
        """From files, or from arrays already in memory (an archive, tokenised)."""
        self.path = path
        self.arrays = open_arrays(path.with_suffix(".arrow")) if arrays is None else arrays
        facts = self.arrays["facts"].tolist()
        self.rows, self.id_base, self.id_width, self.ts_base, self.ts_width = facts
        self.listed = len(self.arrays["list_starts"]) > 0
        self.sealed = len(self.arrays["rare"]) > 0
        self.times = np.asarray(self.arrays["times"])
        self.id_text: pa.StringArray = self.arrays["id_text"]
        self._attributes = attributes
        self._blocks: pa.ipc.RecordBatchFileReader | None = None
        self._some_blocks: dict[tuple[str, ...], pa.ipc.RecordBatchFileReader] = {}  # of those columns only
        if arrays is None:
            file = path.with_suffix(".attributes.arrow")
            if file.exists():
                self._mapped = pa.memory_map(str(file))
                self._blocks = pa.ipc.open_file(self._mapped)

    @classmethod
    def of(cls, table: pa.Table) -> "PostSegment":
        """A segment in memory: columns as in `post_schema`, `leaf` and `terms`, and attributes."""
        order = place_order(table)
        arrays, _ = lay_out(table, order, sealed=False)
        arrays = {name: frozen(a) if isinstance(a, np.ndarray) else a for name, a in arrays.items()}
        attributes = table.select([name for name in table.column_names if name not in OWN]).take(arrow(order))
        return cls(Path(), arrays, attributes)

    def __len__(self) -> int:
        return self.rows

    # -- what kernels take ---------------------------------------------------------------------------------------------

    @cached_property
    def columns_for_checks(self) -> tuple[np.ndarray | int, ...]:
        """Places, times and words, as the kernels that check rows take them."""
        a = self.arrays
        times = (a["ts"], self.ts_width, self.ts_base)
        return tuple(PostArrays(a["fixed"], a["exact"], *times, a["forward"], a["forward_starts"]))

    @cached_property
    def tree(self) -> tuple[np.ndarray, ...]:
        """The fields of a `BlockTree`."""
        return tuple(BlockTree(self.arrays["boxes"], self.times, self.arrays["levels"]))

    @cached_property
    def inverted(self) -> tuple[np.ndarray, ...]:
        """The fields of `InvertedLists`."""
        names = ("counts", "lists", "list_starts", "skip_first", "skip_rows", "skip_at")
        return tuple(InvertedLists(*(self.arrays[name] for name in names)))

    @property
    def terms(self) -> np.ndarray:
        """The terms by their codes; code 0 is the boundary."""
        return np.asarray(self.arrays["terms"])

    @property
    def counts(self) -> np.ndarray:
        """In how many posts each code occurs."""
        return np.asarray(self.arrays["counts"])

    def codes_of(self, terms: np.ndarray) -> np.ndarray:
        """The code of each term, -1 where no post has it."""
        return find_terms(self.arrays["terms"], self.arrays["by_term"], terms)

    # -- whole columns -------------------------------------------------------------------------------------------------

    @property
    def all_rows(self) -> np.ndarray:
        return np.arange(self.rows)

    @cached_property
    def id(self) -> np.ndarray:
        return self.ids(self.all_rows)

    @cached_property
    def ts(self) -> np.ndarray:
        return self.ts_of(self.all_rows)

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        return self.places(self.all_rows)

    @property
    def lon(self) -> np.ndarray:
        return self._places[0]

    @property
    def lat(self) -> np.ndarray:
        return self._places[1]

    @cached_property
    def leaf(self) -> np.ndarray:
        return np.repeat(self.arrays["leaves"], np.diff(self.arrays["leaf_ends"], prepend=0))

    @cached_property
    def _forward(self) -> tuple[np.ndarray, np.ndarray]:
        return self.posts_codes(self.all_rows)

    @property
    def codes(self) -> np.ndarray:
        """The words of all posts as codes, for scans that check what the index says."""
        return self._forward[0]

    @property
    def offsets(self) -> np.ndarray:
        return self._forward[1]

    @property
    def vocabulary(self) -> Vocabulary:
        """Terms by code, with their counts."""
        return Vocabulary(self.terms, self.counts)

    @property
    def fingerprints(self) -> np.ndarray:
        return np.asarray(open_arrays(self.path.with_suffix(".index.arrow"))["fingerprints"])

    # -- some rows -----------------------------------------------------------------------------------------------------

    def ids(self, rows: np.ndarray) -> np.ndarray:
        return take_integers(self.arrays["id"], self.id_width, self.id_base, rows)

    def id_texts(self, rows: np.ndarray) -> pa.StringArray:
        """The ids that are strings; null where an id is a number."""
        return self.id_text.take(arrow(rows)) if len(self.id_text) else pa.nulls(len(rows), pa.string())

    def ts_of(self, rows: np.ndarray) -> np.ndarray:
        return take_integers(self.arrays["ts"], self.ts_width, self.ts_base, rows)

    def places(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(lon, lat)."""
        return take_places(self.arrays["fixed"], self.arrays["exact"], rows)

    def texts(self, rows: np.ndarray) -> pa.ChunkedArray:
        a = self.arrays
        data, offsets = decode_texts(a["text"], a["text_starts"], a["symbols"], a["symbol_lengths"], rows)
        if offsets[-1] <= TEXT_LIMIT:
            return pa.chunked_array([_strings(data, offsets)])
        cuts = np.unique(np.searchsorted(offsets, np.arange(TEXT_LIMIT, offsets[-1], TEXT_LIMIT), side="right") - 1)
        bounds = np.unique(np.concatenate(([0], cuts, [len(rows)])))
        parts = [_strings(data, offsets[a : b + 1]) for a, b in pairwise(bounds)]
        return pa.chunked_array(parts, pa.string())

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """How many characters each text has; counted where a segment is older than that column."""
        if "length" in self.arrays:
            return self.arrays["length"][rows].astype(np.int64)
        return numbers(chunk(pc.utf8_length(self.texts(rows)))).astype(np.int64)

    def attributes(self, rows: np.ndarray, names: Sequence[str] | None = None) -> pa.Table:
        """The attributes (the named columns, where there are such), in the order of `rows`."""
        if self._blocks is None:
            table = pa.table({}) if self._attributes is None else self._attributes
            held = [name for name in table.column_names if names is None or name in names]
            return table.select(held).take(arrow(rows)) if held else table.select([])
        have = tuple(name for name in self._blocks.schema.names if names is None or name in names)
        if not have:
            return pa.table({})
        some = self._some(have)
        if len(rows) * MANY > self.rows:
            whole = some.read_all()
            return whole if np.array_equal(rows, self.all_rows) else whole.combine_chunks().take(arrow(rows))
        blocks, order = rows // ATTRIBUTE_BLOCK, np.argsort(rows, kind="stable")
        ordered, parts = rows[order], []
        for block, begin, end in _groups(blocks[order]):
            inside = ordered[begin:end] - block * ATTRIBUTE_BLOCK
            parts.append(pa.Table.from_batches([some.get_batch(int(block))]).take(arrow(inside)))
        if not parts:
            return no_rows(some.schema)
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return pa.concat_tables(parts).take(arrow(back))

    @property
    def attribute_columns(self) -> tuple[str, ...]:
        """The columns of attributes that some post may have."""
        if self._blocks is not None:
            return tuple(self._blocks.schema.names)
        return () if self._attributes is None else tuple(self._attributes.column_names)

    def _some(self, names: tuple[str, ...]) -> pa.ipc.RecordBatchFileReader:
        """What reads these columns, and no others, of the blocks."""
        found = self._some_blocks.get(names)
        if found is None:
            assert self._blocks is not None
            at = [self._blocks.schema.get_field_index(name) for name in names]
            found = pa.ipc.open_file(self._mapped, options=pa.ipc.IpcReadOptions(included_fields=at))
            self._some_blocks[names] = found
        return found

    def columns(self, rows: np.ndarray) -> PostColumns:
        """What matching needs of some posts."""
        codes, offsets = self.posts_codes(rows)
        return PostColumns(*self.places(rows), self.ts_of(rows), self.terms[codes], offsets)

    def posts_codes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The words of some posts as the segment numbers them, and where those of each begin."""
        return forward_codes(self.arrays["forward"], self.arrays["forward_starts"], rows)

    def take(self, rows: np.ndarray) -> pa.Table:
        """Whole posts, in the order of `rows`: columns as in `post_schema` and attributes."""
        rows = np.ascontiguousarray(rows, np.int64)
        lon, lat = self.places(rows)
        base = {
            "id": arrow(self.ids(rows)), "id_text": self.id_texts(rows), "ts": arrow(self.ts_of(rows)),
            "lon": arrow(lon), "lat": arrow(lat), "text": self.texts(rows),
        }  # fmt: skip
        more = self.attributes(rows)
        return pa.table({**base, **dict(zip(more.column_names, more.columns, strict=True))})

    def all(self) -> pa.Table:
        """All posts with their leaves and terms, as `write_posts` takes them; terms as numbers into a dictionary, so
        that whoever merges segments need not look up every word again.
        """
        table = self.take(self.all_rows) if self._blocks is None else self._whole()
        codes, offsets = self.posts_codes(self.all_rows)
        terms = pa.DictionaryArray.from_arrays(arrow(codes.view(np.int32)), arrow(self.terms), safe=False)
        lists = pa.ListArray.from_arrays(arrow(offsets.astype(np.int32)), terms)
        return table.append_column("leaf", arrow(self.leaf)).append_column("terms", lists)

    def _whole(self) -> pa.Table:
        assert self._blocks is not None
        more = self._blocks.read_all()
        self._blocks, blocks = None, self._blocks  # take() without its attributes
        try:
            table = self.take(self.all_rows)
        finally:
            self._blocks = blocks
        for name in more.column_names:
            table = table.append_column(name, more[name])
        return table

    # -- deletions -----------------------------------------------------------------------------------------------------

    def deleted(self, deletes: pa.Table) -> np.ndarray:
        """Which posts have one of the ids of `deletes` (columns id, id_text)."""
        out = np.zeros(self.rows, np.bool_)
        out[self.deleted_rows(deletes)] = True
        return out

    def deleted_rows(self, deletes: pa.Table) -> np.ndarray:
        """The rows of those posts, ascending."""
        if not len(deletes):
            return np.empty(0, np.int64)
        wanted = frozen(np.unique(deletes["id"].to_numpy()))
        rows = rows_with_ids(self.arrays["id"], self.id_width, self.id_base, self.rows, wanted)
        return rows[are_deleted(self.ids(rows), self.id_texts(rows), deletes)]


def _strings(data: np.ndarray, offsets: np.ndarray) -> pa.StringArray:
    edges = pa.py_buffer((offsets - offsets[0]).astype(np.int32))
    return pa.StringArray.from_buffers(len(offsets) - 1, edges, pa.py_buffer(data[offsets[0] : offsets[-1]]))


def _groups(values: np.ndarray) -> list[tuple[int, int, int]]:
    """(value, begin, end) of each run of equal neighbours."""
    if not len(values):
        return []
    edges = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1], [True]))).tolist()
    return [(int(values[a]), a, b) for a, b in pairwise(edges)]


def are_deleted(ids: np.ndarray, id_texts: pa.StringArray, deletes: pa.Table) -> np.ndarray:
    """Which ids are among those of `deletes` (columns id, id_text)."""
    if not len(deletes):
        return np.zeros(len(ids), np.bool_)
    out = np.isin(ids, deletes["id"].to_numpy())
    if out.any():  # an integer id and a hash may be equal: the text decides
        hit = np.flatnonzero(out)
        texts = id_texts.take(arrow(hit)).to_pylist()
        wanted = set(zip(deletes["id"].to_pylist(), deletes["id_text"].to_pylist(), strict=True))
        out[hit] = [(int(i), t) in wanted for i, t in zip(ids[hit], texts, strict=True)]
    return out
