"""One worker's task in a batch: where it reads, what it writes, and how it tells."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import NEVER
from nearcast.engine.batch import BatchPlan
from nearcast.engine.post_copies import own_posts
from nearcast.engine.task_result import TaskResult
from nearcast.storage.deletes import deletes_for
from nearcast.storage.manifest import POSTS, Manifest, SegmentRef
from nearcast.storage.posts.post_segment import PostSegment


@dataclass(frozen=True)
class Task:
    plan: BatchPlan
    worker: int
    result: TaskResult

    @property
    def manifest(self) -> Manifest:
        return self.plan.manifest

    @property
    def first_post(self) -> int:
        """The time of the first post, NEVER before any."""
        return NEVER if self.manifest.first_post is None else self.manifest.first_post

    @property
    def keeps_posts(self) -> bool:
        """Whether there are posts already kept that a new subscription can catch up with."""
        return self.plan.settings.keep != "none" and self.manifest.clock is not None

    def new_name(self, kind: str) -> str:
        return self.plan.state.new_name(kind, self.plan.batch, self.worker)

    def add(self, kind: str, name: str, rows: int, size: int, **more: int) -> None:
        """Name a new segment of this worker's in the result."""
        facts = {"layout": self.plan.layout}
        ref = SegmentRef(kind, name, rows, size, self.plan.batch, self.worker, facts=facts, **more)
        self.result.segments.append(ref)

    def kept_posts(self, since: int, deleted: pa.Table) -> Iterator[tuple[PostSegment, np.ndarray]]:
        """The posts of this worker's leaves that are kept, from a time on: each segment and its rows. `deleted` are the
        deletions of this batch, which count already.
        """
        for ref in self.manifest.of(POSTS):
            if ref.max_ts < since or not self.plan.mine(ref, self.worker):
                continue
            segment = PostSegment(self.plan.state.path(ref.name))
            rows = own_posts(self.plan, ref, segment, np.flatnonzero(segment.ts >= since), self.worker)
            deletes = deletes_for(self.plan.state, self.manifest, ref).select(["id", "id_text"])
            deletes = pa.concat_tables([deletes, deleted.cast(deletes.schema)])
            yield segment, rows[~segment.deleted(deletes)[rows]]
