"""The ledger of a manifest as arrays over the numbers of its posts, and what of them a window holds.

`order` grows with (time, id): a window, of so many posts or of so long, is a bound on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.ledger_file import NUMBER, LedgerPart
from nearcast.kinds.relevance.vectors import Idf, Vectors
from nearcast.storage.deletes import deletes_for
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import DELETES, LEDGER, Manifest, SegmentRef
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.post_segment import are_deleted
from nearcast.storage.posts.post_tables import NO_POSTS
from nearcast.storage.subscriptions.rows import take_lists

ABSENT = -1  # the order of a number that no post has


@dataclass(frozen=True)
class Ledger:
    """Posts by number: that of `ts[i]` is base + i. `order` is ABSENT where segments have left a gap."""

    state: StateDirectory
    manifest: Manifest
    refs: tuple[SegmentRef, ...]
    parts: tuple[LedgerPart, ...]
    base: int
    ts: np.ndarray
    order: np.ndarray
    by_order: np.ndarray  # numbers, by (time, id)

    def __len__(self) -> int:
        """How many posts it has."""
        return len(self.by_order)

    @classmethod
    def open(cls, state: StateDirectory, manifest: Manifest) -> "Ledger":
        refs = tuple(sorted(manifest.of(LEDGER), key=first_number))
        key = (str(state.root), *(ref.name for ref in refs))
        if key not in _opened:
            while len(_opened) > 1:
                del _opened[next(iter(_opened))]
            _opened[key] = _laid_out([open_part(state, ref) for ref in refs], [first_number(ref) for ref in refs])
        return cls(state, manifest, refs, *_opened[key])

    def bounds(self, posts: np.ndarray, length: np.ndarray) -> np.ndarray:
        """For windows of so many `posts`, or, where that is 0, of such a `length` (microseconds) up to the clock: the
        least order of a post inside.
        """
        if not len(self):
            return np.zeros(len(posts), np.int64)
        assert self.manifest.clock is not None
        ts = self.ts[self.by_order - self.base]
        by_time = np.searchsorted(ts, self.manifest.clock - length, side="right")
        return np.where(posts > 0, np.maximum(len(self) - posts, 0), by_time).astype(np.int64)

    @cached_property
    def _by_name(self) -> dict[str, LedgerPart]:
        return {ref.name: part for ref, part in zip(self.refs, self.parts, strict=True)}

    def firsts(self) -> list[tuple[SegmentRef, int]]:
        """Its segments, each with the number of its first post."""
        return [(ref, first_number(ref)) for ref in self.refs]

    def origins(self) -> dict[int, int]:
        """By the number of the first of posts that came together, what tells them from all others."""
        parts = zip(self.refs, self.parts, strict=True)
        return {
            n: o
            for ref, part in parts
            for n, o in zip((first_number(ref) + part.came).tolist(), part.origin.tolist(), strict=True)
        }

    @cached_property
    def deleted(self) -> np.ndarray:
        """Numbers of the posts that are deleted, sorted."""
        erased = [first_number(ref) + part.erased for ref, part in zip(self.refs, self.parts, strict=True)]
        return np.union1d(self.deleted_in(None), np.concatenate([np.empty(0, np.int64), *erased]))

    def deleted_in(self, batch: int | None) -> np.ndarray:
        """Those that a batch has deleted, or all that are not erased."""
        found = [np.empty(0, np.int64)]
        if self.manifest.of(DELETES):
            for ref in self.refs:
                found.append(first_number(ref) + deleted_rows(self.state, self.manifest, ref, batch))
        return np.sort(np.concatenate(found))

    def take(self, numbers: np.ndarray) -> pa.Table:
        """Whole posts, whose numbers ascend."""
        tables = []
        for ref, part in zip(self.refs, self.parts, strict=True):
            first = first_number(ref)
            begin, end = np.searchsorted(numbers, (first, first + len(part)))
            if begin < end:
                tables.append(part.take(numbers[begin:end] - first))
        return pa.concat_tables(tables, promote_options="default") if tables else NO_POSTS

    def taker(self, first: int) -> Callable[[np.ndarray], pa.Table]:
        """Whole posts, by how far their numbers are from `first`."""
        return lambda hit: self.take(first + hit)

    def columns(self, name: str) -> PostColumns:
        """What conditions are checked on, of the posts of one segment."""
        part = self._by_name[name]
        return PostColumns(part.lon, part.lat, part.ts, part.terms, part.offsets)

    def columns_of(self, numbers: np.ndarray) -> PostColumns:
        """The same of some posts, whose numbers ascend."""
        taken = []
        for ref, part in zip(self.refs, self.parts, strict=True):
            begin, end = np.searchsorted(numbers, (first_number(ref), first_number(ref) + len(part)))
            rows = numbers[begin:end] - first_number(ref)
            terms, offsets = take_lists(part.terms, part.offsets, rows)
            taken.append((part.lon[rows], part.lat[rows], part.ts[rows], terms, np.diff(offsets)))
        lon, lat, ts, terms, sizes = (np.concatenate(each) for each in zip(*taken, strict=True))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(self.parts[0].offsets.dtype)
        return PostColumns(lon, lat, ts, terms, offsets)

    def vectors(self, ref: SegmentRef, idf: Idf, since: int = 0) -> Vectors:
        """The posts of a segment, from one of its rows on."""
        part = self._by_name[ref.name]
        offsets = part.offsets[since:]
        terms = part.terms[offsets[0] :] if since else part.terms
        return Vectors.of(part.lon[since:], part.lat[since:], terms, offsets - offsets[0] if since else offsets, idf)


_opened: dict[tuple[str, ...], tuple[tuple[LedgerPart, ...], int, np.ndarray, np.ndarray, np.ndarray]] = {}
_parts: dict[str, LedgerPart] = {}


def first_number(ref: SegmentRef) -> int:
    return int(ref.facts[NUMBER])


def open_part(state: StateDirectory, ref: SegmentRef) -> LedgerPart:
    """A segment, mapped once in a process for as long as many others are not."""
    path = str(state.path(ref.name))
    if path not in _parts:
        if len(_parts) > 4096:
            _parts.clear()
        _parts[path] = LedgerPart.open(state.path(ref.name))
    return _parts[path]


def deleted_rows(state: StateDirectory, manifest: Manifest, ref: SegmentRef, batch: int | None = None) -> np.ndarray:
    """The posts of a segment that a batch has deleted, or all that are not erased."""
    deletes = deletes_for(state, manifest, ref)
    if batch is not None and len(deletes):
        deletes = deletes.filter(pc.equal(deletes["batch"], batch))
    if not len(deletes):
        return np.empty(0, np.int64)
    part = open_part(state, ref)
    near = np.flatnonzero(np.isin(part.id, deletes["id"].to_numpy()))
    texts = part.take(near, ["id_text"])["id_text"].combine_chunks()
    found = near[are_deleted(part.id[near], texts, deletes.select(["id", "id_text"]))]
    return np.setdiff1d(found, part.erased)


def _laid_out(
    parts: Sequence[LedgerPart], firsts: Sequence[int]
) -> tuple[tuple[LedgerPart, ...], int, np.ndarray, np.ndarray, np.ndarray]:
    if not parts:
        none = frozen(np.empty(0, np.int64))
        return (), 0, none, none, none
    base = firsts[0]
    span = firsts[-1] + len(parts[-1]) - base
    assert span < 1 << 31, "buffers know posts by the low 32 bits of their numbers"
    ts, order = np.zeros(span, np.int64), np.full(span, ABSENT, np.int64)
    for part, first in zip(parts, firsts, strict=True):
        ts[first - base : first - base + len(part)] = part.ts
    numbers = np.concatenate([np.arange(first, first + len(part)) for part, first in zip(parts, firsts, strict=True)])
    by_order = numbers[by_time_and_id(parts)]
    order[by_order - base] = np.arange(len(by_order))
    return tuple(parts), base, frozen(ts), frozen(order), frozen(by_order)


def by_time_and_id(parts: Sequence[LedgerPart]) -> np.ndarray:
    """The posts of some segments, end to end, by time and id: numbers before strings; then by place. Times are mostly
    in order and mostly different, so ids are read only of those that are not.
    """
    ts = np.concatenate([part.ts for part in parts])
    order = np.argsort(ts, kind="stable")
    same = ts[order][1:] == ts[order][:-1]
    if same.any():
        tied = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
        rows = np.sort(order[tied])
        order[tied] = rows[_by_id(parts, ts[rows], rows)]
    return order


def _by_id(parts: Sequence[LedgerPart], ts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The order of some rows, which ascend, of parts end to end."""
    names = ("lat", "lon", "id", "textual")
    lat, lon, ids, textual = (np.concatenate([getattr(part, name) for part in parts])[rows] for name in names)
    if not textual.any():
        return np.lexsort((lat, lon, ids, ts))
    texts, first = [pa.nulls(0, pa.string())], 0
    for part in parts:
        begin, end = np.searchsorted(rows, (first, first + len(part)))
        if textual[begin:end].any():
            texts += part.take(rows[begin:end] - first, ["id_text"])["id_text"].chunks
        else:
            texts.append(pa.nulls(end - begin, pa.string()))
        first += len(part)
    ids = np.where(textual, 0, ids)
    table = pa.table({"ts": ts, "text": pa.concat_arrays(texts), "id": ids, "lon": lon, "lat": lat})
    keys = [("ts", "ascending"), ("text", "ascending", "at_start"), ("id", "ascending")]
    keys += [("lon", "ascending"), ("lat", "ascending")]
    return np.asarray(pc.sort_indices(table, keys).to_numpy()).astype(np.int64)
