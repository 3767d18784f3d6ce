"""A budget for posts (`--keep-size`): what is oldest leaves, whole time slots at a time (STAR §7).

At the end of a batch, when all its files are written and before any is committed: so what a batch leads to has room, or
holds no more than it must, and a batch that is cut off leaves nothing behind. What leaves is folded into coarse slots
(`storage.posts.coarse_slots`), from which a search can still count it by place and time. The newest slot stays, and
so do the windows of standing queries. From then on a post from before the time that is kept is `late`: not stored, as
one that retention has passed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.engine.batch import BatchPlan
from nearcast.engine.compaction import Compaction
from nearcast.engine.task_result import AllWorkers, TaskResult
from nearcast.engine.ticks import FOR_EVER, open_ticking
from nearcast.reader.archive import read_archive
from nearcast.storage.deletes import deletes_for
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, COARSE, POSTS, Manifest, SegmentRef
from nearcast.storage.posts.coarse_slots import CoarseSlots
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import EVERYTHING


def keep_size(plan: BatchPlan, after: Manifest, tasks: Sequence[TaskResult], all_workers: AllWorkers) -> None:
    """Let the oldest slots leave, where posts take more than `--keep-size`; what leaves and what comes in its place is
    added to the task results. `after` is what they lead to.
    """
    while (
        until := leaving(plan, after)
    ) is not None:  # once more, where a file is larger than its share of the old one
        done = all_workers(Leave(plan, after, until))
        gone = {name for each in done for name in each.gone}
        for task, more in zip(tasks, done, strict=True):
            task.add(more)
            task.segments[:] = [ref for ref in task.segments if ref.name not in gone] + more.segments
            task.gone += more.gone
        after = replace(after, segments=after.replacing(gone, [ref for each in done for ref in each.segments]))


def kept(manifest: Manifest) -> list[SegmentRef]:
    """What the budget is for."""
    return [*manifest.of(POSTS), *manifest.of(ARCHIVE)]


def leaving(plan: BatchPlan, after: Manifest) -> int | None:
    """The time before which all posts leave: the earliest that gives enough room, or the latest that is allowed; None
    if there is room, or nothing may leave.
    """
    budget, slot = plan.settings.keep_size, plan.settings.slot
    refs = kept(after)
    if budget is None or not refs or (excess := sum(ref.size for ref in refs) - budget) <= 0:
        return None
    by_end = sorted(refs, key=lambda ref: ref.max_ts)
    enough = int(np.searchsorted(np.cumsum([ref.size for ref in by_end]), excess))
    most = min(needed_since(plan, after), (by_end[enough].max_ts // slot + 1) * slot)
    numbers, sizes = np.empty(0, np.int64), np.empty(0)
    for ref in (ref for ref in refs if ref.min_ts < most):
        number, share = shares(plan.state, ref, slot)
        numbers, sizes = np.concatenate([numbers, number]), np.concatenate([sizes, share * ref.size])
    slots, of = np.unique(numbers, return_inverse=True)
    room = np.cumsum(np.bincount(of, sizes, len(slots)))
    may = np.flatnonzero((slots + 1) * slot <= most)
    if not len(may):
        return None
    last = min(int(np.searchsorted(room[may], excess)), len(may) - 1)
    return int(slots[last] + 1) * slot


def needed_since(plan: BatchPlan, after: Manifest) -> int:
    """The beginning of the slot that a window of a standing query reaches back to, or of the newest slot."""
    slot, oldest = plan.settings.slot, after.clock or 0
    for part in open_ticking(plan, after):
        some = (part.window < FOR_EVER) & (part.following < part.stop)
        oldest = min(oldest, int((part.following - part.window)[some].min(initial=oldest)) + 1)
    return oldest // slot * slot


def shares(state: StateDirectory, ref: SegmentRef, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """The slots that a file has posts of, by number, and the share of its posts that each has."""
    if ref.min_ts // slot == ref.max_ts // slot:
        return np.array([ref.min_ts // slot]), np.ones(1)
    if ref.kind == ARCHIVE:
        table = pq.read_table(state.path(ref.name, ".parquet"), columns=["ts"], partitioning=None)
        ts = table["ts"].cast(pa.int64()).to_numpy()
    else:
        ts = PostSegment(state.path(ref.name)).ts
    numbers, counts = np.unique(ts // slot, return_counts=True)
    return numbers, counts / len(ts)


@dataclass(frozen=True)
class Leave:
    """What one worker does, as a function of its number: its files without posts from before `until`, and those posts
    as coarse slots. Worker 0 also takes over the coarse slots that there were.
    """

    plan: BatchPlan
    after: Manifest
    until: int

    def __call__(self, worker: int) -> TaskResult:
        done = TaskResult(worker)
        compaction = Compaction(replace(self.plan, manifest=self.after), worker, done)
        with done.timed("keep size"):
            coarse = [self.leave(compaction, ref) for kind in (POSTS, ARCHIVE) for ref in compaction.mine(kind)]
            if worker == 0:
                old = self.after.of(COARSE)
                done.gone += [ref.name for ref in old]
                coarse += [CoarseSlots.open(self.plan.state.path(ref.name)) for ref in old]
            self.write(compaction, [part for part in coarse if part is not None and len(part)])
        return done

    def leave(self, compaction: Compaction, ref: SegmentRef) -> CoarseSlots | None:
        """Rewrite a file without what leaves, which is returned."""
        if ref.min_ts >= self.until:
            return None
        segment, state = self.segment(ref), self.plan.state
        there = np.ones(len(segment), np.bool_)
        if ref.kind == POSTS:  # an archive was read without what is deleted
            there = ~segment.deleted(deletes_for(state, self.after, ref))
        old = segment.ts < self.until
        rows = np.flatnonzero(there & old)
        new = self.rest(compaction, ref, segment, there & ~old)
        compaction.result.gone.append(ref.name)
        compaction.result.segments += new
        compaction.result.count(coarse=len(rows))
        return CoarseSlots.fold(segment, rows, self.plan.settings.slot)

    def segment(self, ref: SegmentRef) -> PostSegment:
        state = self.plan.state
        if ref.kind == POSTS:
            return PostSegment(state.path(ref.name))
        deletes = deletes_for(state, self.after, ref)
        columns = () if ref.max_ts < self.until else None  # attributes matter where some stay
        return read_archive(state.path(ref.name, ".parquet"), EVERYTHING, columns, deletes, self.plan.tokenizer)

    def rest(self, compaction: Compaction, ref: SegmentRef, segment: PostSegment, stay: np.ndarray) -> list[SegmentRef]:
        """What stays of a file, as one of its kind."""
        if not stay.any():
            return []
        table = segment.all().filter(pa.array(stay)).combine_chunks()
        return compaction.write_posts(table, [ref]) if ref.kind == POSTS else compaction.archive(table, ref)

    def write(self, compaction: Compaction, parts: list[CoarseSlots]) -> None:
        if not parts:
            return
        clock = self.after.clock or 0
        slots = CoarseSlots.merged(parts).aged(clock, self.until, self.plan.settings.slot)
        name = compaction.name(COARSE)
        size = slots.write(self.plan.state.path(name))
        bounds = int(slots.begin.min()), int(slots.end.max()) - 1
        facts = {"posts": int(slots.posts.sum())}
        ref = SegmentRef(COARSE, name, len(slots), size, self.plan.batch, compaction.worker, *bounds, facts=facts)
        compaction.result.segments.append(ref)
