"""Work for subscriptions to the k nearest (SSTD's CKQ): which posts may enter which answers.

Such a subscription concerns all workers (SSTD §4.2), so its segment is one for all of them. Each worker offers it
the posts of its own leaves, pruned by the last committed radius, and leaves at most k candidates a source of posts for
the second round (`kinds.nearest.merge`), which knows all of them.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import NEAREST
from nearcast.engine.batch import Plan, open_reach, open_segments, write_closest
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.post_copies import own_posts
from nearcast.engine.task_result import Report
from nearcast.kinds.nearest.index import NOWHERE, Candidates, ClosestSet, Part, Predicates, build
from nearcast.kinds.nearest.state import NO_POSTS, Answers, AnswerSet
from nearcast.storage.deletes import deletes_for
from nearcast.storage.manifest import POSTS, SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.pair_predicates import predicates_hold
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Line, Matches
from nearcast.storage.subscriptions.subscription_set import ids_of, read_logs, standing_ends

Taker = Callable[[np.ndarray], pa.Table]  # whole posts, by their numbers
A_SEARCH = 1000  # posts may be matched in the time that one search takes


def is_nearest(ref: SegmentRef) -> bool:
    return ref.asks == NEAREST


def nearest_refs(manifest: Manifest) -> list[SegmentRef]:
    return [ref for ref in manifest.of(SUBSCRIPTIONS) if is_nearest(ref)]


def is_searched(manifest: Manifest, rows: Rows) -> bool:
    """Whether new subscriptions catch up by a search each, rather than by a look at all posts since their start."""
    since = int(rows.start.min()) if len(rows) else 0
    posts = 0.0
    for ref in manifest.of(POSTS):
        if ref.max_ts >= since:
            share = (ref.max_ts - since + 1) / (ref.max_ts - ref.min_ts + 1)
            posts += ref.rows * min(1.0, share)
    return len(rows) * A_SEARCH < posts


def newest_only(resolved: Resolved) -> Rows:
    """Subscriptions to the nearest that no later op of the batch has replaced."""
    rows = resolved.rows
    return rows.take(np.flatnonzero(rows.nearest & ~np.isin(rows.seq, resolved.replaced)))


class Closest:
    """The subscriptions to the nearest before and in a batch, and what one worker finds for them."""

    def __init__(self, plan: Plan, worker: int, report: Report, resolved: Resolved | None, first_post: int) -> None:
        self.plan, self.worker, self.report, self.first_post = plan, worker, report, first_post
        self.resolved = resolved
        self.found: list[Answers] = []
        self.fresh: Part | None = None
        parts = self._standing()
        if resolved is not None:
            self._file(newest_only(resolved))
        self.set = ClosestSet([*parts, *([] if self.fresh is None else [self.fresh])], first_post)

    def __bool__(self) -> bool:
        return bool(self.set.parts)

    def _standing(self) -> list[Part]:
        plan, resolved = self.plan, self.resolved
        refs = nearest_refs(plan.manifest)
        if not refs:
            return []
        answers = AnswerSet.open(plan.state, plan.manifest)
        segments = open_segments(plan, [ref.name for ref in refs])
        ends = standing_ends(segments, read_logs(plan.state, plan.manifest))
        superseded = reopened = np.empty(0, np.int64)
        if resolved is not None:
            superseded = answers.seq[np.isin(answers.keys, resolved.again)]
            if len(resolved.deletes):
                reopened = answers.holding(resolved.deletes["id"].to_numpy())
            if self.worker == 0:
                self.report.superseded = superseded.tolist()
        parts = []
        for name, segment in segments.items():
            limits = answers.limits(segment.rows.seq, NOWHERE)
            if len(reopened):
                limits[np.isin(segment.rows.seq, reopened)] = np.inf
            if len(superseded):
                limits[np.isin(segment.rows.seq, superseded)] = NOWHERE
            more = ends[name].joined(resolved.ends.of(segment)) if resolved is not None else ends[name]
            parts.append(Part(segment, more, limits, open_reach(plan, name)))
        return parts

    def _file(self, rows: Rows) -> None:
        """New ones are filed for the whole world; worker 0 writes them, for all."""
        if not len(rows):
            return
        assert self.resolved is not None
        limits = np.full(len(rows), np.inf)
        segment = build(rows, limits)
        self.fresh = Part(segment, self.resolved.ends.of(segment), limits, limits.copy())
        if self.worker == 0:
            name, size = write_closest(self.plan, segment, limits, self.worker)
            facts = {"asks": NEAREST}
            self.report.segments.append(
                SegmentRef(SUBSCRIPTIONS, name, len(segment), size, self.plan.batch, facts=facts)
            )
            self.report.count(filed=len(segment))
            self.found.append(answers_of(segment.rows, np.arange(len(segment)), self.plan.batch))

    # -- posts ---------------------------------------------------------------------------------------------------------

    def catch_up(self, refs: list[SegmentRef]) -> None:
        """Offer new subscriptions the posts of this worker's leaves that are kept, where that beats a search each."""
        plan, resolved = self.plan, self.resolved
        if self.fresh is None or resolved is None or is_searched(plan.manifest, self.fresh.segment.rows):
            return
        alone = ClosestSet([self.fresh], self.first_post)
        since = int(self.fresh.segment.rows.start.min())
        for ref in refs:
            if ref.max_ts < since:
                continue
            segment = PostSegment(plan.state.path(ref.name))
            rows = own_posts(plan, ref, segment, np.flatnonzero(segment.ts >= since), self.worker)
            deletes = deletes_for(plan.state, plan.manifest, ref).select(["id", "id_text"])
            deletes = pa.concat_tables([deletes, resolved.deletes.cast(deletes.schema)])
            rows = rows[~segment.deleted(deletes)[rows]]
            if len(rows):
                self._offer(alone, segment.columns(rows), None, _taker(segment, rows))

    def offer(self, columns: PostColumns, wanted: np.ndarray, posts: pa.Table) -> None:
        """The posts of the batch; `wanted` are those that some subscription may want, in Z-order."""
        self._offer(self.set, columns, wanted, lambda rows: posts.take(pa.array(rows)))
        self.report.count(near_candidates=self.set.looked)

    def late(self, columns: PostColumns, wanted: np.ndarray, posts: pa.Table) -> list[tuple[Rows, Matches]]:
        """The posts that would have entered an answer, had they come before retention passed them."""
        line = Line.of(columns, wanted)
        found = []
        for part in self.set.parts:
            matched, rows, _, looked = part.match(line, self.first_post, _holding(lambda r: posts.take(pa.array(r))))
            found.append((part.segment.rows, Matches(matched, rows, looked)))
        return found

    def _offer(self, closest: ClosestSet, columns: PostColumns, wanted: np.ndarray | None, take: Taker) -> None:
        wanted = columns.z_order() if wanted is None else wanted
        for each in closest.offer(columns, wanted, take, _holding(take)):
            self.found.append(candidate_answers(each, take, self.plan.batch))

    def write(self) -> None:
        """Leave the candidates in the spool for the driver."""
        if self.found:
            path = self.plan.spool / f"candidates-{uuid.uuid4().hex}"
            Answers.concat(self.found).write(path)
            self.report.candidates.append(path.name)


def _taker(segment: PostSegment, rows: np.ndarray) -> Taker:
    return lambda picked: segment.take(rows[picked])


def _holding(take: Taker) -> Predicates:
    """Predicates on the attributes of posts that are looked up when a subscription has some."""

    def hold(rows: Rows, posts: np.ndarray, picked: np.ndarray) -> np.ndarray:
        hit, back = np.unique(posts, return_inverse=True)
        return predicates_hold(rows, Matches(back, picked, 0), take(hit))

    return hold


def answers_of(rows: Rows, picked: np.ndarray, batch: int) -> Answers:
    """Empty answers of some rows."""
    ids, texts = ids_of(rows, picked)
    columns = rows.columns.take(pa.array(picked)) if len(rows.columns) else pa.nulls(len(picked), pa.string())
    return Answers(
        rows.seq[picked], np.full(len(picked), batch), rows.points[picked, 2].astype(np.int64), ids, texts, columns,
        np.zeros(len(picked) + 1, np.int64), np.empty(0), np.empty(0, np.int32), NO_POSTS,
    )  # fmt: skip


def candidate_answers(found: Candidates, take: Taker, batch: int) -> Answers:
    """Candidates, which lie row by row, as answers."""
    picked, counts = np.unique(found.rows, return_counts=True)
    hit, post = np.unique(found.posts, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    empty = answers_of(found.part.segment.rows, picked, batch)
    posts = take(hit)
    return replace(empty, starts=starts, km=found.km, post=post.astype(np.int32), posts=posts)
