"""Keeping the ledger: posts are noted in it when they come, fetched from those kept when a new window reaches further
back, and leave it when no window reaches them any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.engine.batch import BatchPlan
from nearcast.engine.post_copies import own_posts
from nearcast.engine.settings import LEDGER_SINCE
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.kinds.relevance.ledger import first_number, open_part
from nearcast.kinds.relevance.ledger_file import NUMBER, write_ledger
from nearcast.kinds.relevance.subscribers import LONGEST, MOST, relevant_refs
from nearcast.storage.manifest import ARCHIVE, LEDGER, POSTS, Manifest, SegmentRef
from nearcast.storage.posts.post_segment import PostSegment, post_fingerprints
from nearcast.storage.subscriptions.rows import take_lists


def note(
    plan: BatchPlan, worker: int, posts: pa.Table, terms: np.ndarray, offsets: np.ndarray, ours: np.ndarray
) -> SegmentRef | None:
    """Write those posts of a batch that are a worker's own. Their number comes with the commit."""
    picked = np.flatnonzero(ours)
    if not len(picked):
        return None
    own, own_offsets = take_lists(terms, offsets, picked)
    return _written(plan, worker, posts.take(pa.array(picked)), own, own_offsets)


def _written(plan: BatchPlan, worker: int, posts: pa.Table, terms: np.ndarray, offsets: np.ndarray) -> SegmentRef:
    name = plan.state.new_name(LEDGER, plan.batch, worker)
    size = write_ledger(plan.state.path(name), posts, terms, offsets, post_fingerprints(posts))
    ts = posts["ts"].to_numpy()
    facts = {"layout": plan.layout}
    return SegmentRef(LEDGER, name, len(posts), size, plan.batch, worker, int(ts.min()), int(ts.max()), facts)


def numbered(refs: Sequence[SegmentRef], known: Sequence[SegmentRef]) -> list[SegmentRef]:
    """New segments of the ledger with the numbers that follow those of the segments it has."""
    at = max((first_number(ref) + ref.rows for ref in known if ref.kind == LEDGER and NUMBER in ref.facts), default=0)
    out = []
    for ref in refs:
        if ref.kind == LEDGER and NUMBER not in ref.facts:
            ref = replace(ref, facts={**ref.facts, NUMBER: at})
            at += ref.rows
        out.append(ref)
    return out


# -- how far back ------------------------------------------------------------------------------------------------------


def largest_windows(manifest: Manifest) -> tuple[int, int]:
    """(posts, microseconds): the largest windows of each kind, 0 where there are none."""
    refs = relevant_refs(manifest)
    return max((ref.facts[MOST] for ref in refs), default=0), max((ref.facts[LONGEST] for ref in refs), default=0)


def needed_since(plan: BatchPlan, after: Manifest) -> int:
    """The time from which on the ledger must have all posts for the windows that stand."""
    assert after.clock is not None
    posts, length = largest_windows(after)
    since = after.clock - length + 1 if length else after.clock
    if posts:
        kinds = (POSTS, ARCHIVE) if plan.settings.keep == "posts" else (LEDGER,)
        refs = [ref for kind in kinds for ref in after.of(kind)]
        since = min(since, _time_of_newest(plan, refs, posts))
    return since


def _time_of_newest(plan: BatchPlan, refs: Sequence[SegmentRef], count: int) -> int:
    """The time of the `count`-th newest post of some segments; BEGINNING if there are fewer."""
    newest = np.empty(0, np.int64)
    for ref in sorted(refs, key=lambda ref: -ref.max_ts):
        if len(newest) == count and ref.max_ts < newest.min():
            break
        newest = np.concatenate([newest, _times(plan, ref)])
        if len(newest) > count:
            newest = np.partition(newest, len(newest) - count)[-count:]
    return int(newest.min()) if len(newest) == count else BEGINNING


def _times(plan: BatchPlan, ref: SegmentRef) -> np.ndarray:
    if ref.kind == ARCHIVE:
        return _archived(plan, ref, ["ts"])["ts"].to_numpy()
    return PostSegment(plan.state.path(ref.name)).ts if ref.kind == POSTS else open_part(plan.state, ref).ts


def _archived(plan: BatchPlan, ref: SegmentRef, columns: list[str] | None = None) -> pa.Table:
    """A file of the archive as posts: times as numbers again."""
    table = pq.read_table(plan.state.path(ref.name, ".parquet"), columns=columns, partitioning=None)
    return table.set_column(table.schema.get_field_index("ts"), "ts", table["ts"].cast(pa.int64())).combine_chunks()


def reaches(after: Manifest, since: int) -> bool:
    """Whether a ledger that has all posts from a time on plainly has those of all windows."""
    assert after.clock is not None
    posts, length = largest_windows(after)
    return after.clock - length >= since - 1 and sum(r.rows for r in after.of(LEDGER) if r.min_ts >= since) >= posts


def fetch(plan: BatchPlan, after: Manifest, all_workers: AllWorkers) -> tuple[list[SegmentRef], int]:
    """(segments, since): posts that are kept and that windows reach, but the ledger does not have; and from which time
    on it has all posts then.
    """
    if plan.settings.keep != "posts" or plan.manifest.clock is None:
        return [], BEGINNING
    known = plan.manifest.settings.get(LEDGER_SINCE)
    if known is not None and reaches(after, known):
        return [], known
    since = needed_since(plan, after)
    if known is not None and since >= known:
        return [], known
    fetched = all_workers(Fetch(plan, after, since, known))
    refs = [ref for report in fetched for ref in report.segments]
    return numbered(refs, after.segments), since


@dataclass(frozen=True)
class Fetch:
    """Of one worker: the posts of its own leaves from a time on, and before another, that the ledger has not; and of
    its files of the archive, for a window of so many posts may reach back further than retention.
    """

    plan: BatchPlan
    after: Manifest
    since: int
    until: int | None

    def __call__(self, worker: int) -> TaskResult:
        done = TaskResult(worker)
        with done.timed("ledger"):
            for ref in self.plan.manifest.of(POSTS):
                if ref.max_ts >= self.since and self.plan.mine(ref, worker):
                    done.segments += self._of_segment(ref, worker)
            for ref in self.plan.manifest.of(ARCHIVE):
                if ref.max_ts >= self.since and ref.owner % self.plan.settings.workers == worker:
                    done.segments += self._of_archive(ref, worker)
        return done

    def _of_segment(self, ref: SegmentRef, worker: int) -> list[SegmentRef]:
        segment = PostSegment(self.plan.state.path(ref.name))
        rows = own_posts(self.plan, ref, segment, np.flatnonzero(self._inside(segment.ts)), worker)
        columns = segment.columns(rows)
        return self._entered(ref, worker, segment.take(rows), columns.terms, columns.offsets)

    def _of_archive(self, ref: SegmentRef, worker: int) -> list[SegmentRef]:
        posts = _archived(self.plan, ref)
        posts = posts.filter(pa.array(self._inside(posts["ts"].to_numpy()))).combine_chunks()
        return self._entered(ref, worker, posts, *self.plan.tokenizer.terms(posts["text"]))

    def _inside(self, ts: np.ndarray) -> np.ndarray:
        return (ts >= self.since) & (ts < (NEVER if self.until is None else self.until))

    def _entered(
        self, ref: SegmentRef, worker: int, posts: pa.Table, terms: np.ndarray, offsets: np.ndarray
    ) -> list[SegmentRef]:
        """Those of some posts that the ledger has not, as a segment of it."""
        new = np.flatnonzero(~self._noted(post_fingerprints(posts))) if len(posts) else np.empty(0, np.int64)
        if not len(new):
            return []
        own, own_offsets = take_lists(terms, offsets, new)
        written = _written(self.plan, worker, posts.take(pa.array(new)).combine_chunks(), own, own_offsets)
        cleaned = ref.facts.get("cleaned", ref.batch)  # of later deletions the segment's posts have to be told
        return [replace(written, facts={**written.facts, "cleaned": cleaned})]

    def _noted(self, prints: np.ndarray) -> np.ndarray:
        out = np.zeros(len(prints), np.bool_)
        for ref in self.after.of(LEDGER):
            if ref.max_ts >= self.since:
                out |= sorted_members(open_part(self.plan.state, ref).fingerprints, prints)
        return out


def spent(after: Manifest) -> tuple[list[str], int | None]:
    """(names, since): the segments that no window reaches, and from which time on the ledger has all posts without
    them. The newest stays, so that numbers go on.
    """
    assert after.clock is not None
    posts, length = largest_windows(after)
    refs = sorted(after.of(LEDGER), key=lambda ref: -ref.min_ts)
    newest = max(refs, key=first_number, default=None)
    begins = -np.array([ref.min_ts for ref in refs], np.int64)
    rows = np.concatenate([[0], np.cumsum([ref.rows for ref in refs])])
    gone: list[str] = []
    since: int | None = None
    for ref in refs:
        later = rows[np.searchsorted(begins, -ref.max_ts)]  # posts of segments that begin after its end
        if ref is not newest and later >= posts and ref.max_ts <= after.clock - length:
            gone.append(ref.name)
            since = ref.max_ts + 1 if since is None else max(since, ref.max_ts + 1)
    return gone, since
