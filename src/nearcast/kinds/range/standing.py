"""Subscriptions to every post that meets the conditions (SSTD's CRQ, PS2Stream, Tornado) in a batch.

Each is kept by the workers whose leaves it concerns. A worker matches the posts that come to its leaves, and of the
pairs that it finds it reports those that are its own to report.
"""

from collections.abc import Sequence

import numpy as np

from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan, write_segment
from nearcast.engine.match_results import results_of
from nearcast.engine.op_packets import HOME, KEEPS, STORES
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.previous_table import LEAF
from nearcast.engine.roles import Standing, StandingRole
from nearcast.engine.task import Task
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.kinds.range import KIND
from nearcast.kinds.range.merge import drop_repeated
from nearcast.storage.manifest import SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.outbox import MATCH, Results
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches, Segment


class RangeStanding(Standing):
    """`own` are the new subscriptions that this worker keeps, `looking` those that catch up with posts it stores."""

    def __init__(self, role: StandingRole, task: Task, ops: Resolved | None) -> None:
        self.own: dict[str, Segment] = {}
        self.looking: Segment | None = None
        super().__init__(role, task, ops)

    def file(self, new: Rows) -> None:
        """Index and write the new subscriptions that concern this worker's leaves."""
        assert self.ops is not None
        plan, roles = self.task.plan, self.ops.roles[self.ops.places(KIND)]
        mine, looking = np.flatnonzero(roles & KEEPS), np.flatnonzero(roles & STORES)
        if len(looking):  # at posts that this worker stores, whoever keeps the subscriptions
            self.looking = Segment.build(new, plan.filing, looking)
        if len(mine):
            rows = Rows(**{**new.__dict__, "home": (roles & HOME != 0).astype(np.uint8)})
            segment = Segment.build(rows, plan.filing, mine)
            name, size = write_segment(plan, segment, self.task.worker)
            self.own = {name: segment}
            self.task.add(SUBSCRIPTIONS, name, len(segment), size)
            self.task.result.count(filed=len(segment))

    def catch_up(self) -> list[Results]:
        new = self.looking or next(iter(self.own.values()), None)
        if new is None or self.ops is None:
            return []
        found, ends = [], self.ops.ends.of(new)
        for segment, rows in self.task.kept_posts(int(new.rows.start.min()), self.ops.deletes):
            matches = new.match(segment.columns(rows), ends, self.task.first_post)
            if len(matches.posts):
                hit, back = np.unique(matches.posts, return_inverse=True)
                pairs = Matches(back, matches.rows, matches.candidates)
                found.append(results_of([(new.rows, pairs)], segment.take(rows[hit]), MATCH, self.task.plan.batch))
        return found

    def match(self, posts: Arrivals) -> list[Results]:
        result, plan = self.task.result, self.task.plan
        with result.timed("match"):
            wanted = posts.wanted(KIND)
            found = self.subscriptions(self.own).match(posts.columns, wanted)
            found = [(rows, self.reported(rows, matches, posts)) for rows, matches in found]
            result.count(candidates=sum(m.candidates for _, m in found), tried=len(wanted))
        with result.timed("results"):
            return [results_of(found, posts.posts, MATCH, plan.batch, posts.late)]

    def reported(self, rows: Rows, matches: Matches, posts: Arrivals) -> Matches:
        """Of the pairs found those that are this worker's to report."""
        plan, worker = self.task.plan, self.task.worker
        router, previous, workers = plan.router, plan.previous, plan.settings.workers
        if not plan.shares:
            return matches
        if previous is not None:
            leaves = posts.leaves, posts.table[LEAF].to_numpy()
            return previous.reported(router, matches, rows, posts.columns, leaves, worker, workers)
        return router.reported(matches, rows, posts.columns, posts.leaves, worker, workers)


class RangeStandingRole(StandingRole):
    kind = KIND

    def open(self, task: Task, ops: Resolved | None) -> Standing:
        return RangeStanding(self, task, ops)

    def second_round(
        self, plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
    ) -> list[SegmentRef]:
        drop_repeated(plan, tasks)
        return []

    def write(self, plan: BatchPlan, rows: Rows, worker: int) -> SegmentRef:
        segment = Segment.build(rows, plan.filing)
        name, size = write_segment(plan, segment, worker)
        return SegmentRef(SUBSCRIPTIONS, name, len(segment), size, plan.batch, worker)


ROLE = RangeStandingRole()
