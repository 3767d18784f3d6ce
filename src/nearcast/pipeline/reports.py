"""Reports of frequent terms (SSTD's CTQ, seed 000 §6.3): the second round of a batch in which a beat has fired.

A beat fires when the stream's clock, less the lateness, has passed it. All posts of the batch are stored by then, so
what a worker counts for its share of the groups is what a search at that moment would give. The driver puts the reports
in order, and keeps how far each subscription has come.
"""

import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.index.lexicon import Speller
from nearcast.index.subscriptions import ids_of
from nearcast.index.term_groups import Due, report
from nearcast.index.window import Window, Windows
from nearcast.model.posts import BASE_FIELDS
from nearcast.pipeline.plan import Plan
from nearcast.pipeline.report import Report, Round
from nearcast.pipeline.terms import due_reports, open_standing, terms_refs
from nearcast.reader.dictionary import spelt_words
from nearcast.reader.segments import OpenFiles
from nearcast.reader.stop_words import stop_terms
from nearcast.state.beats import Beats
from nearcast.state.files import open_table, write_table
from nearcast.state.manifest import BEATS, POSTS, RESULTS, TERMS, WINDOW, Manifest, SegmentRef
from nearcast.state.results import REPORT, REPORT_RESULTS, REPORT_ROWS, Results

DRIVER = 997  # in the names of its files
SPOOLED = pa.schema(
    [
        ("seq", pa.int64()), ("query", pa.int64()), ("query_text", pa.string()), ("window_end", pa.int64()),
        ("skipped", pa.int64()), ("terms", REPORT_ROWS),
    ]
)  # fmt: skip


def horizon_of(plan: Plan, manifest: Manifest) -> int:
    """Beats before this have fired."""
    assert manifest.clock is not None
    return manifest.clock - plan.settings.lateness


def report_terms(plan: Plan, after: Manifest, reports: Sequence[Report], all_workers: Round) -> list[SegmentRef]:
    """The segments of the reports that are due and of how far they have come; `after` is what the batch leads to."""
    if not terms_refs(after):
        if after.of(BEATS):
            reports[0].gone += [ref.name for ref in after.of(BEATS)]
        return []
    standing = open_standing(plan, after)
    if not standing or due_reports(standing, horizon_of(plan, after)) is None:
        return []
    counted = all_workers(CountTerms(plan, after))
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
        "columns": pa.nulls(n, pa.string()), "rows": pa.nulls(n, pa.string()),
        "batch": pa.array(np.full(n, plan.batch)), "window_end": table["window_end"], "skipped": table["skipped"],
        "terms": table["terms"],
    }  # fmt: skip
    results = Results(pa.table(columns, schema=REPORT_RESULTS), pa.schema(BASE_FIELDS).empty_table())
    name = plan.state.new_name(RESULTS, plan.batch, DRIVER)
    size = results.write(plan.state.path(name))
    ends = table["window_end"].to_numpy()
    return [SegmentRef(RESULTS, name, n, size, plan.batch, min_ts=int(ends.min()), max_ts=int(ends.max()))]


class CountTerms:
    """The second round of one worker, as a function of its number."""

    def __init__(self, plan: Plan, after: Manifest) -> None:
        self.plan, self.after = plan, after

    def __call__(self, worker: int) -> Report:
        done = Report(worker)
        with done.timed("reports"):
            due = due_reports(open_standing(self.plan, self.after), horizon_of(self.plan, self.after))
            assert due is not None
            due = due.share(worker, self.plan.settings.workers)
            found = report(due, open_window(self.plan, self.after, due))
            name = f"reports-{uuid.uuid4().hex}"
            ids, texts = ids_of(due.rows, found.row)
            columns = [
                pa.array(due.rows.seq[found.row]), pa.array(ids), texts, pa.array(found.window_end),
                pa.array(found.skipped), found.lists(),
            ]  # fmt: skip
            write_table(self.plan.spool / f"{name}.arrow", pa.table(columns, schema=SPOOLED))
            following = due.begin + due.count * due.rows.beats[:, 1]
            Beats(due.rows.seq, following, found.empty).write(self.plan.spool / f"{name}.beats.arrow")
            done.reports.append(name)
        return done


_windows: tuple[tuple[str, tuple[str, ...]], OpenFiles, Windows] | None = None


def open_window(plan: Plan, manifest: Manifest, due: Due) -> Window:
    """The kept posts that windows of beats now due may have."""
    global _windows
    key = plan.root, plan.settings.stop_words
    if _windows is None or _windows[0] != key:
        _windows = key, OpenFiles(plan.state), Windows(stop_terms(plan.settings.stop_words, plan.tokenizer))
    _, files, windows = _windows
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
