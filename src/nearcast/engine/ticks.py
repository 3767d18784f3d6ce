"""Subscriptions that report on a tick, whatever their kind: what is due, and posts that come too late.

A tick is a whole multiple of a subscription's SYNC since the epoch. What is reported is counted in the second round
(`engine.tick_reports`), when all posts of the batch are stored.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.common.kernels.tick_limits import MOST_EMPTY
from nearcast.common.kinds import codes
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.match_results import once, results_of
from nearcast.engine.task import Task
from nearcast.storage.manifest import SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.outbox import LATE, Results
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Directory, Line, Matches, Segment
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends
from nearcast.storage.tick_progress import TickProgress

FOR_EVER = 1 << 61  # microseconds


def reporting_refs(manifest: Manifest, asks: Collection[int] | None = None) -> list[SegmentRef]:
    """The segments of subscriptions that report; of some kinds, by their codes."""
    asks = codes("reporting") if asks is None else asks
    return [ref for ref in manifest.of(SUBSCRIPTIONS) if ref.asks in asks]


@dataclass(frozen=True)
class Due:
    """Rows, each with `count` ticks due from `begin` on, after `empty` reports in a row; no more follow if `final`."""

    rows: Rows
    begin: np.ndarray
    count: np.ndarray
    empty: np.ndarray
    final: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, picked: np.ndarray) -> "Due":
        return Due(self.rows.take(picked), *(each[picked] for each in (self.begin, self.count, self.empty, self.final)))

    @property
    def since(self) -> int:
        """No window of a tick that is due has posts from before this, or at it."""
        due = self.count > 0
        return int((self.begin - self.rows.ticks[:, 0])[due].min()) if due.any() else 0


@dataclass(frozen=True)
class TickReports:
    """Report i is of `row[i]` of what was due and about the window that ends at `window_end[i]`; it stands for
    `skipped[i]` empty ones, if that is not 0. Its rows are a list in `terms` or JSON in `texts`. `empty` is how many
    empty reports in a row each row of what was due has had afterwards.
    """

    row: np.ndarray
    window_end: np.ndarray
    skipped: np.ndarray
    empty: np.ndarray
    terms: pa.ListArray | None = None
    texts: pa.StringArray | None = None


@dataclass(frozen=True)
class Ticking:
    """The rows of a segment, when they start and stop (all things considered), their first tick that has not been
    reported, and how many empty reports in a row came last.
    """

    name: str
    segment: Segment
    start: np.ndarray
    stop: np.ndarray
    following: np.ndarray
    empty: np.ndarray

    @property
    def window(self) -> np.ndarray:
        """Its length; where an aggregate has none, and counts from its start, longer than any."""
        window = self.segment.rows.ticks[:, 0]
        return np.where(window > 0, window, FOR_EVER)

    @property
    def sync(self) -> np.ndarray:
        return self.segment.rows.ticks[:, 1]

    def due(self, horizon: int) -> Due:
        """What fires when the clock, less the lateness, is at `horizon`: the ticks before it, from the first that has
        not been reported on.
        """
        limit = np.maximum(np.minimum(self.stop, horizon), self.following)
        count = -((self.following - limit) // self.sync)
        final = self.following + count * self.sync >= self.stop
        picked = np.flatnonzero((count > 0) | (final & (self.empty > MOST_EMPTY)))
        columns = (self.following, count, self.empty, final)
        return Due(self.segment.rows.take(picked), *(each[picked] for each in columns))


def open_ticking(plan: BatchPlan, manifest: Manifest, asks: Collection[int] | None = None) -> list[Ticking]:
    """All subscriptions of a manifest that report; none before the first post, when no tick can be told."""
    refs = reporting_refs(manifest, asks)
    if not refs or manifest.first_post is None or manifest.clock is None:
        return []
    segments = open_segments(plan, [ref.name for ref in refs], manifest)
    ends = standing_ends(segments, read_logs(plan.state, manifest))
    progress = TickProgress.open(plan.state, manifest)
    found = []
    for name, segment in segments.items():
        rows = segment.rows
        start = np.where(rows.start == BEGINNING, manifest.first_post, rows.start)
        stop = ends[name].applied(rows, np.arange(len(rows)), manifest.first_post)
        known, following, empty = progress.of(rows.seq)
        following = np.where(known, following, -(-start // rows.ticks[:, 1]) * rows.ticks[:, 1])
        found.append(Ticking(name, segment, start, stop, following, empty))
    return found


def due_reports(standing: Sequence[Ticking], horizon: int) -> Due | None:
    """What fires, of all segments."""
    parts = [each for each in (part.due(horizon) for part in standing) if len(each)]
    if not parts:
        return None
    columns = ("begin", "count", "empty", "final")
    return Due(Rows.join([p.rows for p in parts]), *(np.concatenate([getattr(p, c) for p in parts]) for c in columns))


def late_results(task: Task, posts: Arrivals) -> list[Results]:
    """Posts that come after a report was sent that would have counted them."""
    clock = task.manifest.clock
    if clock is None or not reporting_refs(task.manifest):
        return []
    with task.result.timed("reports"):
        late = posts.late | (posts.columns.ts < clock - task.plan.settings.lateness)
        order = posts.in_order(late & posts.home)
        if not len(order):
            return []
        pairs = late_pairs(open_ticking(task.plan, task.manifest), posts.columns, order, posts.late)
        return [once(results_of(pairs, posts.posts, LATE, task.plan.batch))]


def late_pairs(
    standing: Sequence[Ticking], columns: PostColumns, order: np.ndarray, unkept: np.ndarray
) -> list[tuple[Rows, Matches]]:
    """The posts of `order` (along the Z-order curve) that would have been counted in reports already sent; those that
    are not kept (`unkept`, by post), in any report.
    """
    line = Line.of(columns, order)
    found = []
    for part in standing:
        matches = timeless(part.name, part.segment).match(line)
        posts, rows = matches.posts, matches.rows
        ts = columns.ts[posts]
        sync = part.sync[rows]
        first = -(-np.maximum(ts, part.start[rows]) // sync) * sync  # of the ticks that would count it
        told = part.following[rows]
        limit = np.where(unkept[posts], np.maximum(told, part.stop[rows]), told)
        late = first < np.minimum(limit, ts + part.window[rows])
        late &= (part.window[rows] < FOR_EVER) | (ts >= part.start[rows])  # without a window only what is from then on
        found.append((part.segment.rows, Matches(posts[late], rows[late], matches.candidates)))
    return found


_timeless: dict[str, Segment] = {}


def timeless(name: str, segment: Segment) -> Segment:
    """The same subscriptions without start and end: a window may have posts from before its subscription."""
    if name not in _timeless:
        n = len(segment)
        ever = {"start": np.full(n, BEGINNING), "end": np.full(n, NEVER), "life": np.full(n, NEVER)}
        rows = Rows(**{**segment.rows.__dict__, **ever})
        _timeless.clear() if len(_timeless) > 20 else None
        _timeless[name] = Segment.laid_out(rows, Directory.laid(segment), by_id=False)
    return _timeless[name]
