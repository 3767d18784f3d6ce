"""What a kind of question does in a batch: the roles `standing` and `reports` of a kind (`common.kinds`).

A kind that has subscriptions subclasses `Standing`, what one worker does for them in one task, and `StandingRole`, what
the engine asks of the kind; the object `ROLE` of its module `standing` is an instance of the latter. Every method has a
default that does what most kinds do, or nothing. In the order of a batch:

1. `StandingRole.wants`, while posts are routed: which of them a subscription may want;
2. `StandingRole.open`, in each worker's task: `Standing` files new subscriptions, then `catch_up`, `match`, `write`;
3. `StandingRole.second_round`, on the driver, when all workers have written;
4. `StandingRole.number` and `StandingRole.retain`, as the next manifest is made;
5. `StandingRole.compact`, at the end of a task: files of its own as fewer and larger ones, and `StandingRole.rewrite`,
   of its segments of subscriptions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from nearcast.common.kinds import Kind
from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan, open_segments, write_segment
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.routing_view import RoutingView
from nearcast.engine.settings import Settings
from nearcast.engine.task import Task
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.engine.ticks import Due, TickReports
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.outbox import Results
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Segment
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet, read_logs

if TYPE_CHECKING:
    from nearcast.engine.segment_rewriter import Rewriting
    from nearcast.engine.subscription_compaction import SubscriptionCompaction


class Standing:
    """The subscriptions of one kind in one worker's task: those that stand, and those that the batch adds (`new`)."""

    def __init__(self, role: "StandingRole", task: Task, ops: Resolved | None) -> None:
        self.role, self.task, self.ops = role, task, ops
        self.new = None if ops is None else ops.of(role.kind)
        if self.new is not None and len(self.new):
            with task.result.timed("ops"):
                self.file(self.new)

    def file(self, new: Rows) -> None:
        """Write new subscriptions. Unless a kind has its own way, one segment serves all workers, and worker 0 writes
        it.
        """
        if self.task.worker == 0:
            self.task.result.segments.append(self.role.write(self.task.plan, new, 0))
            self.task.result.count(filed=len(new))

    def subscriptions(self, new: Mapping[str, Segment]) -> SubscriptionSet:
        """Those that stand, this worker's own where the kind is placed by leaves, and new ones by the names of their
        segments; with all that ends them.
        """
        task, kind = self.task, self.role.kind
        refs = [ref for ref in task.manifest.of(SUBSCRIPTIONS) if ref.asks == kind.code]
        names = [ref.name for ref in refs if not kind.placed or ref.owner == task.worker]
        ends = EndLog.empty() if self.ops is None else self.ops.ends
        logs = read_logs(task.plan.state, task.manifest)
        return SubscriptionSet({**open_segments(task.plan, names), **new}, ends, task.first_post, logs)

    def catch_up(self) -> list[Results]:
        """What new subscriptions find among the posts already kept. Only called where there are ops and kept posts.
        What an earlier subscription of the same id has had, the engine leaves out.
        """
        return []

    def match(self, posts: Arrivals) -> list[Results]:
        """What the posts of the batch bring."""
        return []

    def write(self) -> None:
        """Write what the second round and later batches need, and name it in the task's result."""


class StandingRole:
    """What the engine asks of a kind of question that may stand."""

    kind: Kind

    def wants(self, plan: BatchPlan, posts: RoutingView) -> np.ndarray:
        """Which of some posts on their way to the workers a subscription that stands may want."""
        return posts.may_match(plan, (self.kind.code,))

    def open(self, task: Task, ops: Resolved | None) -> Standing:
        """Its part of a worker's task."""
        return Standing(self, task, ops)

    def second_round(
        self, plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
    ) -> list[SegmentRef]:
        """The segments that come of what all workers have written. `after` is what the batch leads to so far."""
        return []

    # -- commit --------------------------------------------------------------------------------------------------------

    def begin(self, state: StateDirectory, settings: Settings, sample: pa.Table) -> list[SegmentRef]:
        """What a new state gets from a sample of the posts to come."""
        return []

    def number(self, new: list[SegmentRef], known: Sequence[SegmentRef]) -> list[SegmentRef]:
        """New segments with what only the commit knows, such as the number of their first row."""
        return new

    def retain(self, segments: list[SegmentRef]) -> list[SegmentRef]:
        """The segments without those that are not needed from this batch on."""
        return segments

    def settings(self, before: Manifest, segments: Sequence[SegmentRef], tasks: Sequence[TaskResult]) -> dict[str, Any]:
        """What it keeps among the settings of the state; None removes one."""
        return {}

    # -- compaction ----------------------------------------------------------------------------------------------------

    def compact(self, rewriting: "Rewriting") -> None:
        """Merge its files, and drop what nobody needs. Called for every worker, which takes what is its own."""

    def overdue(self, compaction: "SubscriptionCompaction", refs: list[SegmentRef]) -> list[SegmentRef]:
        """A segment of its live subscriptions that should be rewritten for a reason of its own, or none."""
        return []

    def rewrite(self, compaction: "SubscriptionCompaction", rows: Rows) -> Rows:
        """Subscriptions of segments that become one, without those that it no longer needs."""
        return rows

    def dropped(
        self, compaction: "SubscriptionCompaction", rows: Rows, over: np.ndarray, dead: np.ndarray
    ) -> np.ndarray:
        """Of ended subscriptions (`over`) those to be forgotten; `dead` are those that no late post can reach."""
        return dead

    def write(self, plan: BatchPlan, rows: Rows, worker: int) -> SegmentRef:
        """Write subscriptions as a segment: one for all workers, unless the kind is placed by leaves."""
        segment = Segment.build(rows, PYRAMID)
        name, size = write_segment(plan, segment, worker)
        return SegmentRef(SUBSCRIPTIONS, name, len(segment), size, plan.batch, facts={"asks": self.kind.code})


@dataclass(frozen=True)
class WarmUp:
    """Questions by which the kernels of a kind are compiled before they are needed (`engine.warmup`): the object `ROLE`
    of its module `warmup`. A text that looks like `pattern` (a regular expression), or a filled bulk column `column`,
    foretells a subscription of this kind.
    """

    standing: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    pattern: str = ""
    column: str = ""


class ReportsRole(Protocol):
    """What a kind reports on a tick: the object `ROLE` of its module `reports`."""

    def share(self, due: Due, worker: int, workers: int) -> Due:
        """The part of what is due that a worker counts."""
        ...

    def report(self, plan: BatchPlan, after: Manifest, due: Due) -> TickReports:
        """All reports that are due; all posts of the batch are stored in `after`."""
        ...
