"""Batches in one process, without Spark: for tests, for compiling kernels, and for small jobs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.engine.batch import BatchPlan
from nearcast.engine.driver import BatchId, run_batch
from nearcast.engine.route import route_ops, route_posts, route_rejects
from nearcast.engine.settings import Settings
from nearcast.engine.task_result import TaskResult
from nearcast.engine.work import work
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest

Inboxes = list[list[bytes]]  # packets by worker


@dataclass(frozen=True)
class LocalWorkers:
    """One worker after the other. Posts are normalised tables in the order of the stream; ops are raw."""

    workers: int
    posts: Sequence[pa.Table] = ()
    ops: pa.Table | None = None
    rejects: pa.Table | None = None

    def route(self, plan: BatchPlan) -> Inboxes:
        routed = [route_posts(plan, table, 1 + n, drop=self.ops is None) for n, table in enumerate(self.posts)]
        if self.ops is not None:
            routed.append(route_ops(plan, self.ops, 0))
        if self.rejects is not None:
            routed.append(route_rejects(plan, self.rejects, 0))
        inboxes: Inboxes = [[] for _ in range(self.workers)]
        for packets in routed:
            for worker, packet in packets:
                inboxes[worker].append(packet)
        return inboxes

    def earliest(self, packets: Inboxes) -> int | None:
        return min((pc.min(table["ts"]).as_py() for table in self.posts if len(table)), default=None)

    def work(self, plan: BatchPlan, packets: Inboxes) -> list[TaskResult]:
        return [work(plan, worker, inbox) for worker, inbox in enumerate(packets)]

    def all_workers(self, task: Callable[[int], TaskResult]) -> list[TaskResult]:
        return [task(worker) for worker in range(self.workers)]


def run_locally(
    state: StateDirectory,
    settings: Settings,
    posts: Iterable[pa.Table] = (),
    ops: pa.Table | None = None,
    rejects: pa.Table | None = None,
    query_id: str = "local",
    arrival: int | None = None,
) -> Manifest:
    """The next batch of a state: the manifest after it."""
    workers = LocalWorkers(settings.workers, list(posts), ops, rejects)
    return run_batch(state, settings, BatchId(query_id, state.newest().batch + 1, arrival), workers)[0]
