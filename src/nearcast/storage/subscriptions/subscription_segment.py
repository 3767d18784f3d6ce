"""A segment of subscriptions: rows, and the directory that finds those a post may satisfy."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import freeze, frozen
from nearcast.common.kernels.grid import set_bits
from nearcast.common.op_schema import NEVER
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.filing import WORLD, Filing
from nearcast.storage.subscriptions.kernels.directory import laid_keys, lay_out, merge_sorted
from nearcast.storage.subscriptions.kernels.match import (
    CODE,
    END,
    SEQ,
    START,
    TWICE,
    line_up,
    make_records,
    match_posts,
    row_ends,
)
from nearcast.storage.subscriptions.kernels.match_arrays import CellDirectory, MovedEnds, PostLine, SubscriptionRows
from nearcast.storage.subscriptions.kernels.register import cover, key_terms, met_twice, z_codes
from nearcast.storage.subscriptions.rows import Rows, hashed_order, packed_order

RECORDED = {"boxes": 0, "seq": SEQ, "start": START, "end": END}  # columns of rows that lie in records on disk


@dataclass(frozen=True)
class Line:
    """Posts to be matched, in the order of the Z-order curve over an extent, with their distinct terms."""

    posts: PostColumns
    order: np.ndarray
    extent: np.ndarray
    places: np.ndarray
    times: np.ndarray
    grid: np.ndarray
    words: np.ndarray
    firsts: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.order)

    @classmethod
    def of(
        cls, posts: PostColumns, wanted: np.ndarray | None = None, extent: tuple[float, ...] | np.ndarray = WORLD
    ) -> "Line":
        """All posts, or those of `wanted`, which are already along the curve."""
        extent = np.array(extent)
        if wanted is None:
            wanted = np.argsort(z_codes(posts.lon, posts.lat, extent))
        count = len(wanted)
        places, times = np.empty((count, 2), np.float64), np.empty(count, np.int64)
        grid, firsts = np.empty((count, 2), np.int64), np.empty(count + 1, np.int64)
        words = np.empty(count + len(posts.terms), np.uint64)
        columns = (posts.lon, posts.lat, posts.ts, posts.terms, posts.offsets)
        line_up(frozen(wanted), *columns, extent, places, times, grid, firsts, words)
        return cls(posts, wanted, extent, places, times, grid, words, firsts)

    @cached_property
    def for_kernels(self) -> tuple[np.ndarray, ...]:
        """The fields of a `PostLine`."""
        columns = (self.order, self.places, self.times, self.grid, self.words, self.firsts)
        return tuple(PostLine(*columns, self.posts.terms, self.posts.offsets))

    def along(self, extent: np.ndarray) -> "Line":
        """The same posts along the curve over another extent, which has cells of its own."""
        if np.array_equal(extent, self.extent):
            return self
        lon, lat = self.posts.lon[self.order], self.posts.lat[self.order]
        return Line.of(self.posts, self.order[np.argsort(z_codes(frozen(lon), frozen(lat), extent))], extent)

    def until(self, latest: int) -> "Line":
        """Those posts that are before a time."""
        early = self.posts.ts[self.order] < latest
        return self if early.all() else Line.of(self.posts, self.order[early], self.extent)


@dataclass(frozen=True)
class Matches:
    """Pairs (post, row), each once, and how many candidates had to be looked at to find them."""

    posts: np.ndarray
    rows: np.ndarray
    candidates: int


@dataclass(frozen=True)
class Ends:
    """New ends that later ops gave to rows of a segment: rows sorted, with one bit per row for a quick no."""

    bits: np.ndarray
    rows: np.ndarray
    ends: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, count: int, rows: np.ndarray, ends: np.ndarray) -> "Ends":
        """Of a segment with `count` rows; `rows` are sorted, each once."""
        bits = np.zeros((count >> 6) + 1, np.uint64)
        set_bits(bits, rows)
        return cls(bits, rows.astype(np.int64), ends)

    @classmethod
    def least(cls, count: int, rows: np.ndarray, ends: np.ndarray) -> "Ends":
        """Of rows in any order, of which some may come several times: the earliest end counts."""
        order = np.lexsort((ends, rows))
        rows, ends = rows[order], ends[order]
        first = np.ones(len(rows), np.bool_)
        first[1:] = rows[1:] != rows[:-1]
        return cls.of(count, rows[first], ends[first])

    @classmethod
    def none(cls, count: int) -> "Ends":
        return cls.of(count, np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def side_by_side(cls, parts: Sequence["Ends"], counts: Sequence[int]) -> "Ends":
        """Of segments whose rows lie end to end."""
        bases = np.concatenate([[0], np.cumsum(counts)])
        rows = [part.rows + base for part, base in zip(parts, bases[:-1], strict=True)]
        return cls.of(int(bases[-1]), np.concatenate(rows), np.concatenate([part.ends for part in parts]))

    def joined(self, other: "Ends") -> "Ends":
        """With the ends of another log about the same rows."""
        count = (len(self.bits) - 1) << 6
        rows, ends = np.concatenate([self.rows, other.rows]), np.concatenate([self.ends, other.ends])
        return Ends.least(count, rows, ends) if len(other.rows) else self

    def applied(self, rows: Rows, picked: np.ndarray, first_post: int) -> np.ndarray:
        """When the subscriptions of some rows end, all things considered."""
        stop = row_ends(rows.start[picked], rows.end[picked], rows.life[picked], first_post)
        if len(self.rows):
            at = np.minimum(np.searchsorted(self.rows, picked), len(self.rows) - 1)
            moved = self.rows[at] == picked
            stop[moved] = np.minimum(stop[moved], self.ends[at[moved]])
        return stop


@dataclass(frozen=True)
class Directory:
    """Sorted pairs (cell and term, row and box inside the cell) of rows; `twice` marks rows a post may meet twice."""

    extent: np.ndarray
    keys: np.ndarray
    entries: np.ndarray
    twice: np.ndarray

    @classmethod
    def of(cls, rows: Rows, filing: Filing, boxes: np.ndarray | None = None) -> "Directory":
        """Each row is filed by its box, or by one of `boxes`."""
        boxes = rows.boxes if boxes is None else frozen(boxes)
        filed, terms = key_terms(rows.code, rows.code_offsets)
        extent = filing.extent_array()
        keys, entries = cover(
            filed, terms, boxes, extent, filing.coarsest, filing.finest, filing.step, filing.most_cells
        )
        order = np.argsort(keys)
        return cls(extent, keys[order], entries[order], met_twice(filed, terms, boxes))

    @classmethod
    def laid(cls, segment: "Segment") -> "Directory":
        """The directory that a segment was laid out from."""
        keys = laid_keys(segment.cells, segment.starts, segment.bases, segment.tags)
        return cls(segment.extent, keys, segment.entries, (segment.records[:, CODE] & TWICE) != 0)

    def joined(self, other: "Directory") -> "Directory":
        """With the rows of another after those of this one."""
        moved = other.entries + np.uint64(len(self.twice))
        keys, entries = merge_sorted(frozen(self.keys), frozen(self.entries), frozen(other.keys), frozen(moved))
        return Directory(self.extent, keys, entries, np.concatenate([self.twice, other.twice]))


@dataclass(frozen=True)
class Segment:
    """Immutable. Cost of a match: per level one cell, per distinct term one bit, then the entries of the terms that
    pass.
    """

    rows: Rows
    records: np.ndarray  # what matching reads of a row, side by side
    life: np.ndarray  # as in the rows, or empty if it is NEVER in all of them
    extent: np.ndarray
    levels: np.ndarray
    level_starts: np.ndarray
    cells: np.ndarray
    starts: np.ndarray
    signs: np.ndarray
    bases: np.ndarray
    tags: np.ndarray
    entries: np.ndarray
    id_keys: np.ndarray  # sorted, with the row of each
    id_rows: np.ndarray
    latest: np.ndarray  # one number: no subscription of the segment ends later

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def build(cls, rows: Rows, filing: Filing, picked: np.ndarray | None = None) -> "Segment":
        """Of all rows or those picked. They are kept along the Z-order curve, so that posts in Z-order find them near
        each other too.
        """
        corners = rows.boxes if picked is None else rows.boxes.take(picked, axis=0)
        order = packed_order(z_codes(frozen(corners[:, 0].copy()), frozen(corners[:, 1].copy()), np.array(WORLD)))
        rows = rows.take(order if picked is None else picked[order])
        return cls.laid_out(rows, Directory.of(rows, filing))

    @classmethod
    def laid_out(cls, rows: Rows, directory: Directory, by_id: bool = True) -> "Segment":
        """Rows with their directory; without `by_id` no row can be found by its id."""
        cells, starts, signs, bases, tags = lay_out(frozen(directory.keys))
        levels, level_starts = np.unique(cells >> np.uint64(36), return_index=True)
        records = make_records(
            rows.seq, rows.boxes, rows.start, rows.end, rows.life, rows.kinds, rows.code_offsets, directory.twice
        )
        id_keys = rows.keys() if by_id else np.empty(0, np.uint64)
        by_key = hashed_order(id_keys)
        settled = bool((rows.life == NEVER).all())
        latest = int(rows.end.max()) if settled and len(rows) else NEVER
        return cls(
            rows, records, rows.life[:0] if settled else rows.life, directory.extent,
            levels.astype(np.uint8), level_starts.astype(np.int64), cells, starts, signs, bases, tags,
            directory.entries, id_keys[by_key], by_key.astype(np.uint32), np.array([latest], np.int64),
        )  # fmt: skip

    def match(self, posts: "PostColumns | Line", ends: Ends | None = None, first_post: int = NEVER) -> Matches:
        """All pairs of a post and a subscription it satisfies.

        Predicates on attributes are the caller's: they need columns that only few subscriptions look at.
        """
        line = posts if isinstance(posts, Line) else Line.of(posts)
        line = line.along(self.extent)
        ends = ends or Ends.none(len(self))
        capacity = max(1024, len(line) * 2)
        parts_posts, parts_rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        begin = candidates = 0
        lined, directory, asked = line.for_kernels, self._directory, self._asked
        moved = tuple(MovedEnds(ends.bits, ends.rows, ends.ends))
        cursors = self.level_starts.copy()
        while begin < len(line) and len(self):
            out_posts, out_rows = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found, done, looked = match_posts(
                lined, first_post, directory, asked, moved, begin, cursors, out_posts, out_rows
            )
            if done == begin:
                capacity *= 4  # a few posts alone satisfy more subscriptions than there was room for
            parts_posts.append(out_posts[:found])
            parts_rows.append(out_rows[:found])
            begin = done
            candidates += looked
        return Matches(np.concatenate(parts_posts), np.concatenate(parts_rows), candidates)

    @cached_property
    def _directory(self) -> tuple[np.ndarray, ...]:
        words = (self.signs, self.bases, self.tags, self.entries)
        return tuple(CellDirectory(self.levels, self.cells, self.starts, *words))

    @cached_property
    def _asked(self) -> tuple[np.ndarray, ...]:
        shapes = (self.rows.shape, self.rows.shape_offsets)
        bounds = self.records.view(np.float64)
        return tuple(SubscriptionRows(self.records, bounds, self.rows.code, *shapes, self.life))

    def arrays(self) -> "dict[str, np.ndarray | pa.StringArray]":
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "rows"}
        elsewhere = {f"row_{name}" for name in (*RECORDED, "life")}
        return {name: value for name, value in {**self.rows.arrays(), **own}.items() if name not in elsewhere}

    @classmethod
    def from_arrays(cls, arrays: "dict[str, np.ndarray | pa.StringArray]") -> "Segment":
        own = {name: value for name, value in arrays.items() if not name.startswith("row_")}
        records = own["records"] = np.asarray(own["records"]).reshape(-1, 8)
        views = {"row_boxes": records.view(np.float64)[:, :4]}
        views |= {f"row_{name}": records[:, at] for name, at in RECORDED.items() if name != "boxes"}
        life = np.asarray(own["life"])
        views["row_life"] = life if len(life) else np.broadcast_to(np.int64(NEVER), len(records))
        return cls(rows=Rows.from_arrays({**arrays, **views}), **own)
