"""New versions of the term statistics (`kinds.relevance.idf_versions`): from a sample when a state begins, then as
stream time goes on.
"""

import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.batch import BatchPlan
from nearcast.engine.settings import IDF_PERIOD, Settings
from nearcast.kinds.relevance.buffers import NEW
from nearcast.kinds.relevance.idf import count_lists, count_posts, time_question
from nearcast.kinds.relevance.idf_versions import (
    SAMPLED,
    TermStatistics,
    newest_counted,
    next_versions,
    open_version,
    version_of,
    write_version,
)
from nearcast.reader.reader import Reader
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest, SegmentRef


def period_of(plan: BatchPlan) -> int:
    """The state's own; of one made before there was such a setting, the run's."""
    return int(plan.manifest.settings.get(IDF_PERIOD, plan.settings.idf_period))


def sample_version(state: StateDirectory, settings: Settings, sample: pa.Table) -> SegmentRef:
    """What the first posts are scored by: statistics of a sample."""
    terms, offsets = Tokenizer(keep_accents=settings.keep_accents).terms(sample["text"])
    return write_version(state, 0, SAMPLED, count_lists(terms, offsets), sampled=True)


def freeze(plan: BatchPlan, after: Manifest) -> list[SegmentRef]:
    """The versions that are due with this batch, of which `after` has all posts; mostly none.

    A version is the one before it and the posts since. Where posts are not kept there is none but the sample's.
    """
    if plan.settings.keep == "none":
        return []
    period = period_of(plan)
    refs: list[SegmentRef] = []
    due = next_versions(plan.manifest.clock, after.clock, plan.settings.lateness, period)
    if not due:
        return refs
    before = newest_counted(after)
    counts = TermStatistics.none() if before is None else open_version(plan.state, before)
    since = BEGINNING if before is None else version_of(before) * period
    for version in due:
        until = version * period
        if until <= since:
            continue
        opened = Reader(plan.state, after).segments(time_question(since, until), ())
        fresh = count_posts(((each.segment, each.gone) for each in opened), since, until)
        if fresh.latest is None:
            continue
        number = fresh.latest // period + 1
        if number in (SAMPLED, NEW):  # these have another meaning: the posts are counted in the next
            continue
        counts, since = TermStatistics.summed([counts, fresh]), number * period
        refs.append(write_version(plan.state, plan.batch, number, counts))
    return refs
