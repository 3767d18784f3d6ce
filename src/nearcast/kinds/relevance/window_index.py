"""The window of posts as an index (the message index of Skype §6.1), searched for many subscribers at once.

The paper has an IR-tree of messages. Here posts come in batches and are searched for by thousands of subscribers
together, so it is log-structured: a part for every batch, parts of like size merged. A part is the mirror image of the
index of subscribers: lists of postings by term, each cut into blocks of like weight and place with a bound on what a
post of the block can score (`kinds.relevance.kernels.window_build`, `window_bounds`, `window_posts`).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from nearcast.common.arrays import freeze, frozen
from nearcast.kinds.relevance.kernels.pyramid_cells import z_order
from nearcast.kinds.relevance.kernels.window_arrays import LedgerOrder, PartArrays, Pools
from nearcast.kinds.relevance.kernels.window_build import (
    BLOCK,
    CLASSES,
    GROUP,
    cut_blocks,
    group_blocks,
    lay_postings,
    lay_posts,
    pack_blocks,
)
from nearcast.kinds.relevance.kernels.window_picked import HIGH, LOW
from nearcast.kinds.relevance.kernels.window_pools import FULL, finish
from nearcast.kinds.relevance.kernels.window_search import GONE, search_part
from nearcast.kinds.relevance.vectors import Numbered, Profiles, Vectors
from nearcast.storage.posts.kernels.grouping import numbered
from nearcast.storage.subscriptions.rows import take_lists

FAN = 3  # parts are merged once the newer ones have so many times the posts of the oldest of them
ABSENT = -1  # the order of a number that the ledger has not
POOLED = 1 << 21  # entries of the pools of one round
MORE = 8  # times the room where ties have filled a pool, and times the posts where conditions have left too few

Keep = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Found:
    """Row by row (those of row i are [starts[i], starts[i + 1])), numbers and scores in answer order."""

    starts: np.ndarray
    numbers: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class WindowPart:
    """Posts with numbers from `first` on, and their postings. See `kinds.relevance.kernels.window_build` for the
    arrays.
    """

    first: int
    term: np.ndarray
    group_starts: np.ndarray
    grouped: np.ndarray
    block_starts: np.ndarray
    begins: np.ndarray
    bounds: np.ndarray
    posts: np.ndarray
    weighed: np.ndarray
    placed: np.ndarray
    signed: np.ndarray
    places: np.ndarray
    own: np.ndarray
    heights: np.ndarray
    where: np.ndarray  # the post of each number from `first` on, or GONE

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.places) - 1

    @property
    def end(self) -> int:
        """Its numbers are below this."""
        return self.first + len(self.where)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, each.name).nbytes for each in fields(self) if each.name != "first")

    @cached_property
    def arrays(self) -> PartArrays:
        """As `search_part` takes them."""
        lists = (self.term, self.group_starts, self.grouped, self.block_starts, self.begins, self.bounds, self.posts)
        packed = (self.weighed, self.placed, self.signed)
        return PartArrays(*lists, *packed, self.places, self.keys, self.own, self.heights, self.where)

    @property
    def keys(self) -> np.ndarray:
        """The same memory as `places`: of the four words of a post the third has its number (less `first`) in its high
        half, and in its low half where its words begin; the fourth is its sketch.
        """
        return self.places.view(np.uint64)

    @classmethod
    def build(cls, vectors: Vectors, numbers: np.ndarray) -> "WindowPart":
        codes, met = numbered(vectors.terms.view(np.int64), 0)
        by_term = np.argsort(vectors.terms[met])
        ranks = np.empty(len(met), np.uint32)
        ranks[by_term] = np.arange(len(met), dtype=np.uint32)
        offsets = vectors.offsets.astype(np.int64)
        own = WindowWords(vectors.lon, vectors.lat, ranks[codes], offsets, vectors.weights, numbers)
        return cls.laid(vectors.terms[met][by_term], own)

    @classmethod
    def merge(cls, parts: "list[WindowPart]", since: int) -> "WindowPart | None":
        """Parts as one, without posts of numbers below `since`."""
        term = np.unique(np.concatenate([part.term for part in parts]))
        posts = WindowWords.join([part.since(since, np.searchsorted(term, part.term)) for part in parts])
        return cls.laid(term, posts) if len(posts.lon) else None

    @classmethod
    def laid(cls, term: np.ndarray, given: "WindowWords") -> "WindowPart":
        term, count, size = frozen(term), len(given.lon), len(given.ranks)
        first = int(given.numbers.min())
        perm = np.argsort(z_order(given.lon, given.lat))
        own, heights = np.empty(size, np.uint32), np.empty(size)
        offsets = np.zeros(count + 1, np.uint32)
        signs, sketches = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        words = (given.ranks, given.offsets, given.weights, term)
        counts = lay_posts(*words, perm, offsets, own, heights, signs, sketches)
        at = (given.numbers - first)[perm]
        places = np.zeros((count + 1, 4))
        places[:-1, 0], places[:-1, 1] = given.lon[perm], given.lat[perm]
        places.view(np.uint64)[:, 2] = offsets
        places.view(np.uint64)[:-1, 2] |= at.astype(np.uint64) << HIGH
        places.view(np.uint64)[:-1, 3] = sketches
        where = np.full(int(at.max()) + 1, GONE, np.uint32)
        where[at] = np.arange(count, dtype=np.uint32)

        starts = np.zeros(len(term) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        posts, weights = np.empty(size, np.uint32), np.empty(size)
        lay_postings(offsets, own, heights, starts, posts, weights)
        block_starts = np.empty(len(term) + 1, np.int64)
        long = int(np.count_nonzero(counts > BLOCK))
        begins = np.empty(size // BLOCK + len(term) + CLASSES * long + 1, np.int64)
        blocks = cut_blocks(starts, posts, weights, block_starts, begins)
        begins = begins[: blocks + 1].copy()
        bounds = np.empty((6, blocks), np.float32)
        weighed, placed, signed = np.empty(size, np.uint16), np.empty(size, np.uint32), np.empty(size, np.uint64)
        pack_blocks(begins, posts, weights, places, signs, bounds, weighed, placed, signed)
        group_starts = np.zeros(len(term) + 1, np.int64)
        np.cumsum(-(-np.diff(block_starts) // GROUP), out=group_starts[1:])
        grouped = np.empty((6, int(group_starts[-1])), np.float32)
        group_blocks(block_starts, bounds, group_starts, grouped)
        lists = (group_starts, grouped, block_starts, begins, bounds, posts, weighed, placed, signed)
        return cls(first, term, *lists, places, own, heights, where)

    def since(self, number: int, ranks: np.ndarray) -> "WindowWords":
        """Its posts with numbers from `number` on; its terms have such ranks now."""
        keys = self.keys[:, 2]
        offsets, numbers = (keys & LOW).astype(np.int64), self.first + (keys[:-1] >> HIGH).astype(np.int64)
        own, weights, lon, lat = (
            ranks.astype(np.uint32)[self.own],
            self.heights,
            self.places[:-1, 0],
            self.places[:-1, 1],
        )
        if number > self.first:
            kept = np.flatnonzero(numbers >= number)
            weights, _ = take_lists(weights, offsets, kept)
            own, offsets = take_lists(own, offsets, kept)
            lon, lat, numbers = lon[kept], lat[kept], numbers[kept]
        return WindowWords(np.ascontiguousarray(lon), np.ascontiguousarray(lat), own, offsets, weights, numbers)


@dataclass(frozen=True)
class WindowWords:
    """Posts in any order: places, the ranks of their terms with weights, and numbers."""

    lon: np.ndarray
    lat: np.ndarray
    ranks: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def join(cls, parts: "list[WindowWords]") -> "WindowWords":
        names = ("lon", "lat", "ranks", "weights", "numbers")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        offsets = np.zeros(len(joined["lon"]) + 1, np.int64)
        np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]), out=offsets[1:])
        return cls(offsets=offsets, **joined)


class WindowPosts:
    """Posts of one version of the idf, by number; `best` finds those that score highest.

    `add` costs some microseconds a post, merging included; `drop` forgets posts that no window reaches any more.
    """

    def __init__(self) -> None:
        self.parts: list[WindowPart] = []
        self.since = 0
        self.looked = 0

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    @property
    def end(self) -> int:
        """All posts have numbers below this."""
        return self.parts[-1].end if self.parts else self.since

    def add(self, vectors: Vectors, first_number: int) -> None:
        """Posts with numbers first_number, first_number + 1, …, which are above all there were."""
        if first_number < self.end:
            raise ValueError(f"posts from number {first_number} on, after those below {self.end}")
        if not len(vectors):
            return
        self.parts.append(WindowPart.build(vectors, first_number + np.arange(len(vectors), dtype=np.int64)))
        newer = 0
        merged = len(self.parts)
        for at in range(len(self.parts) - 1, -1, -1):
            if newer >= FAN * len(self.parts[at]):
                merged = at
            newer += len(self.parts[at])
        if merged < len(self.parts):
            one = WindowPart.merge(self.parts[merged:], self.since)
            self.parts[merged:] = [one] if one else []

    def drop(self, before: int) -> None:
        """Posts with numbers below this are asked for no more: a part that is half of them is rebuilt without them."""
        self.since = max(self.since, before)
        kept = []
        for part in self.parts:
            gone = np.count_nonzero(part.where[: max(0, self.since - part.first)] != GONE)
            if 2 * gone > len(part):
                one = WindowPart.merge([part], self.since)
                kept += [one] if one else []
            else:
                kept.append(part)
        self.parts = kept

    def best(
        self, profiles: Profiles, rows: np.ndarray, n: np.ndarray, bounds: np.ndarray, ledger: Numbered, hidden:
        np.ndarray, keep: Keep | None = None,
    ) -> Found:  # fmt: skip
        """For each of `rows` of the subscribers, its `n` best posts whose order is not below its bound, and all that
        tie with the last of them. Posts of `hidden` numbers (sorted) are left out, and those that the ledger has not.

        With `keep`, only posts count for which `keep(rows, numbers)` is true, pair by pair. It is asked for what was
        found, and where that is too little for MORE times as many; so rows without conditions should come in a call of
        their own.
        """
        if keep is None:
            return self._search(profiles, rows, n, bounds, ledger, hidden)
        wanted = n.astype(np.int64)
        sizes = np.zeros(len(rows), np.int64)
        pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        left = np.arange(len(rows))
        while len(left):
            tried = self._search(profiles, rows[left], wanted[left], bounds[left], ledger, hidden)
            found = np.diff(tried.starts)
            owner = np.repeat(np.arange(len(left)), found)
            meets = keep(rows[left][owner], tried.numbers)
            met = np.concatenate([[0], np.cumsum(meets)])  # up to each pair
            enough = met[tried.starts[1:]] - met[tried.starts[:-1]] >= n[left]
            done = enough | (found < wanted[left])
            last = np.full(len(left), -np.inf)  # the score of the n-th that meets its conditions
            nth = meets & (met[1:] - met[tried.starts[:-1]][owner] == n[left][owner])
            last[owner[nth]] = tried.scores[nth]
            kept = meets & done[owner] & (tried.scores >= last[owner])
            sizes[left] = np.bincount(owner[kept], minlength=len(left))
            pieces.append((left[done], tried.numbers[kept], tried.scores[kept]))
            left = left[~done]
            wanted[left] *= MORE
        return _in_order(sizes, pieces)

    def _search(
        self,
        profiles: Profiles,
        rows: np.ndarray,
        n: np.ndarray,
        bounds: np.ndarray,
        ledger: Numbered,
        hidden: np.ndarray,
    ) -> Found:
        n = np.minimum(n, len(self)).astype(np.int64)
        rows, bounds = rows.astype(np.int64), bounds.astype(np.int64)
        firsts = np.full(len(rows), ledger.base, np.int64)
        if len(bounds) and bounds.max() > 0:
            firsts += np.searchsorted(np.maximum.accumulate(ledger.order), bounds)
        room = 2 * n + 64
        out_sizes = np.zeros(len(rows), np.int64)
        pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        todo = np.argsort(room, kind="stable")
        while len(todo):
            again = []
            for some in _rounds(todo, room):
                sizes, numbers, scores = self._round(profiles, rows, n, bounds, firsts, ledger, hidden, some, room)
                full = sizes == FULL
                again.append(some[full])
                out_sizes[some[~full]] = sizes[~full]
                pieces.append((some[~full], numbers, scores))
            todo = np.concatenate(again)
            room[todo] *= MORE
        return _in_order(out_sizes, pieces)

    def _round(
        self, profiles: Profiles, rows: np.ndarray, n: np.ndarray, bounds: np.ndarray, firsts: np.ndarray,
        ledger: Numbered, hidden: np.ndarray, some: np.ndarray, room: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """(sizes, numbers, scores) of `some` of the rows; the size is FULL where ties need more room."""
        wide = int(room[some].max())
        limits = np.minimum(wide, n[some] + np.maximum(16, n[some] // 2))
        pool = Pools(np.empty((len(some), wide)), np.empty((len(some), wide), np.int64), limits, np.empty(wide))
        sizes, floors = np.zeros(len(some), np.int64), np.full(len(some), -1.0)
        order, base = frozen(ledger.order), np.int64(ledger.base)
        ordered = LedgerOrder(base, order, frozen(hidden))
        picked, wanted, since, first = (frozen(each[some]) for each in (rows, n, bounds, firsts))
        for part in sorted(self.parts, key=len, reverse=True):
            inside = order[max(0, part.first - ledger.base) : max(0, part.end - ledger.base)]
            least = inside.min() if len(inside) == len(part.where) else np.int64(ABSENT)
            self.looked += search_part(
                np.int64(part.first), part.arrays, least, profiles.for_kernels, picked, wanted, since, first, ordered,
                pool, sizes, floors,
            )  # fmt: skip
        finish(pool, sizes, wanted, base, frozen(ledger.ts), order)
        inside = np.arange(wide) < sizes[:, None]
        return sizes, pool.numbers[inside], pool.scores[inside]


def _rounds(todo: np.ndarray, room: np.ndarray) -> list[np.ndarray]:
    """Rows in groups whose pools fit in memory together."""
    out, begin = [], 0
    while begin < len(todo):
        wide = room[todo[begin:]]
        fit = np.flatnonzero(wide * np.arange(1, len(wide) + 1) > POOLED)
        size = max(1, int(fit[0])) if len(fit) else len(wide)
        out.append(todo[begin : begin + size])
        begin += size
    return out


def _in_order(sizes: np.ndarray, pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Found:
    """What was found of some rows at a time, by row."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    numbers, scores = np.empty(starts[-1], np.int64), np.empty(starts[-1])
    for rows, some_numbers, some_scores in pieces:
        own = sizes[rows]
        at = np.arange(len(some_numbers)) + np.repeat(starts[rows] - np.cumsum(own) + own, own)
        numbers[at], scores[at] = some_numbers, some_scores
    return Found(starts, numbers, scores)
