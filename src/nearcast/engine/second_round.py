"""The second round of a batch: what needs to see all that the workers have written, between work and commit."""

from collections.abc import Sequence
from dataclasses import replace

from nearcast.engine.batch import Plan
from nearcast.engine.duplicate_matches import once_in_all
from nearcast.engine.size_budget import keep_size
from nearcast.engine.stream_searches import answer_searches
from nearcast.engine.task_result import Report, Round
from nearcast.engine.tick_reports import send_reports
from nearcast.kinds.aggregates.recount import recount
from nearcast.kinds.nearest.merge import settle
from nearcast.kinds.relevance.idf_maintenance import freeze
from nearcast.kinds.relevance.merge import rank
from nearcast.storage.manifest import Manifest, SegmentRef


def second_round(plan: Plan, after: Manifest, reports: Sequence[Report], all_workers: Round) -> list[SegmentRef]:
    """The nearest, the most relevant, the reports on a beat, and the searches of the stream; then what has no room
    leaves. `after` is what the first round leads to.
    """
    once_in_all(plan, reports)
    again = recount(plan, after, reports)
    after = replace(after, segments=(*after.segments, *again))
    frozen = freeze(plan, after)
    after = replace(after, segments=(*after.segments, *frozen))
    found = [
        *again,
        *frozen,
        *rank(plan, after, reports, all_workers),
        *settle(plan, reports, all_workers),
        *send_reports(plan, after, reports, all_workers),
        *answer_searches(plan, reports),
    ]
    keep_size(plan, after, reports, all_workers)
    return found
