"""The posts of a window: those of all segments in some time, as flat arrays that reports are counted from.

What is taken from a segment is kept in the process as long as later windows need it, so that a window that moves on
costs its new posts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.terms.kernels.cell_tables import build_cells, sorted_codes
from nearcast.kinds.terms.kernels.report_arrays import CellPosts, CellTables, RankedWords
from nearcast.kinds.terms.kernels.tick_reports import distinct_codes
from nearcast.storage.lexicon import Lexicon, Speller
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import search_range
from nearcast.storage.subscriptions.filing import WORLD
from nearcast.storage.subscriptions.kernels.register import z_codes
from nearcast.storage.subscriptions.rows import take_lists

STALE = 0.5  # of what was taken from a segment may be too old, before that is left out
FREQUENT = 8_192  # words that tables of cells have
MANY_WORDS = 4_000_000  # then a lexicon begins anew


@dataclass(frozen=True)
class Taken:
    """Posts of one segment later than `since`, but `gone` deleted ones, along the Z-order curve of the world."""

    segment: PostSegment
    since: int
    gone: np.ndarray
    rows: np.ndarray
    z: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    ts: np.ndarray
    codes: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, segment: PostSegment, gone: np.ndarray, since: int, lexicon: Lexicon, spell: Speller) -> "Taken":
        rows = np.flatnonzero(segment.ts > since)
        rows = rows[~np.isin(rows, gone)] if len(gone) else rows
        lon, lat = segment.places(rows)
        z = z_codes(frozen(lon), frozen(lat), np.array(WORLD))
        order = np.argsort(z)
        rows = frozen(rows[order])
        words, offsets = segment.posts_codes(rows)
        codes, starts = distinct_codes(frozen(words), frozen(offsets), frozen(lexicon.numbers(segment.terms, spell)))
        lon, lat = segment.places(rows)
        return cls(segment, since, gone, rows, z[order], lon, lat, segment.ts_of(rows), codes, starts)

    @cached_property
    def places(self) -> np.ndarray:
        """Where each row of the segment is among those taken, -1 if it is not."""
        out = np.full(len(self.segment), -1, np.int64)
        out[self.rows] = np.arange(len(self.rows))
        return out

    def later(self, since: int) -> "Taken":
        """Without posts that have become too old, where they are many."""
        kept = np.flatnonzero(self.ts > since)
        if len(kept) >= STALE * len(self.ts):
            return self
        codes, starts = take_lists(self.codes, self.starts, kept)
        rows, z, lon, lat, ts = (each[kept] for each in (self.rows, self.z, self.lon, self.lat, self.ts))
        return Taken(self.segment, since, self.gone, rows, z, lon, lat, ts, codes, starts)


class Windows:
    """A cache of a process: what was taken from segments, by name."""

    def __init__(self, left_out: np.ndarray) -> None:
        """`left_out` are terms that are never counted."""
        self.taken: dict[str, Taken] = {}
        self.lexicon = Lexicon(left_out)
        self._whole: tuple[tuple[tuple[str, int, int], ...], PostWindow] | None = None

    def open(self, segments: Sequence[tuple[str, PostSegment, np.ndarray]], since: int, spell: Speller) -> "PostWindow":
        """The posts later than `since` of some segments (name, segment, deleted rows); what others had is forgotten."""
        if len(self.lexicon) > MANY_WORDS:
            self.lexicon, self.taken, self._whole = Lexicon(self.lexicon.left_out), {}, None
        known, self.taken = self.taken, {}
        for name, segment, gone in segments:
            taken = known.get(name)
            if taken is None or taken.since > since or not np.array_equal(taken.gone, gone):
                taken = Taken.of(segment, gone, since, self.lexicon, spell)
            self.taken[name] = taken.later(since)
        key = tuple((name, taken.since, len(taken.gone)) for name, taken in self.taken.items())
        if self._whole is None or self._whole[0] != key:
            self._whole = key, PostWindow(list(self.taken.values()), self.lexicon)
        return self._whole[1]


class PostWindow:
    """Posts of several segments, one part each."""

    def __init__(self, parts: Sequence[Taken], lexicon: Lexicon) -> None:
        self.taken = parts
        self.lexicon = lexicon
        self.parts = frozen(np.cumsum([0, *(len(part.ts) for part in parts)]))
        self.z, self.lon, self.lat, self.ts, self.codes = (
            frozen(np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)]))
            for name, kind in (
                ("z", np.uint64), ("lon", np.float64), ("lat", np.float64), ("ts", np.int64), ("codes", np.int32),
            )
        )  # fmt: skip
        bases = np.cumsum([0, *(len(part.codes) for part in parts)])
        starts = [part.starts[1:] + base for part, base in zip(parts, bases[:-1], strict=True)]
        self.starts = frozen(np.concatenate([np.zeros(1, np.int64), *starts]))
        self._cells: tuple[tuple[int, int], Cells] | None = None

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def by_time(self) -> np.ndarray:
        return frozen(np.argsort(self.ts, kind="stable"))

    @cached_property
    def rank(self) -> np.ndarray:
        out = np.empty(len(self), np.int64)
        out[self.by_time] = np.arange(len(self))
        return frozen(out)

    def cells(self, since: int, until: int) -> "Cells":
        """The posts in (since, until], with term tables; the last ones asked for are kept."""
        if self._cells is None or self._cells[0] != (since, until):
            self._cells = (since, until), Cells.of(self, np.flatnonzero((self.ts > since) & (self.ts <= until)))
        return self._cells[1]

    def search(self, question: Question) -> np.ndarray:
        """The posts that a question asks for."""
        found = [np.empty(0, np.int64)]
        for base, part in zip(self.parts[:-1].tolist(), self.taken, strict=True):
            at = part.places[search_range(part.segment, question).rows]
            found.append(base + at[at >= 0])
        return np.concatenate(found)


@dataclass(frozen=True)
class Cells:
    """Posts along the Z-order curve with term tables (`kinds.terms.kernels.cell_tables`): what `report_cells` takes of
    them.
    """

    posts: CellPosts
    tables: CellTables
    ranked: RankedWords

    @classmethod
    def of(cls, window: PostWindow, picked: np.ndarray) -> "Cells":
        picked = frozen(picked[np.argsort(window.z[picked], kind="stable")])
        counts = np.bincount(window.codes, minlength=len(window.lexicon))
        numbers = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
        ranks = np.empty(len(counts), np.int32)
        ranks[numbers] = np.arange(len(numbers), dtype=np.int32)
        codes, starts = sorted_codes(picked, window.starts, window.codes, frozen(ranks))
        posts = CellPosts(*map(frozen, (window.lon[picked], window.lat[picked], starts, codes)))
        tables = CellTables(*map(frozen, build_cells(*(*posts, min(FREQUENT, len(numbers))))))
        return cls(posts, tables, RankedWords(frozen(counts[numbers]), frozen(numbers)))
