"""Dissemination (Skype §5): the posts of a batch, matched with the subscribers that a worker holds.

The index lives in the memory of a process, as a cache: it is taken from batch to batch by what has changed, and made
anew where it is missing or too much has.
"""

import uuid
from dataclasses import dataclass, field

import numpy as np

from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.kinds.relevance.buffers import NEW, Thresholds
from nearcast.kinds.relevance.conditions import among, meeting
from nearcast.kinds.relevance.distributions.protocol import Distribution
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.index import build
from nearcast.kinds.relevance.ledger import Ledger, first_number
from nearcast.kinds.relevance.matcher import Matcher
from nearcast.kinds.relevance.placement import open_distribution
from nearcast.kinds.relevance.subscribers import Subscribers, open_subscribers, which_stand
from nearcast.kinds.relevance.thresholds import open_thresholds
from nearcast.kinds.relevance.vectors import Idf, Profiles
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import Manifest, SegmentRef

NO_MORE = np.inf  # the threshold of a subscriber that takes nothing
REBUILD = 0.3  # of the subscribers that an index has: if more have changed, it is made anew
CANDIDATES = "relevance candidates"  # files in the spool: what may enter answers
MANY = 8  # workers, for which a process has worked
NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Match:
    """The round of one worker, as a function of its number: candidates go to the spool, for `settle`."""

    plan: BatchPlan
    after: Manifest
    noted: tuple[SegmentRef, ...]  # segments of the ledger with the batch's posts

    def __call__(self, worker: int) -> TaskResult:
        done = TaskResult(worker)
        with done.timed("relevance: match"):
            found = self._found(worker, done)
            if len(found["seq"]):
                path = self.plan.spool / f"ranked-{uuid.uuid4().hex}.arrow"
                write_table(path, bundle_table(found))
                done.leave(CANDIDATES, path.name)
        return done

    def _found(self, worker: int, done: TaskResult) -> dict[str, np.ndarray]:
        plan = self.plan
        subscribers = open_subscribers(plan, self.after)
        thresholds = open_thresholds(plan, plan.manifest)
        held = Held.of(plan, worker)
        held.follow(plan, self.after, subscribers, thresholds, which_stand(plan, self.after, subscribers))
        ledger = Ledger.open(plan.state, self.after)
        versions = IdfSet(plan.state, self.after)
        spread = open_distribution(plan, self.after)
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for ref in self.noted:
            for version, index in held.indexes.items():
                vectors = ledger.vectors(ref, versions.at(version))
                looked_at = np.arange(len(vectors))
                if spread is not None:
                    looked_at = np.flatnonzero(spread.targets(vectors)[:, worker])
                pairs = index.matcher.match(vectors if len(looked_at) == len(vectors) else vectors.take(looked_at))
                seqs, posts = index.seq[pairs.rows], looked_at[pairs.posts]
                keep = self._meet(subscribers, ledger, ref, seqs, posts)
                parts.append((seqs[keep], first_number(ref) + posts[keep], pairs.scores[keep]))
                done.count(relevance_candidates=pairs.looked, relevance_messages=len(looked_at))
        empty = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        columns = (np.concatenate([part[i] for part in [empty, *parts]]) for i in range(3))
        return dict(zip(("seq", "number", "score"), columns, strict=True))

    def _meet(
        self, subscribers: Subscribers, ledger: Ledger, ref: SegmentRef, seqs: np.ndarray, posts: np.ndarray
    ) -> np.ndarray:
        """Which pairs meet the WHERE of their subscription."""
        at = subscribers.places(seqs)
        keep = np.ones(len(seqs), np.bool_)
        some = np.flatnonzero(subscribers.conditional[at])
        if len(some):
            rows, back = np.unique(at[some], return_inverse=True)
            take = ledger.taker(first_number(ref))
            allowed = meeting(subscribers.rows.take(rows), ledger.columns(ref.name), take)
            keep[some] = among(back, posts[some], allowed)
        return keep


_held: dict[tuple[str, int, int], "Held"] = {}


@dataclass
class Held:
    """What one worker holds, in this process."""

    worker: int
    indexes: dict[int, "Index"] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: BatchPlan, worker: int) -> "Held":
        key = (plan.root, worker, plan.settings.workers)
        if key not in _held:
            if len(_held) > MANY:
                _held.clear()
            _held[key] = cls(worker)
        return _held[key]

    def follow(
        self, plan: BatchPlan, after: Manifest, subscribers: Subscribers, thresholds: Thresholds, stand: np.ndarray
    ) -> None:
        """Bring the indexes to the thresholds that are committed; new subscribers have none yet, and wait."""
        at = subscribers.places(thresholds.seq)
        there = (at >= 0) & (thresholds.version != NEW)
        there[there] = stand[at[there]]
        used = np.unique(thresholds.version[there]).tolist()
        self.indexes = {version: index for version, index in self.indexes.items() if version in used}
        spread, versions = open_distribution(plan, after), IdfSet(plan.state, after)
        for version in used:
            some = np.flatnonzero(there & (thresholds.version == version))
            wanted = Wanted(thresholds.seq[some], thresholds.theta[some], at[some], subscribers, versions.at(version))
            known = self.indexes.get(version)
            followed = known is not None and known.spread is spread and known.follow(wanted, self.worker)
            if not followed:
                self.indexes[version] = Index.of(wanted, spread, self.worker)


@dataclass(frozen=True)
class Wanted:
    """The subscribers of one version that stand, by `seq`, with their thresholds and their places among all."""

    seq: np.ndarray
    theta: np.ndarray
    at: np.ndarray
    subscribers: Subscribers
    idf: Idf

    def profiles(self, picked: np.ndarray) -> Profiles:
        return self.subscribers.profiles(self.at[picked], self.idf)


@dataclass
class Index:
    """Those of them that a worker holds: `seq` by row of the matcher. Those that have left have a threshold of NO_MORE.
    `seen` are all that were looked at, held or not, with their thresholds then.
    """

    spread: Distribution | None
    seq: np.ndarray
    matcher: Matcher
    seen: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, wanted: Wanted, spread: Distribution | None, worker: int) -> "Index":
        profiles = wanted.profiles(np.arange(len(wanted.seq)))
        mine = held_by(spread, profiles, wanted.theta, wanted.seq, worker)
        some = profiles if len(mine) == len(profiles) else profiles.take(mine)
        return cls(spread, wanted.seq[mine], build(some, wanted.theta[mine]), (wanted.seq, wanted.theta))

    def follow(self, wanted: Wanted, worker: int) -> bool:
        """Take up what has changed; False if that is too much."""
        seq, theta = self.seen
        place = np.minimum(np.searchsorted(seq, wanted.seq), max(len(seq) - 1, 0))
        known = seq[place] == wanted.seq if len(seq) else np.zeros(len(wanted.seq), np.bool_)
        changed = np.flatnonzero(~(known & (theta[place] == wanted.theta))) if len(seq) else np.arange(len(wanted.seq))
        gone = NONE
        if known.sum() < len(seq):
            last = np.append(wanted.seq, -1)
            gone = np.flatnonzero(last[np.searchsorted(wanted.seq, self.seq)] != self.seq)
        if len(changed) + len(gone) > REBUILD * max(len(self.seq), 1):
            return False
        if len(gone):
            self.matcher.set_theta(gone, np.full(len(gone), NO_MORE))
        if len(changed):
            order = np.argsort(self.seq, kind="stable")
            asked = wanted.seq[changed]
            at = np.minimum(np.searchsorted(self.seq, asked, sorter=order), max(len(order) - 1, 0))
            row = order[at] if len(order) else at
            known = self.seq[row] == asked if len(order) else np.zeros(len(asked), np.bool_)
            self.matcher.set_theta(row[known], wanted.theta[changed[known]])
            self._add(wanted, changed[~known], worker)
        self.seen = (wanted.seq, wanted.theta)
        return True

    def _add(self, wanted: Wanted, rows: np.ndarray, worker: int) -> None:
        profiles = wanted.profiles(rows)
        mine = held_by(self.spread, profiles, wanted.theta[rows], wanted.seq[rows], worker)
        if len(mine):
            self.matcher.add(profiles.take(mine), wanted.theta[rows[mine]])
            self.seq = np.concatenate([self.seq, wanted.seq[rows[mine]]])


def held_by(
    spread: Distribution | None, profiles: Profiles, theta: np.ndarray, seq: np.ndarray, worker: int
) -> np.ndarray:
    """Which of some subscribers a worker holds."""
    if spread is None:
        return np.arange(len(profiles))
    return np.flatnonzero(spread.holders(profiles, theta, seq)[:, worker])
