"""Commit: the task results of a batch become the next manifest, or nothing happened."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nearcast.common.kinds import kinds
from nearcast.engine.balance_effects import judged, timed
from nearcast.engine.batch import BatchPlan
from nearcast.engine.load_notes import KEPT
from nearcast.engine.settings import KEEP_SIZE
from nearcast.engine.task_result import TaskResult
from nearcast.storage.deletes import still_needed
from nearcast.storage.manifest import RESULTS, SEARCHES, STATISTICS, Manifest, SegmentRef, commit


def commit_batch(
    plan: BatchPlan,
    query_id: str,
    tasks: Sequence[TaskResult],
    extra: Sequence[SegmentRef] = (),
    seconds: float | None = None,
) -> Manifest:
    """Commit `following`."""
    return commit(plan.state.manifests, plan.manifest, following(plan, query_id, tasks, extra, seconds))


def following(
    plan: BatchPlan,
    query_id: str,
    tasks: Sequence[TaskResult],
    extra: Sequence[SegmentRef] = (),
    seconds: float | None = None,
) -> Manifest:
    """The manifest after the batch. `extra` are segments of the driver and of the second round; `seconds` is how long
    the batch has taken so far.
    """
    before = plan.manifest
    tasks = sorted(tasks, key=lambda task: task.worker)
    gone = [name for task in tasks for name in task.gone]
    new = [ref for task in tasks for ref in task.segments] + list(extra)
    for kind in kinds():
        new = kind.standing.number(new, before.segments)
    new, next_seq = number_results(timed(new, seconds), before.next_seq)
    counts = dict(before.counts)
    for task in tasks:
        for name, value in task.counts.items():
            counts[name] = counts.get(name, 0) + value
    counts["results"] = next_seq
    counts["batches"] = counts.get("batches", 0) + 1
    clocks = [task.clock for task in tasks if task.clock is not None]
    clock = max([*clocks, *([] if before.clock is None else [before.clock])], default=None)
    segments = recent(still_needed(before.replacing(gone, new)), plan.batch)
    for kind in kinds():
        segments = kind.standing.retain(segments)
    return replace(
        before,
        query_id=query_id,
        batch=plan.batch,
        clock=clock,
        next_seq=next_seq,
        next_op=before.next_op + max((task.ops for task in tasks), default=0),
        counts=counts,
        settings=settings_after(plan, tasks, segments),
        load=[worker_load(task) for task in tasks],
        aligned=plan.layout,
        adjustments=judged(before.adjustments, segments),
        segments=tuple(segments),
    )


def settings_after(plan: BatchPlan, tasks: Sequence[TaskResult], segments: Sequence[SegmentRef]) -> dict[str, Any]:
    """The settings of the state, with the budget of the run that goes on, and what the kinds keep among them."""
    changed: dict[str, Any] = {KEEP_SIZE: plan.settings.keep_size}
    for kind in kinds():
        changed |= kind.standing.settings(plan.manifest, segments, tasks)
    return {name: value for name, value in {**plan.manifest.settings, **changed}.items() if value is not None}


def recent(refs: Sequence[SegmentRef], batch: int) -> list[SegmentRef]:
    """The segments but the notes of batches long ago; of searches, those of the last that had any."""
    asked = sorted({ref.batch for ref in refs if ref.kind == SEARCHES})[-KEPT:]
    since = {STATISTICS: batch - KEPT + 1, SEARCHES: asked[0] if asked else 0}
    return [ref for ref in refs if ref.batch >= since.get(ref.kind, ref.batch)]


def number_results(refs: list[SegmentRef], next_seq: int) -> tuple[list[SegmentRef], int]:
    """Give new results their place in the outbox; merged ones have theirs."""
    out = []
    for ref in refs:
        if ref.kind == RESULTS and "seq" not in ref.facts:
            ref = replace(ref, facts={**ref.facts, "seq": next_seq})
            next_seq += ref.rows
        out.append(ref)
    return out, next_seq


def worker_load(task: TaskResult) -> dict[str, float]:
    """What a worker did in its last batch, for `status` and for balancing."""
    kept = ("posts", "tried", "candidates", "matches", "stored")
    load: dict[str, float] = {"worker": task.worker}
    load.update({name: task.counts.get(name, 0) for name in kept})
    load["seconds"] = round(sum(task.seconds.values()), 4)
    return load
