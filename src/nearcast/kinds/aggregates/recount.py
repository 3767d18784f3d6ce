"""Deleted posts and standing aggregates: what has been counted of them is counted again, from the posts that are left.

A sum could be taken back, a least or greatest value could not. So every interval of every series that a deleted post
was counted in is counted anew, in the second round of the batch, and stands in place of what was counted before; of an
aggregate without a window all that it has reported, from the archive too. Deletions are rare, and cost accordingly.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.engine.ticks import reporting_refs
from nearcast.kinds.aggregates import KIND
from nearcast.kinds.aggregates.counting import SeriesCounting, counting_of, open_aggregates
from nearcast.kinds.aggregates.group_by import merge, nothing, search_groups
from nearcast.kinds.aggregates.groups import Groups
from nearcast.kinds.aggregates.interval_counts import Partials, class_of, interval_of
from nearcast.kinds.aggregates.series import Series
from nearcast.language import decode_code
from nearcast.reader.reader import Reader
from nearcast.storage.files import open_table
from nearcast.storage.manifest import DELETES, PARTIALS, Manifest, SegmentRef
from nearcast.storage.posts.question import EVERYTHING, Question
from nearcast.storage.posts.values import WHOLE
from nearcast.storage.subscriptions.rows import Rows

DRIVER = 996  # in the names of its files
Range = tuple[int, int, int]  # the place of a series, after which and up to which interval


def recount(plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult]) -> list[SegmentRef]:
    """The segment that stands in place of what deleted posts were counted in, or nothing; `after` is what the first
    round leads to.
    """
    fresh = [ref for task in tasks for ref in task.segments if ref.kind == DELETES]
    clock = plan.manifest.clock
    if not fresh or plan.settings.keep == "none" or clock is None or not reporting_refs(after, (KIND.code,)):
        return []
    parts = [each.rows for each in open_aggregates(plan, after) if len(each.rows)]
    if not parts:
        return []
    counting = counting_of(plan, Rows.join(parts))
    deleted = pa.concat_tables([open_table(plan.state.path(ref.name, ".arrow")) for ref in fresh])
    told = clock - plan.settings.lateness  # beats before this have been reported; later ones need their own intervals
    ranges = touched(counting, Reader(plan.state, plan.manifest), deleted.select(["id", "id_text"]), told)
    if not ranges:
        return []
    reader = Reader(plan.state, after)
    found = [counted(reader, counting, *each) for each in ranges]
    replaced = np.array([(counting.series[at].number, low, high) for at, low, high in ranges], np.int64)
    whole = replace(Partials.merged(Partials({groups.shape: groups}) for groups in found), replaced=replaced)
    name = plan.state.new_name(PARTIALS, plan.batch, DRIVER)
    size = whole.write(plan.state.path(name))
    return [SegmentRef(PARTIALS, name, len(whole), size, plan.batch, facts={"replaced": len(replaced)})]


def touched(counting: SeriesCounting, before: Reader, deletes: pa.Table, told: int) -> list[Range]:
    """Where deleted posts were counted. An aggregate without a window that has counted posts that are no longer kept
    (`--keep-size`) cannot count them again, and stays as it is.
    """
    kept = BEGINNING if before.manifest.kept_since is None else before.manifest.kept_since
    found: set[Range] = set()
    for opened in before.segments(EVERYTHING):
        rows = np.setdiff1d(opened.segment.deleted_rows(deletes), opened.gone)
        if not len(rows):
            continue
        for post, at in zip(*(each.tolist() for each in counting.pairs(opened.segment, rows)), strict=True):
            series, ts = counting.series[at], int(opened.segment.ts_of(rows[post : post + 1])[0])
            interval = interval_of(ts, series.interval)
            if series.reach or interval > told // series.interval:
                found.add((at, interval - 1, interval))
            elif ts >= series.start and series.start >= kept:
                found.add((at, BEGINNING, told // series.interval))
    return sorted(found)


def counted(reader: Reader, counting: SeriesCounting, at: int, low: int, high: int) -> Groups:
    """What a series has in some intervals, by a search, as one interval."""
    series = counting.series[at]
    since = series.start if low == BEGINNING else max(series.start, low * series.interval + 1)
    question = question_of(counting.rows, series, since, high * series.interval + 1)
    opened = reader.segments(question)
    parts = [search_groups(each.segment, question, series.shape, each.gone)[0] for each in opened]
    return ahead(merge(parts), series.number, high) if parts else ahead(nothing(series.shape), series.number, high)


def ahead(groups: Groups, number: int, interval: int) -> Groups:
    """With the series and the interval in front of the attributes."""
    values = np.tile(np.array([number, interval], np.int64), (len(groups), 1))
    return replace(
        groups,
        shape=class_of(groups.shape),
        kinds=np.hstack([np.full((len(groups), 2), WHOLE, np.uint8), groups.kinds]),
        values=np.hstack([values, groups.values]),
    )


def question_of(rows: Rows, series: Series, since: int, until: int) -> Question:
    row = series.row
    return Question(
        int(rows.kinds[row]), tuple(rows.boxes[row].tolist()),
        rows.shape[rows.shape_offsets[row] : rows.shape_offsets[row + 1]],
        decode_code(rows.code[rows.code_offsets[row] : rows.code_offsets[row + 1]].tolist()),
        since, until, rows.predicates[row].as_py() if len(rows.predicates) else None,
    )  # fmt: skip
