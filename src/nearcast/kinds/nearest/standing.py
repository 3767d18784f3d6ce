"""Work for subscriptions to the k nearest (SSTD's CKQ): which posts may enter which answers.

Such a subscription concerns all workers (SSTD §4.2), so its segment is one for all of them. Each worker offers it
the posts of its own leaves, pruned by the last committed radius, and leaves at most k candidates a source of posts for
the second round (`kinds.nearest.merge`), which knows all of them.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nearcast.engine.arrivals import Arrivals
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.match_results import results_of
from nearcast.engine.op_resolution import Resolved
from nearcast.engine.roles import Standing, StandingRole
from nearcast.engine.segment_rewriter import Rewriting
from nearcast.engine.subscription_compaction import SubscriptionCompaction
from nearcast.engine.task import Task
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.kinds.nearest import KIND
from nearcast.kinds.nearest.compaction import forget, merge_answers, mostly_moved
from nearcast.kinds.nearest.index import (
    NOWHERE,
    NearestCandidates,
    NearestPart,
    NearestSet,
    Predicates,
    build,
    filed,
    place_order,
)
from nearcast.kinds.nearest.merge import merge_nearest
from nearcast.kinds.nearest.nearest_filing import (
    CANDIDATES,
    SUPERSEDED,
    answers_of,
    is_searched,
    nearest_refs,
    newest_only,
    open_reach,
    write_nearest,
)
from nearcast.kinds.nearest.state import Answers, AnswerSet
from nearcast.storage.manifest import Manifest, SegmentRef
from nearcast.storage.outbox import LATE, Results
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.pair_predicates import predicates_hold
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Line, Matches
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends

Taker = Callable[[np.ndarray], pa.Table]  # whole posts, by their numbers


class NearestStanding(Standing):
    """The subscriptions to the nearest before and in a batch, and what one worker finds for them."""

    def __init__(self, role: StandingRole, task: Task, ops: Resolved | None) -> None:
        self.found: list[Answers] = []
        self.fresh: NearestPart | None = None
        super().__init__(role, task, ops)
        with task.result.timed("nearest"):
            self.set = NearestSet([*self._standing(), *([] if self.fresh is None else [self.fresh])], task.first_post)

    def _standing(self) -> list[NearestPart]:
        plan, resolved = self.task.plan, self.ops
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
            if self.task.worker == 0:
                self.task.result.note(SUPERSEDED, superseded.tolist())
        parts = []
        for name, segment in segments.items():
            limits = answers.limits(segment.rows.seq, NOWHERE)
            if len(reopened):
                limits[np.isin(segment.rows.seq, reopened)] = np.inf
            if len(superseded):
                limits[np.isin(segment.rows.seq, superseded)] = NOWHERE
            more = ends[name].joined(resolved.ends.of(segment)) if resolved is not None else ends[name]
            parts.append(NearestPart(segment, more, limits, open_reach(plan, name)))
        return parts

    def file(self, new: Rows) -> None:
        """New ones that no later op of the batch has replaced are filed for the whole world; worker 0 writes them, for
        all.
        """
        assert self.ops is not None
        rows, plan = newest_only(self.ops), self.task.plan
        if not len(rows):
            return
        limits = np.full(len(rows), np.inf)
        segment = build(rows, limits)
        self.fresh = NearestPart(segment, self.ops.ends.of(segment), limits, limits.copy())
        if self.task.worker == 0:
            self.task.result.segments.append(write_nearest(plan, segment, limits))
            self.task.result.count(filed=len(segment))
            self.found.append(answers_of(segment.rows, np.arange(len(segment)), plan.batch))

    # -- posts ---------------------------------------------------------------------------------------------------------

    def catch_up(self) -> list[Results]:
        """Offer new subscriptions the posts of this worker's leaves that are kept, where that beats a search each."""
        task = self.task
        if self.fresh is None or self.ops is None or is_searched(task.manifest, self.fresh.segment.rows):
            return []
        alone = NearestSet([self.fresh], task.first_post)
        for segment, rows in task.kept_posts(int(self.fresh.segment.rows.start.min()), self.ops.deletes):
            if len(rows):
                columns = segment.columns(rows)
                self.offer(alone, columns, columns.z_order(), _taker(segment, rows))
        return []

    def match(self, posts: Arrivals) -> list[Results]:
        """Offer the posts to the answers; those too late to be kept are told of."""
        if not self.set.parts:
            return []
        task, found = self.task, []
        with task.result.timed("nearest"):
            order = posts.in_order(posts.marked(KIND) & posts.home)
            if posts.late.any():
                missed = self.late(posts.columns, order[posts.late[order]], posts.posts)
                found.append(results_of(missed, posts.posts, LATE, task.plan.batch))
                order = order[~posts.late[order]]
            self.offer(self.set, posts.columns, order, lambda rows: posts.posts.take(pa.array(rows)))
            task.result.count(near_candidates=self.set.looked)
        return found

    def late(self, columns: PostColumns, wanted: np.ndarray, posts: pa.Table) -> list[tuple[Rows, Matches]]:
        """The posts that would have entered an answer, had they come before retention passed them."""
        line = Line.of(columns, wanted)
        found = []
        for part in self.set.parts:
            holding = _holding(lambda rows: posts.take(pa.array(rows)))
            matched, rows, _, looked = part.match(line, self.task.first_post, holding)
            found.append((part.segment.rows, Matches(matched, rows, looked)))
        return found

    def offer(self, nearest: NearestSet, columns: PostColumns, wanted: np.ndarray, take: Taker) -> None:
        """Let some posts, in Z-order, enter answers; `take` gives some of them whole."""
        for each in nearest.offer(columns, wanted, take, _holding(take)):
            self.found.append(candidate_answers(each, take, self.task.plan.batch))

    def write(self) -> None:
        """Leave the candidates in the spool for the second round."""
        if self.found:
            path = self.task.plan.spool / f"candidates-{uuid.uuid4().hex}"
            Answers.concat(self.found).write(path)
            self.task.result.leave(CANDIDATES, path.name)


def _taker(segment: PostSegment, rows: np.ndarray) -> Taker:
    return lambda picked: segment.take(rows[picked])


def _holding(take: Taker) -> Predicates:
    """Predicates on the attributes of posts that are looked up when a subscription has some."""

    def hold(rows: Rows, posts: np.ndarray, picked: np.ndarray) -> np.ndarray:
        hit, back = np.unique(posts, return_inverse=True)
        return predicates_hold(rows, Matches(back, picked, 0), take(hit))

    return hold


def candidate_answers(found: NearestCandidates, take: Taker, batch: int) -> Answers:
    """Candidates, which lie row by row, as answers."""
    picked, counts = np.unique(found.rows, return_counts=True)
    hit, post = np.unique(found.posts, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    empty = answers_of(found.part.segment.rows, picked, batch)
    posts = take(hit)
    return replace(empty, starts=starts, km=found.km, post=post.astype(np.int32), posts=posts)


class NearestStandingRole(StandingRole):
    kind = KIND

    def open(self, task: Task, ops: Resolved | None) -> Standing:
        return NearestStanding(self, task, ops)

    def second_round(
        self, plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers
    ) -> list[SegmentRef]:
        return merge_nearest(plan, tasks, all_workers)

    def compact(self, rewriting: Rewriting) -> None:
        if rewriting.worker == 0:
            merge_answers(rewriting)

    def overdue(self, compaction: SubscriptionCompaction, refs: list[SegmentRef]) -> list[SegmentRef]:
        return mostly_moved(compaction, refs)

    def rewrite(self, compaction: SubscriptionCompaction, rows: Rows) -> Rows:
        """Without those that others have taken over from."""
        answers = AnswerSet.open(compaction.plan.state, compaction.manifest)
        return rows.take(np.flatnonzero(answers.places(rows.seq) >= 0))

    def dropped(self, compaction: SubscriptionCompaction, rows: Rows, over: np.ndarray, dead: np.ndarray) -> np.ndarray:
        forget(compaction, rows, dead)
        return dead

    def write(self, plan: BatchPlan, rows: Rows, worker: int) -> SegmentRef:
        """Filed by the circles of the answers that stand."""
        rows = rows.take(place_order(rows))
        reach = AnswerSet.open(plan.state, plan.manifest).limits(rows.seq, NOWHERE)
        return write_nearest(plan, filed(rows, reach), reach)


ROLE = NearestStandingRole()
