"""The pipeline's batches in several processes without Spark: route and work side by side, commit here.

What Spark adds (planning, the JVM, its checkpoint) is left out, nothing else: the same functions, files and manifests.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any

from nearcast.engine.batch import BatchPlan
from nearcast.engine.driver import BatchId, run_batch
from nearcast.engine.freed_memory import keep_freed_memory
from nearcast.engine.route import route_ops, route_posts
from nearcast.engine.settings import Settings
from nearcast.engine.task_result import TaskResult
from nearcast.engine.work import work
from nearcast.sources.formats import FilePart
from nearcast.sources.op_records import read_ops
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import open_table
from nearcast.storage.manifest import Manifest

RoutedPackets = list[tuple[int, bytes]]


def ops_of(plan: BatchPlan, order: int, split: FilePart) -> RoutedPackets:
    """A split of a file of ops, routed."""
    raw, _ = read_ops(split)
    return list(route_ops(plan, raw, order))


def posts_of(plan: BatchPlan, order: int, path: Path) -> RoutedPackets:
    """A file of normalised posts, routed."""
    return list(route_posts(plan, open_table(path), order))


@dataclass(frozen=True)
class CrewWorkers:
    """The tasks of one batch, each worker in its process (`engine.driver.Workers`)."""

    processes: list[ProcessPoolExecutor]
    route_part: Callable[[BatchPlan, int, Any], RoutedPackets]
    parts: Sequence[Any]

    def route(self, plan: BatchPlan) -> list[list[bytes]]:
        routing = [
            self.processes[order % len(self.processes)].submit(self.route_part, plan, order, part)
            for order, part in enumerate(self.parts)
        ]
        inboxes: list[list[bytes]] = [[] for _ in self.processes]
        for routed in routing:
            for worker, packet in routed.result():
                inboxes[worker].append(packet)
        return inboxes

    def earliest(self, packets: list[list[bytes]]) -> int | None:
        return None  # a benchmark begins with a sample, which has shown it

    def work(self, plan: BatchPlan, packets: list[list[bytes]]) -> list[TaskResult]:
        working = [process.submit(work, plan, worker, packets[worker]) for worker, process in enumerate(self.processes)]
        return [each.result() for each in working]

    def all_workers(self, task: Callable[[int], TaskResult]) -> list[TaskResult]:
        working = [process.submit(task, worker) for worker, process in enumerate(self.processes)]
        return [each.result() for each in working]


class Crew:
    """One process for each worker; the same one all the time, so that what it keeps in memory serves again."""

    def __init__(self, state: StateDirectory, settings: Settings) -> None:
        self.state = state
        self.settings = settings
        self.seconds: dict[str, float] = {}
        context = get_context("spawn")
        self.processes = [ProcessPoolExecutor(1, context, keep_freed_memory) for _ in range(settings.workers)]

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.shutdown(wait=True, cancel_futures=True)

    def batch(self, route: Callable[[BatchPlan, int, Any], RoutedPackets], parts: Sequence[Any]) -> Manifest:
        """Route the parts, let each worker work, commit."""
        which = BatchId("bench", self.state.newest().batch + 1)
        after, tasks = run_batch(self.state, self.settings, which, CrewWorkers(self.processes, route, parts))
        self._add_up(tasks)
        return after

    def _add_up(self, tasks: Sequence[TaskResult]) -> None:
        for task in tasks:
            for stage, seconds in task.seconds.items():
                self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
