"""Reports of frequent terms on a tick (SSTD's CTQ §6.3): counted in groups over the posts of the windows."""

from nearcast.engine.batch import BatchPlan
from nearcast.engine.open_state import open_files, speller
from nearcast.engine.ticks import Due, TickReports
from nearcast.kinds.terms.index import report, share_of
from nearcast.kinds.terms.window import PostWindow, Windows
from nearcast.reader.stop_words import stop_terms
from nearcast.storage.manifest import POSTS, WINDOW, Manifest


class TermsReports:
    def share(self, due: Due, worker: int, workers: int) -> Due:
        return share_of(due, worker, workers)

    def report(self, plan: BatchPlan, after: Manifest, due: Due) -> TickReports:
        found = report(due, open_window(plan, after, due))
        return TickReports(found.row, found.window_end, found.skipped, found.empty, terms=found.lists())


_windows: tuple[tuple[str, tuple[str, ...]], Windows] | None = None


def open_window(plan: BatchPlan, manifest: Manifest, due: Due) -> PostWindow:
    """The kept posts that windows of ticks now due may have."""
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


ROLE = TermsReports()
