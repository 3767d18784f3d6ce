"""Subscriptions that report on a beat, frequent terms (SSTD's CTQ) or aggregates (STAR): filing them, what is due, and
posts that come too late.

What they report is counted in a second round (`engine.tick_reports`), when all posts of the batch are stored. One
segment of them serves all workers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.op_schema import AGGREGATES, BEGINNING, NEVER, TERMS
from nearcast.engine.batch import Plan, open_segments, write_segment
from nearcast.kinds.terms.index import Due
from nearcast.kinds.terms.kernels.tick_reports import TOLD
from nearcast.storage.manifest import SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Directory, Line, Matches, Segment
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends
from nearcast.storage.tick_progress import Beats

FOR_EVER = 1 << 61  # microseconds
ON_A_BEAT = (TERMS, AGGREGATES)


def reporting_refs(manifest: Manifest, kinds: Collection[int] = ON_A_BEAT) -> list[SegmentRef]:
    return [ref for ref in manifest.of(SUBSCRIPTIONS) if ref.asks in kinds]


def file_reporting(plan: Plan, rows: Rows, asks: int) -> SegmentRef:
    """Write new subscriptions of one kind, for all workers."""
    segment = Segment.build(rows, PYRAMID)
    name, size = write_segment(plan, segment, 0)
    return SegmentRef(SUBSCRIPTIONS, name, len(segment), size, plan.batch, facts={"asks": asks})


@dataclass(frozen=True)
class Standing:
    """The rows of a segment, when they start and stop (all things considered), their first beat that has not been
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
        window = self.segment.rows.beats[:, 0]
        return np.where(window > 0, window, FOR_EVER)

    @property
    def beat(self) -> np.ndarray:
        return self.segment.rows.beats[:, 1]

    def due(self, horizon: int) -> Due:
        """What fires when the clock, less the lateness, is at `horizon`: the beats before it, from the first that has
        not been reported on.
        """
        limit = np.maximum(np.minimum(self.stop, horizon), self.following)
        count = -((self.following - limit) // self.beat)
        final = self.following + count * self.beat >= self.stop
        picked = np.flatnonzero((count > 0) | (final & (self.empty > TOLD)))
        columns = (self.following, count, self.empty, final)
        return Due(self.segment.rows.take(picked), *(each[picked] for each in columns))


def open_standing(plan: Plan, manifest: Manifest, kinds: Collection[int] = ON_A_BEAT) -> list[Standing]:
    """All subscriptions of a manifest that report; none before the first post, when no beat can be told."""
    refs = reporting_refs(manifest, kinds)
    if not refs or manifest.first_post is None or manifest.clock is None:
        return []
    segments = open_segments(plan, [ref.name for ref in refs], manifest)
    ends = standing_ends(segments, read_logs(plan.state, manifest))
    beats = Beats.open(plan.state, manifest)
    found = []
    for name, segment in segments.items():
        rows = segment.rows
        start = np.where(rows.start == BEGINNING, manifest.first_post, rows.start)
        stop = ends[name].applied(rows, np.arange(len(rows)), manifest.first_post)
        known, following, empty = beats.of(rows.seq)
        following = np.where(known, following, -(-start // rows.beats[:, 1]) * rows.beats[:, 1])
        found.append(Standing(name, segment, start, stop, following, empty))
    return found


def due_reports(standing: Sequence[Standing], horizon: int) -> Due | None:
    """What fires, of all segments."""
    parts = [each for each in (part.due(horizon) for part in standing) if len(each)]
    if not parts:
        return None
    columns = ("begin", "count", "empty", "final")
    return Due(Rows.join([p.rows for p in parts]), *(np.concatenate([getattr(p, c) for p in parts]) for c in columns))


def late_pairs(
    standing: Sequence[Standing], columns: PostColumns, order: np.ndarray, unkept: np.ndarray
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
        beat = part.beat[rows]
        first = -(-np.maximum(ts, part.start[rows]) // beat) * beat  # of the beats that would count it
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
