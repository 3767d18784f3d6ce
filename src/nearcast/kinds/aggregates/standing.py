"""Standing aggregates in a batch (STAR §5).

A worker counts the posts that it stores, by series and interval (`kinds.aggregates.series`), and writes what they add
as one file of the batch. A new series looks at the posts already kept. Reports add up such files in the second round of
a batch (`kinds.aggregates.reports`).
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.roles import Standing, StandingRole
from nearcast.engine.routing_view import RoutingView
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.engine.task import Task
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.kinds.aggregates import KIND
from nearcast.kinds.aggregates.condition_index import take_posts
from nearcast.kinds.aggregates.counting import SeriesCounting, counting_of, open_aggregates
from nearcast.kinds.aggregates.interval_counts import Partials
from nearcast.kinds.aggregates.recount import recount
from nearcast.kinds.aggregates.series import Aggregates
from nearcast.kinds.aggregates.state import merge_partials
from nearcast.storage.manifest import PARTIALS, Manifest, SegmentRef
from nearcast.storage.outbox import Results
from nearcast.storage.subscriptions.rows import Rows

MANY_POSTS = 200_000  # of kept posts are looked at at once


class AggregatesStanding(Standing):
    """Those of the manifest that still report, and those that the batch adds."""

    def __init__(self, role: StandingRole, task: Task, ops: Resolved | None) -> None:
        self.standing = open_aggregates(task.plan, task.manifest)
        self.numbered: Rows | None = None  # the new ones, with their series
        self.found: list[Partials] = []
        self.bounds: list[tuple[int, int]] = []
        super().__init__(role, task, ops)

    @property
    def horizon(self) -> int:
        """Ticks before this have been reported."""
        clock = self.task.manifest.clock
        return BEGINNING if clock is None else clock - self.task.plan.settings.lateness

    def file(self, new: Rows) -> None:
        """As all kinds do, with the series that each is of."""
        self.numbered = Aggregates(new).numbered(self.standing, self.horizon)
        super().file(self.numbered)

    def catch_up(self) -> list[Results]:
        """New series look at the posts already kept that their reports may count."""
        if self.numbered is None or self.ops is None:
            return []
        begun = self.numbered.take(np.flatnonzero(self.numbered.ticks[:, 3] == self.numbered.seq))
        if not len(begun):
            return []
        counting = SeriesCounting(begun)
        for segment, rows in self.task.kept_posts(counting.since(begun), self.ops.deletes):
            for begin in range(0, len(rows), MANY_POSTS):
                some = rows[begin : begin + MANY_POSTS]
                self.add(counting.stored(segment, some), segment.ts_of(some))
        return []

    def match(self, posts: Arrivals) -> list[Results]:
        """Add the posts that this worker stores."""
        parts = [each.rows for each in self.standing] + ([] if self.numbered is None else [self.numbered])
        if any(len(each) for each in parts):
            with self.task.result.timed("aggregates"):
                picked = np.flatnonzero(posts.stored & posts.marked(KIND))
                if len(picked):
                    columns = take_posts(posts.columns, picked)
                    counting = counting_of(self.task.plan, Rows.join(parts))
                    self.add(counting.arriving(posts.posts.take(pa.array(picked)), columns), columns.ts)
        return []

    def add(self, found: Partials, ts: np.ndarray) -> None:
        if len(found):
            self.found.append(found)
            self.bounds.append((int(ts.min()), int(ts.max())))

    def write(self) -> None:
        """What the posts of the batch, and those that new series have looked at, add."""
        task = self.task
        with task.result.timed("aggregates"):
            whole = Partials.merged(self.found)
            if not len(whole):
                return
            name = task.new_name(PARTIALS)
            size = whole.write(task.plan.state.path(name))
            low, high = min(low for low, _ in self.bounds), max(high for _, high in self.bounds)
            ref = SegmentRef(PARTIALS, name, len(whole), size, task.plan.batch, task.worker, low, high)
            task.result.segments.append(ref)


class AggregatesStandingRole(StandingRole):
    kind = KIND

    def wants(self, plan: BatchPlan, posts: RoutingView) -> np.ndarray:
        """Where posts are stored anyway, the index of conditions is quicker than the textual summary."""
        return super().wants(plan, posts) if plan.settings.keep == "none" else posts.everything()

    def open(self, task: Task, ops: Resolved | None) -> Standing:
        return AggregatesStanding(self, task, ops)

    def second_round(
        self, plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
    ) -> list[SegmentRef]:
        return recount(plan, after, tasks)

    def compact(self, rewriting: Rewriting) -> None:
        if rewriting.worker == 0:
            merge_partials(rewriting)


ROLE = AggregatesStandingRole()
