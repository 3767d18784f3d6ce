"""Settling (Skype §6): what came and what left the windows, for the buffers whose home a worker is.

Buffers that are left with too few, and those of new subscribers and of others that take up a new version of the idf,
are filled from all posts of their windows, this batch's included (Algorithm 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.kinds.relevance.buffer_share import BufferShare
from nearcast.kinds.relevance.buffers import NEW, BufferChange, of_share, wants_base
from nearcast.kinds.relevance.conditions import among, meeting
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.idf_maintenance import period_of
from nearcast.kinds.relevance.kernels.pyramid_cells import z_order
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.net_results import Net, write_net
from nearcast.kinds.relevance.skyband import BufferArrivals, Changes, Refills, Step, advance, refill, whole
from nearcast.kinds.relevance.skyband_policy import CostBased
from nearcast.kinds.relevance.subscribers import LAT, LON, open_subscribers, which_stand
from nearcast.kinds.relevance.threshold_cost import Rates
from nearcast.kinds.relevance.window_cache import open_window
from nearcast.kinds.relevance.window_index import Keep
from nearcast.storage.bundle import open_bundle
from nearcast.storage.manifest import Manifest

AT_ONCE = 50_000  # buffers that are filled together
ASKING_AT_ONCE = 200  # of those with conditions, each of which is checked for what any of them has found
MANY_RESULTS = 2_000_000
COST_OF_A_SEARCH = 30_000.0  # in entries of a buffer gone through: 400 and 0.013 microseconds


@dataclass(frozen=True)
class AdvanceBuffers:
    """The round of one worker, as a function of its number; `candidates` are what `match` left in the spool."""

    plan: BatchPlan
    after: Manifest
    candidates: tuple[str, ...]

    def __call__(self, worker: int) -> TaskResult:
        done = TaskResult(worker)
        with done.timed("relevance: settle"):
            Advancing(self.plan, self.after, worker, done).all(self.candidates)
        return done


class Advancing:
    def __init__(self, plan: BatchPlan, after: Manifest, worker: int, done: TaskResult) -> None:
        self.plan, self.after, self.done = plan, after, done
        self.subscribers = open_subscribers(plan, after)
        self.share = BufferShare.open(plan, worker, self.subscribers)
        self.ledger = Ledger.open(plan.state, after)
        self.versions = IdfSet(plan.state, after)
        self.net: list[Net] = []

    def all(self, candidates: Sequence[str]) -> None:
        share, stand = self.share, which_stand(self.plan, self.after, self.subscribers)
        ended = self._end(stand)
        own = np.flatnonzero(stand & share.mine(self.subscribers.seq))
        seqs = self.subscribers.seq[own]
        share.add(seqs[share.rows(seqs) < 0], self.subscribers)
        buffers, bounds = share.buffers, share.bounds(self.ledger)
        self.policy = policy_for(share.windows, self.ledger)
        was_theta, was_version = buffers.theta.copy(), buffers.version.copy()

        rows = np.flatnonzero(buffers.k > 0)
        at = self.subscribers.places(share.seq[rows])
        assert self.after.clock is not None
        since = self.after.clock - self.plan.settings.lateness  # as versions are frozen, or early ids would all wait
        due = self.versions.used(self.subscribers.keys[at], since, period_of(self.plan))
        renew = rows[due != buffers.version[rows]]
        arrivals = self._arrivals(candidates)
        deleted = self.ledger.deleted_in(self.plan.batch)
        step = advance(buffers, self.ledger, bounds, arrivals, self.policy, deleted=deleted, renew=renew)
        lost = step.left.rows[np.isin(whole(step.left.numbers, self.ledger), deleted)]  # which no log of posts tells
        self._tell(step, was_version)
        if len(step.short):
            version = np.zeros(len(share), np.int64)
            version[rows] = due
            self._fill(step.short, version, bounds, was_version)
        self._write(ended, np.union1d(step.short, lost), arrivals, was_theta, was_version)
        self._flush(whatever=True)
        self.done.count(refilled=len(step.short), settled=step.touched)
        share.remember(self.plan)

    def _end(self, stand: np.ndarray) -> np.ndarray:
        """The subscribers that stand no more: their answers leave. Their numbers."""
        share, buffers = self.share, self.share.buffers
        at = self.subscribers.places(share.seq)
        rows = np.flatnonzero((buffers.k > 0) & ((at < 0) | ~stand[np.maximum(at, 0)]))
        known = rows[at[rows] >= 0]
        starts, numbers, scores = buffers.answers(known)
        owner = np.repeat(known, np.diff(starts))
        ranks = np.arange(len(numbers)) - np.repeat(starts[:-1], np.diff(starts))
        self._add(Changes(owner, numbers, scores, ranks), buffers.version, entered=False)
        buffers.end(rows)
        return share.seq[rows]

    def _arrivals(self, candidates: Sequence[str]) -> BufferArrivals:
        """What the workers have found for this share, each pair once or more."""
        parts = [open_bundle(self.plan.spool / name) for name in candidates]
        none = {"seq": np.empty(0, np.int64), "number": np.empty(0, np.int64), "score": np.empty(0)}
        seq, number, score = (np.concatenate([np.asarray(p[name]) for p in [none, *parts]]) for name in none)
        own = np.flatnonzero(self.share.mine(seq))
        row = self.share.rows(seq[own])
        own, row = own[row >= 0], row[row >= 0]
        order = np.argsort(row, kind="stable")
        picked = own[order]
        return BufferArrivals(row[order], number[picked].astype(np.uint32), score[picked])

    # -- filling -------------------------------------------------------------------------------------------------------

    def _fill(self, rows: np.ndarray, version: np.ndarray, bounds: np.ndarray, was: np.ndarray) -> None:
        """Fill rows from the posts of their windows, neighbours together: they have many posts in common."""
        buffers = self.share.buffers
        at = self.subscribers.places(self.share.seq[rows])
        lon, lat = (frozen(self.subscribers.rows.scoring[at, column].copy()) for column in (LON, LAT))
        along = np.argsort(z_order(lon, lat), kind="stable")
        conditional = self.subscribers.conditional[at]
        for each in np.unique(version[rows]).tolist():
            for asking in (False, True):
                those = along[(version[rows[along]] == each) & (conditional[along] == asking)]
                at_once = ASKING_AT_ONCE if asking else AT_ONCE
                for begin in range(0, len(those), at_once):
                    some = np.sort(those[begin : begin + at_once])
                    refills = self._search(rows[some], at[some], each, bounds, asking)
                    step = refill(buffers, self.ledger, bounds, refills, self.policy)
                    self._tell(step, was)
                    self._flush()

    def _search(self, rows: np.ndarray, at: np.ndarray, version: int, bounds: np.ndarray, asking: bool) -> Refills:
        buffers, subscribers = self.share.buffers, self.subscribers
        window = open_window(self.ledger, self.versions, version)
        profiles = subscribers.profiles(at, self.versions.at(version))
        wanted = self.policy.wanted(profiles.k, buffers.window[rows])
        since = bounds[buffers.window[rows]]
        keep = self._keep(at) if asking else None
        found = window.best(profiles, np.arange(len(rows)), wanted, since, self.ledger, self.ledger.deleted, keep)
        theta = self.policy.thetas(profiles.k, found.starts, found.scores, wanted)
        versions = np.full(len(rows), version, np.int32)
        return Refills(rows, theta, versions, found.starts, found.numbers.astype(np.uint32), found.scores)

    def _keep(self, at: np.ndarray) -> Keep:
        """For subscribers with conditions: which posts meet them."""
        asking = self.subscribers.rows.take(at)

        def meets(rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
            if not len(numbers):
                return np.zeros(0, np.bool_)
            who, back = np.unique(rows, return_inverse=True)
            posts, place = np.unique(numbers, return_inverse=True)
            columns, ledger = self.ledger.columns_of(posts), self.ledger
            return among(back, place, meeting(asking.take(who), columns, lambda hit: ledger.take(posts[hit])))

        return meets

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def _tell(self, step: Step, was: np.ndarray) -> None:
        self._add(step.left, was, entered=False)
        self._add(step.entered, self.share.buffers.version, entered=True)

    def _add(self, changes: Changes, version: np.ndarray, entered: bool) -> None:
        at = self.subscribers.places(self.share.seq[changes.rows])
        numbers = whole(changes.numbers, self.ledger)
        flags = np.full(len(changes), entered)
        self.net.append(Net(at, numbers, changes.scores, changes.ranks, version[changes.rows], flags))

    def _flush(self, whatever: bool = False) -> None:
        """Write what has changed, if that is much."""
        if whatever or sum(len(net) for net in self.net) > MANY_RESULTS:
            write_net(self.plan, self.share.worker, joined(self.net), self.subscribers, self.ledger, self.done)
            self.net.clear()

    def _write(
        self, ended: np.ndarray, filled: np.ndarray, arrivals: BufferArrivals, theta: np.ndarray, version: np.ndarray
    ) -> None:
        """A delta of the batch, or a new base."""
        plan, share, buffers = self.plan, self.share, self.share.buffers
        refs = of_share(plan.manifest, share.worker, share.shares)
        if wants_base(refs, share.shares):
            live = np.flatnonzero(buffers.k > 0)
            change = self._change(live, live, np.empty(0, np.int64), arrivals)
            ref = change.write(plan.state, plan.batch, share.worker, share.shares, base=True)
            self.done.gone += [each.name for each in refs]
            share.names = frozenset([ref.name])
            share.tidy = 2 * len(live) >= len(share)
        else:
            moved = np.flatnonzero(((buffers.theta != theta) | (buffers.version != version)) & (buffers.k > 0))
            moved = np.union1d(moved, filled)
            came = np.flatnonzero(arrivals.scores >= np.minimum(theta, buffers.theta)[arrivals.rows])
            came = came[~np.isin(arrivals.rows[came], filled)]
            change = self._change(moved, filled, came, arrivals, ended)
            if not len(change):
                return
            ref = change.write(plan.state, plan.batch, share.worker, share.shares, base=False)
            share.names |= {ref.name}
        self.done.segments.append(ref)

    def _change(
        self,
        moved: np.ndarray,
        filled: np.ndarray,
        came: np.ndarray,
        arrivals: BufferArrivals,
        ended: np.ndarray | None = None,
    ) -> BufferChange:
        share, buffers = self.share, self.share.buffers
        gone = np.empty(0, np.int64) if ended is None else ended
        seq = np.concatenate([share.seq[moved], gone])
        theta = np.concatenate([buffers.theta[moved], np.full(len(gone), np.inf)])
        version = np.concatenate([buffers.version[moved], np.full(len(gone), NEW, np.int32)])
        order = np.argsort(seq, kind="stable")
        by_seq = filled[np.argsort(share.seq[filled], kind="stable")]
        starts, numbers, scores = buffers.members(by_seq)
        return BufferChange(
            seq[order], theta[order], version[order], share.seq[by_seq], starts, whole(numbers, self.ledger), scores,
            share.seq[arrivals.rows[came]], whole(arrivals.numbers[came], self.ledger), arrivals.scores[came],
        )  # fmt: skip


def policy_for(windows: np.ndarray, ledger: Ledger) -> CostBased:
    """The cost model, for windows (posts, length): in one of so many posts one leaves with each that comes; in one of
    time, as many leave as the last tenth of it has seen (Skype §6.3).
    """
    up = np.full(len(windows), 0.5)
    timed = np.flatnonzero(windows[:, 0] == 0)
    if len(timed) and len(ledger):
        times = ledger.ts[ledger.by_order - ledger.base]
        for at in timed.tolist():
            length = int(windows[at, 1])
            clock = int(times[-1])
            up[at] = Rates.of(times, clock, np.array([length]), max(1, length // 10)).arrivals[0]
    return CostBased(cost_of_a_search=COST_OF_A_SEARCH, arrivals=up, expiries=1.0 - up)


def joined(parts: Sequence[Net]) -> Net:
    names = ("at", "number", "score", "rank", "version", "entered")
    none = Net(*(np.empty(0, np.int64) for _ in names))
    at, number, score, rank, version, entered = (
        np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in names
    )
    return Net(at, number, score, rank, version, entered.astype(np.bool_))
