"""The further rounds of a batch for subscriptions by relevance: fetch, match, settle; then what has no use leaves."""

from collections.abc import Sequence
from dataclasses import replace

from nearcast.index.ledger import first_number
from nearcast.pipeline.plan import Plan
from nearcast.pipeline.relevance.buffers import open_thresholds
from nearcast.pipeline.relevance.distribution import distribute, is_fitting
from nearcast.pipeline.relevance.ledger import fetch, spent
from nearcast.pipeline.relevance.match import Match
from nearcast.pipeline.relevance.settle import Settle
from nearcast.pipeline.relevance.subscribers import relevant_refs
from nearcast.pipeline.report import Report, Round
from nearcast.state.manifest import BUFFERS, DISTRIBUTION, LEDGER, Manifest, SegmentRef


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
