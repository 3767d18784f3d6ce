"""Reports on a tick: the second round of a batch in which a tick has fired.

A tick fires when the stream's clock, less the lateness, has passed it. All posts of the batch are stored by then, so
what a worker counts for its share is what a search at that moment would give. The driver puts the reports in order, and
keeps how far each subscription has come.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.common.kinds import kinds
from nearcast.common.post_schema import BASE_FIELDS
from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import AllWorkers, TaskResult, add_round
from nearcast.engine.ticks import Due, TickReports, due_reports, open_ticking, reporting_refs
from nearcast.storage.files import open_table, write_table
from nearcast.storage.manifest import RESULTS, TICKS, Manifest, SegmentRef
from nearcast.storage.outbox import REPORT, REPORT_RESULTS, REPORT_ROWS, Results
from nearcast.storage.subscriptions.subscription_set import ids_of
from nearcast.storage.tick_progress import TickProgress

DRIVER = 997  # in the names of its files
REPORTS = "reports"  # of a task's files: those of its reports
SPOOLED = pa.schema(
    [
        ("seq", pa.int64()), ("query", pa.int64()), ("query_text", pa.string()), ("window_end", pa.int64()),
        ("skipped", pa.int64()), ("terms", REPORT_ROWS), ("rows", pa.string()),
    ]
)  # fmt: skip


def horizon_of(plan: BatchPlan, manifest: Manifest) -> int:
    """Ticks before this have fired."""
    assert manifest.clock is not None
    return manifest.clock - plan.settings.lateness


def send_reports(
    plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
) -> list[SegmentRef]:
    """The segments of the reports that are due and of how far they have come; `after` is what the batch leads to."""
    if not reporting_refs(after):
        tasks[0].gone += [ref.name for ref in after.of(TICKS)]
        return []
    standing = open_ticking(plan, after)
    if not standing or due_reports(standing, horizon_of(plan, after)) is None:
        return []
    counted = add_round(tasks, all_workers(CountReports(plan, after)))
    names = [name for each in counted for name in each.files(REPORTS)]
    table = pa.concat_tables([SPOOLED.empty_table(), *(open_table(plan.spool / f"{name}.arrow") for name in names)])
    table = table.sort_by([("window_end", "ascending"), ("seq", "ascending")])
    new = [TickProgress.open_file(plan.spool / f"{name}.ticks.arrow") for name in names]
    stand = np.concatenate([part.segment.rows.seq for part in standing])
    progress = TickProgress.open(plan.state, after).updated(new, stand)
    name = plan.state.new_name(TICKS, plan.batch, DRIVER)
    size = progress.write(plan.state.path(name))
    tasks[0].gone += [ref.name for ref in after.of(TICKS)]
    tasks[0].count(results=len(table), reports=len(table))
    return [SegmentRef(TICKS, name, len(progress), size, plan.batch), *write_reports(plan, table)]


def write_reports(plan: BatchPlan, table: pa.Table) -> list[SegmentRef]:
    n = len(table)
    if not n:
        return []
    columns = {
        "query": table["query"], "query_text": table["query_text"],
        "kind": pa.array(np.full(n, REPORT, np.uint8)), "post": pa.array(np.full(n, -1, np.int32)),
        "columns": pa.nulls(n, pa.string()), "rows": table["rows"],
        "batch": pa.array(np.full(n, plan.batch)), "window_end": table["window_end"], "skipped": table["skipped"],
        "terms": table["terms"],
    }  # fmt: skip
    results = Results(pa.table(columns, schema=REPORT_RESULTS), pa.schema(BASE_FIELDS).empty_table())
    name = plan.state.new_name(RESULTS, plan.batch, DRIVER)
    size = results.write(plan.state.path(name))
    ends = table["window_end"].to_numpy()
    return [SegmentRef(RESULTS, name, n, size, plan.batch, min_ts=int(ends.min()), max_ts=int(ends.max()))]


@dataclass(frozen=True)
class CountReports:
    """The second round of one worker, as a function of its number."""

    plan: BatchPlan
    after: Manifest

    def __call__(self, worker: int) -> TaskResult:
        done, workers = TaskResult(worker), self.plan.settings.workers
        for kind in (kind for kind in kinds() if kind.reporting):
            with done.timed("reports"):
                standing = open_ticking(self.plan, self.after, (kind.code,))
                due = due_reports(standing, horizon_of(self.plan, self.after))
                if due is not None:
                    due = kind.reports.share(due, worker, workers)
                    done.leave(REPORTS, self.write(due, kind.reports.report(self.plan, self.after, due)))
        return done

    def write(self, due: Due, found: TickReports) -> str:
        """Leave reports in the spool for the driver; the name of their files."""
        name = f"reports-{uuid.uuid4().hex}"
        ids, texts = ids_of(due.rows, found.row)
        count = len(found.row)
        terms = pa.nulls(count, REPORT_ROWS) if found.terms is None else found.terms
        rows = pa.nulls(count, pa.string()) if found.texts is None else found.texts
        columns = [
            pa.array(due.rows.seq[found.row]), pa.array(ids), texts, pa.array(found.window_end),
            pa.array(found.skipped), terms, rows,
        ]  # fmt: skip
        write_table(self.plan.spool / f"{name}.arrow", pa.table(columns, schema=SPOOLED))
        following = due.begin + due.count * due.rows.ticks[:, 1]
        TickProgress(due.rows.seq, following, found.empty).write(self.plan.spool / f"{name}.ticks.arrow")
        return name
