"""Commit: the reports of a batch become the next manifest, or nothing happened."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nearcast.common.op_schema import BEGINNING
from nearcast.engine.balance_effects import judged, timed
from nearcast.engine.batch import Plan
from nearcast.engine.load_notes import KEPT
from nearcast.engine.settings import KEEP_SIZE, LEDGER_SINCE
from nearcast.engine.task_result import Report
from nearcast.kinds.relevance.idf_versions import kept_versions
from nearcast.kinds.relevance.ledger_maintenance import numbered
from nearcast.storage.deletes import still_needed
from nearcast.storage.manifest import LEDGER, RESULTS, SEARCHES, STATISTICS, Manifest, SegmentRef, commit


def commit_batch(
    plan: Plan,
    query_id: str,
    reports: Sequence[Report],
    extra: Sequence[SegmentRef] = (),
    seconds: float | None = None,
) -> Manifest:
    """Commit `following`."""
    return commit(plan.state.manifests, plan.manifest, following(plan, query_id, reports, extra, seconds))


def following(
    plan: Plan,
    query_id: str,
    reports: Sequence[Report],
    extra: Sequence[SegmentRef] = (),
    seconds: float | None = None,
) -> Manifest:
    """The manifest after the batch. `extra` are segments of the driver and of the second round; `seconds` is how long
    the batch has taken so far.
    """
    before = plan.manifest
    reports = sorted(reports, key=lambda report: report.worker)
    gone = [name for report in reports for name in report.gone]
    new = numbered([ref for report in reports for ref in report.segments] + list(extra), before.segments)
    new, next_seq = number_results(timed(new, seconds), before.next_seq)
    counts = dict(before.counts)
    for report in reports:
        for name, value in report.counts.items():
            counts[name] = counts.get(name, 0) + value
    counts["results"] = next_seq
    counts["batches"] = counts.get("batches", 0) + 1
    clocks = [report.clock for report in reports if report.clock is not None]
    clock = max([*clocks, *([] if before.clock is None else [before.clock])], default=None)
    segments = kept_versions(recent(still_needed(before.replacing(gone, new)), plan.batch))
    return replace(
        before,
        query_id=query_id,
        batch=plan.batch,
        clock=clock,
        next_seq=next_seq,
        next_op=before.next_op + max((report.ops for report in reports), default=0),
        counts=counts,
        settings=noted(before, plan.settings.keep_size, reports, segments),
        load=[worker_load(report) for report in reports],
        aligned=plan.layout,
        adjustments=judged(before.adjustments, segments),
        segments=tuple(segments),
    )


def noted(
    before: Manifest, keep_size: int | None, reports: Sequence[Report], segments: Sequence[SegmentRef]
) -> dict[str, Any]:
    """The settings of the state, with the budget of the run that goes on, and how far back the ledger goes."""
    rest = {name: value for name, value in before.settings.items() if name not in (KEEP_SIZE, LEDGER_SINCE)}
    told = [report.ledger_since for report in reports if report.ledger_since is not None]
    if any(ref.kind == LEDGER for ref in segments):
        rest[LEDGER_SINCE] = max(told, default=before.settings.get(LEDGER_SINCE, BEGINNING))
    return rest if keep_size is None else {**rest, KEEP_SIZE: keep_size}


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


def worker_load(report: Report) -> dict[str, float]:
    """What a worker did in its last batch, for `status` and for balancing."""
    kept = ("posts", "tried", "candidates", "matches", "stored")
    load: dict[str, float] = {"worker": report.worker}
    load.update({name: report.counts.get(name, 0) for name in kept})
    load["seconds"] = round(sum(report.seconds.values()), 4)
    return load
