"""The buffers whose home one worker is, in the memory of a process: a cache of what the log of changes leads to.

No process owns them. Whoever settles a share brings what it remembers up to the committed log, or begins from nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.engine.batch import BatchPlan
from nearcast.kinds.relevance.buffers import BASE, NEW, BufferChange, Thresholds, gathered, of_share
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.skyband import BufferArrivals, Buffers, Refills, restore
from nearcast.kinds.relevance.subscribers import Subscribers

MANY = 8  # shares that a process remembers


@dataclass
class BufferShare:
    """Rows of `buffers` are of the subscribers `seq`. `names` are the files that have been applied."""

    worker: int
    shares: int
    names: frozenset[str]
    seq: np.ndarray
    windows: np.ndarray  # (posts, length) of each kind there is: what `buffers.window` counts
    buffers: Buffers
    batch: int = -1  # that it was settled in last
    tidy: bool = True  # few of its rows have ended

    @classmethod
    def empty(cls, worker: int, shares: int) -> "BufferShare":
        none = np.empty(0, np.int64)
        return cls(worker, shares, frozenset(), none, np.empty((0, 2), np.int64), Buffers.new(none, none))

    @classmethod
    def open(cls, plan: BatchPlan, worker: int, subscribers: Subscribers) -> "BufferShare":
        """As it was after the batch before."""
        shares = plan.settings.workers
        refs = of_share(plan.manifest, worker, shares)
        names = frozenset(ref.name for ref in refs)
        key = (plan.root, worker, shares)
        known = _shares.pop(key, None)
        if known is not None and known.batch > plan.manifest.batch:  # of a try that was not committed
            known = None
        if (
            known is None
            or not known.names <= names
            or any(ref.facts[BASE] for ref in refs if ref.name not in known.names)
        ):
            known = cls.empty(worker, shares)
        if known.batch < plan.manifest.batch:
            ledger = Ledger.open(plan.state, plan.manifest)
            fresh = [BufferChange.open(plan.state, ref) for ref in refs if ref.name not in known.names]
            if fresh:
                known.apply(fresh, subscribers, ledger)
            known.expire(ledger)
            known.names = names
        return known

    def remember(self, plan: BatchPlan) -> None:
        """Keep it for the next batch, but where reading it again tidies it up; until then no one else has it."""
        if not self.tidy:
            return
        self.batch = plan.batch
        while len(_shares) >= MANY:
            del _shares[next(iter(_shares))]
        _shares[plan.root, self.worker, self.shares] = self

    def __len__(self) -> int:
        return len(self.seq)

    def rows(self, seqs: np.ndarray) -> np.ndarray:
        """Where some subscribers are; -1 for those that are not here."""
        if not len(self.seq):
            return np.full(len(seqs), -1, np.int64)
        if len(self.seq) > 1 and (self.seq[1:] < self.seq[:-1]).any():  # some have waited longer than later ones
            order = np.argsort(self.seq, kind="stable")
            at = order[np.minimum(np.searchsorted(self.seq, seqs, sorter=order), len(order) - 1)]
        else:
            at = np.minimum(np.searchsorted(self.seq, seqs), len(self.seq) - 1)
        return np.where(self.seq[at] == seqs, at, -1)

    def mine(self, seqs: np.ndarray) -> np.ndarray:
        return seqs % self.shares == self.worker

    def bounds(self, ledger: Ledger) -> np.ndarray:
        """The least order inside each kind of window."""
        return ledger.bounds(self.windows[:, 0], self.windows[:, 1])

    def add(self, seqs: np.ndarray, subscribers: Subscribers) -> None:
        """Rows for new subscribers, which have not been filled."""
        at = subscribers.places(seqs)
        posts, length = subscribers.windows
        asked = np.stack([posts[at], length[at]], axis=1)
        kinds, back = np.unique(np.concatenate([self.windows, asked]), axis=0, return_inverse=True)
        if len(kinds) > len(self.windows):  # those known keep their numbers
            known = back.reshape(-1)[: len(self.windows)]
            new = np.setdiff1d(np.arange(len(kinds)), known)
            numbers = np.empty(len(kinds), np.int64)
            numbers[known], numbers[new] = np.arange(len(known)), len(known) + np.arange(len(new))
            self.windows = np.concatenate([self.windows, kinds[new]])
            window = numbers[back.reshape(-1)[len(known) :]]
        else:
            place = back.reshape(-1)
            numbers = np.empty(len(kinds), np.int64)
            numbers[place[: len(self.windows)]] = np.arange(len(self.windows))
            window = numbers[place[len(self.windows) :]]
        self.buffers.add(subscribers.k[at], window)
        self.seq = np.concatenate([self.seq, seqs])

    # -- the log -------------------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[BufferChange], subscribers: Subscribers, ledger: Ledger) -> None:
        """Take up what the log says, as of the batch whose ledger this is."""
        last = Thresholds.none().after(changes)
        own = self.mine(last.seq) & (subscribers.places(last.seq) >= 0)
        last = Thresholds(last.seq[own], last.theta[own], last.version[own])
        ended = self.rows(last.seq[last.version == NEW])
        self.buffers.end(ended[ended >= 0])
        stands = last.version != NEW
        last = Thresholds(last.seq[stands], last.theta[stands], last.version[stands])
        self.add(last.seq[self.rows(last.seq) < 0], subscribers)
        bounds = self.bounds(ledger)

        filled = np.unique(np.concatenate([change.filled for change in changes]))
        filled = filled[np.isin(filled, last.seq)]
        came = np.unique(np.concatenate([*(change.came_seq for change in changes), last.seq]))
        others = came[self.mine(came) & (self.rows(came) >= 0) & ~np.isin(came, filled)]
        for seqs, anew in ((filled, True), (others, False)):
            if not len(seqs):
                continue
            rows = self.rows(seqs)
            given = self._given(gathered(changes, seqs), seqs, rows, last)
            restore(self.buffers, ledger, bounds, given, anew=anew, deleted=ledger.deleted)

    def expire(self, ledger: Ledger) -> None:
        """Drop what had left the windows by then: others have told of it."""
        bounds, none = self.bounds(ledger), BufferArrivals.none()
        rows, starts = self.buffers.touched(ledger, bounds, none, np.empty(0, np.bool_))
        version = self.buffers.version[rows]
        given = Refills(rows, self.buffers.theta[rows], version, starts, none.numbers, none.scores)
        restore(self.buffers, ledger, bounds, given, anew=False, deleted=ledger.deleted)

    def _given(
        self, entries: tuple[np.ndarray, np.ndarray, np.ndarray], seqs: np.ndarray, rows: np.ndarray, last: Thresholds
    ) -> Refills:
        """Posts of the log for rows, with the thresholds they lead to."""
        place, numbers, scores = entries
        order = np.argsort(rows[place], kind="stable")
        by_row = np.argsort(rows, kind="stable")
        sizes = np.bincount(place, minlength=len(rows))[by_row]
        at = np.minimum(np.searchsorted(last.seq, seqs), max(len(last.seq) - 1, 0))
        known = last.seq[at] == seqs if len(last.seq) else np.zeros(len(seqs), np.bool_)
        theta = np.where(known, last.theta[at], self.buffers.theta[rows]) if known.any() else self.buffers.theta[rows]
        version = np.where(known, last.version[at], 0) if known.any() else np.zeros(len(seqs), np.int32)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Refills(
            rows[by_row], theta[by_row], version[by_row].astype(np.int32), starts,
            numbers[order].astype(np.uint32), scores[order],
        )  # fmt: skip


_shares: dict[tuple[str, int, int], BufferShare] = {}
