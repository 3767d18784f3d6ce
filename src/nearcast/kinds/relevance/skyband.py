"""The buffers from which subscribers' k best posts are kept fresh over sliding windows (Skype §6).

A buffer has the k-skyband of the posts of the window with a score of at least theta. So long as it has k members, its
first k are the answer (Theorem 5): a post that is missing is below theta, and all members before it, or is dominated by
k of them. With theta = 0 it misses none, and is right with fewer. Else it must be refilled from the posts of the window
(Algorithm 2), and fewer than k members means that fewer than k posts are at or above theta (Theorem 6).

A batch is `advance`d, then each row that turned out short is given a `refill`. In between such a row is as it was
before the batch, so that who entered and left is told once, as the net change.

Deleting. A deleted member may be one of just k that dominated a post evicted long ago, which then belongs to the
skyband again, and maybe to the answer, but is not here: so its buffer is refilled. A deleted post that is no member
matters to no one: if k members dominate it, they also dominate all that it does; if it is below theta or has expired,
so are and have they. Where theta is 0 and there were fewer than k, none was ever evicted that is still in the window.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.kernels.buffer_slots import CLASSES, LOW, members
from nearcast.kinds.relevance.kernels.skyband_steps import (
    MOVED,
    NEVER,
    STALE,
    AnswerEvents,
    BufferArrays,
    BufferBatch,
    LedgerArrays,
    advance_buffers,
    holders,
    touched,
)
from nearcast.kinds.relevance.skyband_policy import NO_LIMIT, Policy
from nearcast.kinds.relevance.vectors import Numbered

COLUMNS = {
    "theta": np.float64,
    "version": np.int32,
    "k": np.int32,
    "window": np.int32,
    "size": np.int32,
    "oldest": np.int64,
}
EVENTS = 1 << 16  # told by one call of the kernel, at most
PLACES = 1 << 12  # of members, added at least


class Ordered(Numbered, Protocol):
    """And the numbers by order (`kinds.relevance.ledger.Ledger`)."""

    @property
    def by_order(self) -> np.ndarray: ...


@dataclass(frozen=True)
class BufferArrivals:
    """Posts for rows: sorted by row, otherwise in any order, a pair maybe more than once."""

    rows: np.ndarray
    numbers: np.ndarray
    scores: np.ndarray

    @classmethod
    def none(cls) -> "BufferArrivals":
        return cls(np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0))


@dataclass(frozen=True)
class Refills:
    """What a search of the window found for rows (ascending): all posts with a score of at least theta, those of this
    batch included and deleted ones left out, scored by the idf of `version`. Those of rows[i] begin at starts[i].
    """

    rows: np.ndarray
    theta: np.ndarray
    version: np.ndarray
    starts: np.ndarray
    numbers: np.ndarray
    scores: np.ndarray

    @classmethod
    def none(cls) -> "Refills":
        none = np.empty(0, np.int64)
        return cls(none, np.empty(0), np.empty(0, np.int32), np.zeros(1, np.int64), none.astype(np.uint32), np.empty(0))

    def batch(self) -> tuple[np.ndarray, ...]:
        """As `Buffers.settle` takes it."""
        return self.rows, self.starts, self.numbers, self.scores, self.theta


@dataclass(frozen=True)
class Changes:
    """Posts that entered answers, with the rank they have now, or that left, with the rank they had (from 0 on)."""

    rows: np.ndarray
    numbers: np.ndarray
    scores: np.ndarray
    ranks: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Step:
    """`short`: rows that must be refilled before the next batch, those never filled included. `moved`: rows that have
    another theta now. Rows ascend, but not those of the changes.
    """

    short: np.ndarray
    moved: np.ndarray
    entered: Changes
    left: Changes
    touched: int


class Buffers:
    """One row a subscriber: theta, version (of the idf of its scores; STALE: it must be refilled), k (0: it has ended),
    window (an index into the bounds that come with a batch), size, and oldest (the time of its oldest member, or
    NEVER). Numbers of posts are kept as their low 32 bits. Members are in answer order.

    Rows that come from a file stay there, in read-only arrays end to end, until they change; then they have slots of
    their own, mostly of 1.8 k places, which is as much as `CostBased` fills. That is 44 bytes a row and 12 a place.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], numbers: np.ndarray, scores: np.ndarray) -> None:
        self.theta, self.version, self.k, self.window, self.size, self.oldest = (
            np.array(columns[name], dtype=kind) for name, kind in COLUMNS.items()
        )
        self._old = frozen(np.asarray(numbers, np.uint32)), frozen(np.asarray(scores, np.float64))
        self._begin = np.cumsum(self.size, dtype=np.int64) - self.size
        self._room = np.zeros(len(self.size), np.int32)
        self._numbers, self._scores = np.empty(0, np.uint32), np.empty(0)
        self._free = np.full(CLASSES, -1, np.int64)
        self._free[0] = 0

    def __len__(self) -> int:
        return len(self.theta)

    @classmethod
    def new(cls, k: np.ndarray, window: np.ndarray) -> "Buffers":
        """Buffers that take nothing until they are filled for the first time."""
        n = len(k)
        columns = {name: np.zeros(n, kind) for name, kind in COLUMNS.items()}
        columns |= {"theta": np.full(n, np.inf), "version": np.full(n, STALE), "k": k, "window": window}
        columns["oldest"] = np.full(n, NEVER)
        return cls(columns, np.empty(0, np.uint32), np.empty(0))

    def add(self, k: np.ndarray, window: np.ndarray) -> None:
        """New rows at the end."""
        more = Buffers.new(k, window)
        for name in (*COLUMNS, "_begin", "_room"):
            setattr(self, name, np.concatenate((getattr(self, name), getattr(more, name))))

    def end(self, rows: np.ndarray) -> None:
        """These take nothing from now on, and have no members."""
        self.theta[rows], self.k[rows], self.size[rows], self.oldest[rows] = np.inf, 0, 0, NEVER

    def members(self, rows: np.ndarray, most: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(starts, numbers, scores) of rows: all members, or the first `most[i]`."""
        most = self.size[rows] if most is None else most
        return members(frozen(np.asarray(rows, np.int64)), frozen(most.astype(np.int64)), *self._read())

    def answers(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(starts, numbers, scores) of the k best posts, best first."""
        return self.members(rows, self.k[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a file."""
        _, numbers, scores = self.members(np.arange(len(self)))
        return {**{name: getattr(self, name) for name in COLUMNS}, "numbers": numbers, "scores": scores}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Buffers":
        """From what `arrays` gave. The members are not copied."""
        return cls(arrays, arrays["numbers"], arrays["scores"])

    @property
    def nbytes(self) -> int:
        """Bytes in use, those of rows that are still in their file included."""
        columns = sum(getattr(self, name).nbytes for name in (*COLUMNS, "_begin", "_room"))
        return columns + 12 * (int(self.size[self._room == 0].sum()) + int(self._free[0]))

    def stale(self) -> np.ndarray:
        """Rows that must be refilled."""
        return np.flatnonzero((self.version == STALE) & (self.k > 0))

    def _read(self) -> tuple[np.ndarray, ...]:
        columns = (self.size, self._begin, self._room)
        return (*(frozen(column) for column in columns), *self._old, frozen(self._numbers), frozen(self._scores))

    def _written(self) -> BufferArrays:
        fixed = (self.theta, self.version, frozen(self.k), self.size, frozen(self.window), self.oldest)
        return BufferArrays(*fixed, self._begin, self._room, *self._old, self._numbers, self._scores, self._free)

    def _grow(self, places: int) -> None:
        """Make room for so many places more; in place, which moves no bytes where the allocator can remap pages."""
        size = int(self._free[0]) + max(places, int(self._free[0]) // 4, PLACES)
        self._numbers.resize(size, refcheck=False)
        self._scores.resize(size, refcheck=False)

    def touched(
        self, ledger: Ordered, bounds: np.ndarray, arrivals: BufferArrivals, hidden: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with arrivals, expiries or members that are hidden, and where the arrivals of each begin."""
        marked = np.empty(0, np.bool_)
        if len(hidden):
            size, begin, room, old, _, numbers, _ = self._read()
            marked = holders(size, begin, room, old, numbers, low(ledger.base), frozen(hidden))
        since = np.full(len(bounds), NEVER - 1)
        some = bounds < len(ledger.by_order)
        since[some] = ledger.ts[ledger.by_order[bounds[some]] - ledger.base]
        columns = (frozen(self.oldest), frozen(self.window), frozen(marked), frozen(since))
        return touched(frozen(arrivals.rows), *columns)

    def settle(
        self,
        ledger: Ordered,
        bounds: np.ndarray,
        batch: tuple[np.ndarray, ...],
        room: tuple[np.ndarray, np.ndarray],
        hidden: np.ndarray,
        *,
        refilled: bool,
        judged: bool,
        dominance: bool,
    ) -> Step:
        """Settle rows by kernel: `batch` has rows, starts, numbers, scores and thetas, `room` the most members of each
        and how many of them to keep. Rows are short only where that is `judged`.
        """
        kinds = (np.int64, np.int64, np.uint32, np.float64, np.float64, np.int64, np.int64)
        columns = [frozen(np.asarray(each, kind)) for each, kind in zip((*batch, *room), kinds, strict=True)]
        brought = BufferBatch(*columns)
        posts = LedgerArrays(frozen(bounds), low(ledger.base), frozen(ledger.ts), frozen(ledger.order), frozen(hidden))
        rows, starts = columns[:2]
        status = np.zeros(len(rows), np.uint8)
        length = int((self.size[rows] + np.diff(starts)).max(initial=0))
        places = 2 * (length + int(self.k[rows].max(initial=0))) + 8
        events = max(EVENTS, 2 * length)
        made = AnswerEvents(*(np.empty(events, kind) for kind in (np.int64, np.uint32, np.float64, np.int32, np.int8)))
        told: list[list[np.ndarray]] = []
        at = 0
        while at < len(rows):
            if len(self._numbers) - self._free[0] < places:
                self._grow(4 * places)
            at, n = advance_buffers(
                brought, refilled, judged, dominance, self._written(), posts, status, made, at, length
            )
            told.append([column[:n].copy() for column in made])
        row, number, score, rank, sign = (
            (np.concatenate(column) for column in zip(*told, strict=True)) if told else (column[:0] for column in made)
        )
        entered, left = (Changes(*(column[sign == each] for column in (row, number, score, rank))) for each in (1, -1))
        return Step(self.stale(), rows[status == MOVED], entered, left, len(rows))


def advance(
    buffers: Buffers,
    ledger: Ordered,
    bounds: np.ndarray,
    arrivals: BufferArrivals,
    policy: Policy,
    *,
    deleted: np.ndarray | None = None,
    renew: np.ndarray | None = None,
) -> Step:
    """Move buffers on by a batch: posts arrive, posts with an order below the bound of the row's window expire, and
    those whose numbers are among `deleted` go. Rows to `renew` (another version of the idf is due) are short by this.

    A bound may not fall from batch to batch by more than the ledger's orders do: what has expired stays so.
    """
    if renew is not None:
        buffers.version[renew] = STALE
    hidden = concealed(ledger, deleted)
    rows, starts = buffers.touched(ledger, bounds, arrivals, hidden)
    raised = np.full(len(rows), -1.0)
    batch = (rows, starts, arrivals.numbers, arrivals.scores, raised)
    room = _room(buffers, rows, policy)
    return buffers.settle(ledger, bounds, batch, room, hidden, refilled=False, judged=True, dominance=policy.dominance)


def refill(buffers: Buffers, ledger: Ordered, bounds: np.ndarray, refills: Refills, policy: Policy) -> Step:
    """Fill rows anew; what they held until now is what they are compared with."""
    buffers.version[refills.rows] = refills.version
    room = _room(buffers, refills.rows, policy)
    hidden = np.empty(0, np.bool_)
    return buffers.settle(
        ledger, bounds, refills.batch(), room, hidden, refilled=True, judged=True, dominance=policy.dominance
    )


def restore(
    buffers: Buffers,
    ledger: Ordered,
    bounds: np.ndarray,
    given: Refills,
    *,
    anew: bool,
    deleted: np.ndarray | None = None,
    dominance: bool = True,
) -> None:
    """Bring rows to where batches have led them, at once: a buffer is a function of its theta, window, and the posts
    that came to it since it was last filled, those it was filled with included.

    `given` has those posts (in any order, maybe twice, also such as have expired or been evicted since), and the theta
    of now. Rows not filled since they were as `buffers` has them (not `anew`) keep their version, and what they have
    counts as well. `deleted` are numbers of all posts deleted since. Nothing is decided: no theta moves further, and no
    row is short. Bit for bit what `advance` and `refill` made of the same.
    """
    hidden = concealed(ledger, deleted)
    if anew:
        buffers.version[given.rows] = given.version
    room = np.full(len(given.rows), NO_LIMIT)
    flags = {"refilled": anew, "judged": False, "dominance": dominance}
    buffers.settle(ledger, bounds, given.batch(), (room, room), hidden, **flags)


def _room(buffers: Buffers, rows: np.ndarray, policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    return policy.room(np.maximum(buffers.k[rows], 1), buffers.window[rows])


def concealed(ledger: Ordered, deleted: np.ndarray | None) -> np.ndarray:
    """Which posts of the ledger are among these numbers; empty where none is."""
    if deleted is None or not len(deleted):
        return np.empty(0, np.bool_)
    hidden = np.zeros(len(ledger.order), np.bool_)
    places = (np.asarray(deleted, np.int64) - ledger.base) & LOW
    hidden[places[places < len(hidden)]] = True
    return hidden


def low(base: int) -> np.int64:
    return np.int64(base) & LOW


def whole(numbers: np.ndarray, ledger: Ordered) -> np.ndarray:
    """Numbers whose low 32 bits these are, of posts that are in the ledger or lately were."""
    return ledger.base + (numbers.astype(np.int64) - low(ledger.base)).astype(np.int32).astype(np.int64)
