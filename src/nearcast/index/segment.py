"""A segment of subscriptions: rows, and the directory that finds those a post may satisfy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.index.filing import WORLD, Filing
from nearcast.index.rows import Rows, freeze, frozen
from nearcast.kernels.directory import laid_keys, lay_out
from nearcast.kernels.match import match_posts, row_ends
from nearcast.kernels.register import cover, key_terms, z_codes
from nearcast.model.ops import NEVER


@dataclass(frozen=True)
class PostColumns:
    """What matching needs of a batch of posts; `terms` in the order of the text, `offsets` one longer than the
    posts.
    """

    lon: np.ndarray
    lat: np.ndarray
    ts: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.ts)

    def z_order(self) -> np.ndarray:
        """The posts along the Z-order curve, in which segments are laid out."""
        return np.argsort(z_codes(self.lon, self.lat, np.array(WORLD)))


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
        bits = np.zeros((count >> 6) + 1, np.uint64)
        np.bitwise_or.at(bits, rows >> 6, np.uint64(1) << (rows & 63).astype(np.uint64))
        return cls(bits, rows.astype(np.int64), ends)

    @classmethod
    def none(cls, count: int) -> "Ends":
        return cls.of(count, np.empty(0, np.int64), np.empty(0, np.int64))

    def applied(self, rows: Rows, picked: np.ndarray, first_post: int) -> np.ndarray:
        """When the subscriptions of some rows end, all things considered."""
        stop = row_ends(rows.start[picked], rows.end[picked], rows.life[picked], first_post)
        if len(self.rows):
            at = np.minimum(np.searchsorted(self.rows, picked), len(self.rows) - 1)
            moved = self.rows[at] == picked
            stop[moved] = np.minimum(stop[moved], self.ends[at[moved]])
        return stop


@dataclass(frozen=True)
class Segment:
    """Immutable. Cost of a match: per level one cell, per distinct term one bit, then the entries of the terms that
    pass.
    """

    rows: Rows
    extent: np.ndarray
    levels: np.ndarray
    level_starts: np.ndarray
    cells: np.ndarray
    starts: np.ndarray
    signs: np.ndarray
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
    def build(cls, rows: Rows, filing: Filing) -> "Segment":
        """Rows are kept along the Z-order curve, so that posts in Z-order find them near each other too."""
        rows = rows.take(
            np.argsort(z_codes(frozen(rows.boxes[:, 0].copy()), frozen(rows.boxes[:, 1].copy()), np.array(WORLD)))
        )
        filed_rows, terms = key_terms(rows.code, rows.code_offsets)
        extent = filing.extent_array()
        pairs = cover(
            filed_rows, terms, rows.boxes, extent, filing.coarsest, filing.finest, filing.step, filing.most_cells
        )
        return cls._laid_out(rows, extent, *pairs)

    @classmethod
    def overlay(cls, segments: Sequence["Segment"]) -> "Segment":
        """Several small segments as one in memory: rows joined end to end, directories laid out together."""
        keys, entries = [], []
        base = 0
        for segment in segments:
            keys.append(laid_keys(segment.cells, segment.starts, segment.tags))
            entries.append(segment.entries + np.uint64(base))
            base += len(segment)
        rows = Rows.join([segment.rows for segment in segments])
        return cls._laid_out(rows, segments[0].extent, np.concatenate(keys), np.concatenate(entries))

    @classmethod
    def _laid_out(cls, rows: Rows, extent: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> "Segment":
        order = np.argsort(keys)
        cells, starts, signs, tags = lay_out(keys[order])
        levels, level_starts = np.unique(cells >> np.uint64(36), return_index=True)
        id_keys = rows.keys()
        by_key = np.argsort(id_keys, kind="stable")
        mortal = len(rows) > 0 and bool((rows.life == NEVER).all())
        latest = int(rows.end.max()) if mortal else NEVER
        return cls(
            rows, extent, levels.astype(np.uint8), level_starts.astype(np.int64), cells, starts, signs, tags,
            entries[order], id_keys[by_key], by_key.astype(np.uint32), np.array([latest], np.int64),
        )  # fmt: skip

    def match(
        self, posts: PostColumns, ends: Ends | None = None, first_post: int = NEVER, wanted: np.ndarray | None = None
    ) -> Matches:
        """All pairs of a post (of `wanted`, if given, which is in Z-order) and a subscription it satisfies.

        Predicates on attributes are the caller's: they need columns that only few subscriptions look at.
        """
        if wanted is None:
            wanted = posts.z_order()
        if tuple(self.extent) != WORLD:  # cells of another extent have a Z-order of their own
            lon, lat = frozen(posts.lon[wanted]), frozen(posts.lat[wanted])
            wanted = wanted[np.argsort(z_codes(lon, lat, np.array(self.extent)))]
        ends = ends or Ends.none(len(self))
        capacity = max(1024, len(wanted) * 2)
        parts_posts, parts_rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        begin = candidates = 0
        rows = self.rows
        cursors = self.level_starts.copy()
        wanted = frozen(self._walk(posts, wanted))
        while begin < len(wanted) and len(self):
            out_posts, out_rows = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
            found, done, looked = match_posts(
                wanted, posts.lon, posts.lat, posts.ts, posts.terms, posts.offsets, first_post,
                self.extent, self.levels, self.cells, self.starts, self.signs, self.tags, self.entries,
                rows.boxes, rows.kinds, rows.shape, rows.shape_offsets, rows.code, rows.code_offsets,
                rows.start, rows.end, rows.life, ends.bits, ends.rows, ends.ends,
                begin, cursors, out_posts, out_rows,
            )  # fmt: skip
            if done == begin:
                capacity *= 4  # one post alone satisfies more subscriptions than there was room for
            parts_posts.append(out_posts[:found])
            parts_rows.append(out_rows[:found])
            begin = done
            candidates += looked
        return Matches(np.concatenate(parts_posts), np.concatenate(parts_rows), candidates)

    def _walk(self, posts: PostColumns, wanted: np.ndarray) -> np.ndarray:
        """Posts in the order of the segment's cells: those of another extent than the world's lie along another
        curve.
        """
        if tuple(self.extent) == WORLD:
            return wanted
        lon, lat = frozen(posts.lon[wanted]), frozen(posts.lat[wanted])
        return wanted[np.argsort(z_codes(lon, lat, self.extent))]

    def arrays(self) -> "dict[str, np.ndarray | pa.StringArray]":
        own = {name: value for name, value in self.__dict__.items() if name != "rows"}
        return {**self.rows.arrays(), **own}

    @classmethod
    def from_arrays(cls, arrays: "dict[str, np.ndarray | pa.StringArray]") -> "Segment":
        own = {name: value for name, value in arrays.items() if not name.startswith("row_")}
        return cls(rows=Rows.from_arrays(arrays), **own)
