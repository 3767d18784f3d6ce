"""The second round of a batch: what needs to see all that the workers have written, between work and commit."""

from collections.abc import Sequence
from dataclasses import replace

from nearcast.common.kinds import kinds
from nearcast.engine.batch import BatchPlan
from nearcast.engine.size_budget import keep_size
from nearcast.engine.stream_searches import answer_searches
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.engine.tick_reports import send_reports
from nearcast.storage.manifest import Manifest, SegmentRef


def second_round(
    plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
) -> list[SegmentRef]:
    """The new segments: of each kind in turn, of the reports on a tick, and of the searches of the stream; then what
    has no room leaves. `after` is what the first round leads to.
    """
    found: list[SegmentRef] = []
    for kind in kinds():
        new = kind.standing.second_round(plan, after, tasks, all_workers)
        after = replace(after, segments=(*after.segments, *new))
        found += new
    found += send_reports(plan, after, tasks, all_workers)
    found += answer_searches(plan, tasks)
    keep_size(plan, after, tasks, all_workers)
    return found
