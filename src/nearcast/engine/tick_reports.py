"""Reports on a beat, of frequent terms (SSTD's CTQ §6.3) and of aggregates (STAR §5): the second
round of a batch in which a beat has fired.

A beat fires when the stream's clock, less the lateness, has passed it. All posts of the batch are stored by then, so
what a worker counts for its share is what a search at that moment would give. The driver puts the reports in order, and
keeps how far each subscription has come.
"""

import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import AGGREGATES
from nearcast.common.op_schema import TERMS as TERMS_ASKED
from nearcast.common.post_schema import BASE_FIELDS
from nearcast.engine.batch import Plan
from nearcast.engine.task_result import Report, Round
from nearcast.engine.ticks import due_reports, open_standing, reporting_refs
from nearcast.kinds.aggregates.reports import report_aggregates
from nearcast.kinds.terms.index import Due, report
from nearcast.kinds.terms.window import Window, Windows
from nearcast.reader.open_files import OpenFiles
from nearcast.reader.stop_words import stop_terms
from nearcast.storage.dictionary import spelt_words
from nearcast.storage.files import open_table, write_table
from nearcast.storage.lexicon import Speller
from nearcast.storage.manifest import BEATS, POSTS, RESULTS, TERMS, WINDOW, Manifest, SegmentRef
from nearcast.storage.outbox import REPORT, REPORT_RESULTS, REPORT_ROWS, Results
from nearcast.storage.subscriptions.subscription_set import ids_of
from nearcast.storage.tick_progress import Beats

DRIVER = 997  # in the names of its files
SPOOLED = pa.schema(
    [
        ("seq", pa.int64()), ("query", pa.int64()), ("query_text", pa.string()), ("window_end", pa.int64()),
        ("skipped", pa.int64()), ("terms", REPORT_ROWS), ("rows", pa.string()),
    ]
)  # fmt: skip


def horizon_of(plan: Plan, manifest: Manifest) -> int:
    """Beats before this have fired."""
    assert manifest.clock is not None
    return manifest.clock - plan.settings.lateness


def send_reports(plan: Plan, after: Manifest, reports: Sequence[Report], all_workers: Round) -> list[SegmentRef]:
    """The segments of the reports that are due and of how far they have come; `after` is what the batch leads to."""
    if not reporting_refs(after):
        if after.of(BEATS):
            reports[0].gone += [ref.name for ref in after.of(BEATS)]
        return []
    standing = open_standing(plan, after)
    if not standing or due_reports(standing, horizon_of(plan, after)) is None:
        return []
    counted = all_workers(WorkOutReports(plan, after))
    for before, more in zip(reports, counted, strict=True):
        before.add(more)
    names = [name for each in counted for name in each.reports]
    table = pa.concat_tables([SPOOLED.empty_table(), *(open_table(plan.spool / f"{name}.arrow") for name in names)])
    table = table.sort_by([("window_end", "ascending"), ("seq", "ascending")])
    progress = [Beats.open_file(plan.spool / f"{name}.beats.arrow") for name in names]
    stand = np.concatenate([part.segment.rows.seq for part in standing])
    beats = Beats.open(plan.state, after).updated(progress, stand)
    name = plan.state.new_name(BEATS, plan.batch, DRIVER)
    size = beats.write(plan.state.path(name))
    reports[0].gone += [ref.name for ref in after.of(BEATS)]
    reports[0].count(results=len(table), reports=len(table))
    return [SegmentRef(BEATS, name, len(beats), size, plan.batch), *write_reports(plan, table)]


def write_reports(plan: Plan, table: pa.Table) -> list[SegmentRef]:
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


class WorkOutReports:
    """The second round of one worker, as a function of its number."""

    def __init__(self, plan: Plan, after: Manifest) -> None:
        self.plan, self.after = plan, after

    def __call__(self, worker: int) -> Report:
        done = Report(worker)
        for asks, work_out in ((TERMS_ASKED, self.terms), (AGGREGATES, self.aggregates)):
            with done.timed("reports"):
                due = due_reports(open_standing(self.plan, self.after, (asks,)), horizon_of(self.plan, self.after))
                if due is not None:
                    work_out(worker, due, done)
        return done

    def terms(self, worker: int, due: Due, done: Report) -> None:
        due = due.share(worker, self.plan.settings.workers)
        found = report(due, open_window(self.plan, self.after, due))
        lists = found.lists()
        rows = pa.nulls(len(lists), pa.string())
        self.write(due, done, found.row, found.window_end, found.skipped, lists, rows, found.empty)

    def aggregates(self, worker: int, due: Due, done: Report) -> None:
        due = due.take(np.flatnonzero(due.rows.seq % self.plan.settings.workers == worker))
        files = open_files(self.plan)
        stop = stop_terms(self.plan.settings.stop_words, self.plan.tokenizer)
        found = report_aggregates(self.plan, self.after, due, speller(files, self.after), stop)
        lists = pa.nulls(len(found.texts), REPORT_ROWS)
        texts = pa.array(found.texts, pa.string())
        self.write(due, done, found.row, found.window_end, found.skipped, lists, texts, found.empty)

    def write(
        self, due: Due, done: Report, row: np.ndarray, window_end: np.ndarray, skipped: np.ndarray,
        terms: pa.Array, rows: pa.Array, empty: np.ndarray,
    ) -> None:  # fmt: skip
        name = f"reports-{uuid.uuid4().hex}"
        ids, texts = ids_of(due.rows, row)
        columns = [
            pa.array(due.rows.seq[row]), pa.array(ids), texts, pa.array(window_end), pa.array(skipped), terms, rows,
        ]  # fmt: skip
        write_table(self.plan.spool / f"{name}.arrow", pa.table(columns, schema=SPOOLED))
        following = due.begin + due.count * due.rows.beats[:, 1]
        Beats(due.rows.seq, following, empty).write(self.plan.spool / f"{name}.beats.arrow")
        done.reports.append(name)


_files: OpenFiles | None = None


def open_files(plan: Plan) -> OpenFiles:
    """Kept in the process."""
    global _files
    if _files is None or str(_files.state.root) != str(plan.state.root):
        _files = OpenFiles(plan.state)
    return _files


_windows: tuple[tuple[str, tuple[str, ...]], Windows] | None = None


def open_window(plan: Plan, manifest: Manifest, due: Due) -> Window:
    """The kept posts that windows of beats now due may have."""
    global _windows
    key = plan.root, plan.settings.stop_words
    if _windows is None or _windows[0] != key:
        _windows = key, Windows(stop_terms(plan.settings.stop_words, plan.tokenizer))
    files, windows = open_files(plan), _windows[1]
    since = due.since
    refs = [ref for ref in (*manifest.of(POSTS), *manifest.of(WINDOW)) if ref.max_ts > since]
    opened = [(ref.name, files.segment(ref.name)) for ref in refs]
    files.keep_only(ref.name for ref in manifest.segments)
    gone = [files.gone(manifest, ref, segment) for ref, (_, segment) in zip(refs, opened, strict=True)]
    segments = [(name, segment, rows) for (name, segment), rows in zip(opened, gone, strict=True)]
    return windows.open(segments, since, speller(files, manifest))


def speller(files: OpenFiles, manifest: Manifest) -> Speller:
    def spell(terms: np.ndarray) -> pa.StringArray:
        return spelt_words([files.terms(ref.name) for ref in manifest.of(TERMS)], terms)

    return spell
