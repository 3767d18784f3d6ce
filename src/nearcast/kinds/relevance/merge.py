"""The further rounds of a batch for subscriptions by relevance: fetch, match, settle; then what has no use leaves."""

from collections.abc import Sequence
from dataclasses import replace

from nearcast.engine.batch import Plan
from nearcast.engine.task_result import Report, Round
from nearcast.kinds.relevance.buffer_round import Settle
from nearcast.kinds.relevance.ledger import first_number
from nearcast.kinds.relevance.ledger_maintenance import fetch, spent
from nearcast.kinds.relevance.matching import Match
from nearcast.kinds.relevance.placement import distribute, is_fitting
from nearcast.kinds.relevance.subscribers import relevant_refs
from nearcast.kinds.relevance.thresholds import open_thresholds
from nearcast.storage.manifest import BUFFERS, DISTRIBUTION, LEDGER, Manifest, SegmentRef


def rank(plan: Plan, after: Manifest, reports: Sequence[Report], all_workers: Round) -> list[SegmentRef]:
    """The segments that keep answers by relevance; `after` is what the batch leads to so far."""
    if not relevant_refs(after) or after.clock is None:
        reports[0].gone += [ref.name for kind in (LEDGER, BUFFERS, DISTRIBUTION) for ref in after.of(kind)]
        return []
    noted = tuple(ref for ref in sorted(after.of(LEDGER), key=first_number) if ref.batch == plan.batch)
    fetched, since = fetch(plan, after, all_workers)
    reports[0].ledger_since = since
    found = list(fetched)
    after = replace(after, segments=(*after.segments, *found))

    candidates: list[str] = []
    if noted and len(open_thresholds(plan, plan.manifest).seq):
        if not is_fitting(plan, after):
            reports[0].gone += [ref.name for ref in after.of(DISTRIBUTION)]
            found.append(distribute(plan, after))
            after = replace(after, segments=(*after.segments, found[-1]))
        matched = all_workers(Match(plan, after, noted))
        candidates = [name for report in matched for name in report.ranked]
        _add(reports, matched)
    settled = all_workers(Settle(plan, after, tuple(candidates)))
    _add(reports, settled)
    found += [ref for report in settled for ref in report.segments]
    reports[0].gone += [name for report in settled for name in report.gone]

    gone, since_then = spent(after)
    reports[0].gone += gone
    reports[0].ledger_since = since if since_then is None else max(since, since_then)
    return [ref for ref in found if ref.name not in gone]


def _add(reports: Sequence[Report], more: Sequence[Report]) -> None:
    for before, each in zip(reports, more, strict=True):
        before.add(each)
