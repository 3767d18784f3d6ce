"""The further rounds of a batch for subscriptions by relevance: fetch, match, settle; then what has no use leaves."""

from collections.abc import Sequence
from dataclasses import replace

from nearcast.engine.batch import BatchPlan
from nearcast.engine.settings import LEDGER_SINCE
from nearcast.engine.task_result import AllWorkers, TaskResult, add_round, files_left
from nearcast.kinds.relevance.buffer_round import AdvanceBuffers
from nearcast.kinds.relevance.ledger import first_number
from nearcast.kinds.relevance.ledger_maintenance import fetch, spent
from nearcast.kinds.relevance.matching import CANDIDATES, Match
from nearcast.kinds.relevance.placement import distribute, is_fitting
from nearcast.kinds.relevance.subscribers import relevant_refs
from nearcast.kinds.relevance.thresholds import open_thresholds
from nearcast.storage.manifest import BUFFERS, DISTRIBUTION, LEDGER, Manifest, SegmentRef


def rank(plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers) -> list[SegmentRef]:
    """The segments that keep answers by relevance; `after` is what the batch leads to so far."""
    if not relevant_refs(after) or after.clock is None:
        tasks[0].gone += [ref.name for kind in (LEDGER, BUFFERS, DISTRIBUTION) for ref in after.of(kind)]
        return []
    noted = tuple(ref for ref in sorted(after.of(LEDGER), key=first_number) if ref.batch == plan.batch)
    fetched, since = fetch(plan, after, all_workers)
    tasks[0].note(LEDGER_SINCE, [since])
    found = list(fetched)
    after = replace(after, segments=(*after.segments, *found))

    candidates: list[str] = []
    if noted and len(open_thresholds(plan, plan.manifest).seq):
        if not is_fitting(plan, after):
            tasks[0].gone += [ref.name for ref in after.of(DISTRIBUTION)]
            found.append(distribute(plan, after))
            after = replace(after, segments=(*after.segments, found[-1]))
        candidates = files_left(add_round(tasks, all_workers(Match(plan, after, noted))), CANDIDATES)
    advanced = add_round(tasks, all_workers(AdvanceBuffers(plan, after, tuple(candidates))))
    found += [ref for task in advanced for ref in task.segments]
    tasks[0].gone += [name for task in advanced for name in task.gone]

    gone, since_then = spent(after)
    tasks[0].gone += gone
    tasks[0].note(LEDGER_SINCE, [] if since_then is None else [since_then])
    return [ref for ref in found if ref.name not in gone]
