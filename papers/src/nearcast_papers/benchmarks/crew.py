"""The pipeline's batches in several processes without Spark: route and work side by side, commit here.

What Spark adds (planning, the JVM, its checkpoint) is left out, nothing else: the same functions, files and manifests.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any

from nearcast.engine.batch import Plan
from nearcast.engine.commit import commit_batch, following
from nearcast.engine.freed_memory import keep_freed_memory
from nearcast.engine.route import route_ops, route_posts
from nearcast.engine.second_round import second_round
from nearcast.engine.settings import Settings
from nearcast.engine.task_result import Report
from nearcast.engine.work import work
from nearcast.sources.formats import Split
from nearcast.sources.op_records import read_ops
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import open_table
from nearcast.storage.manifest import Manifest

RoutedPackets = list[tuple[int, bytes]]


def ops_of(plan: Plan, order: int, split: Split) -> RoutedPackets:
    """A split of a file of ops, routed."""
    raw, _ = read_ops(split)
    return list(route_ops(plan, raw, order))


def posts_of(plan: Plan, order: int, path: Path) -> RoutedPackets:
    """A file of normalised posts, routed."""
    return list(route_posts(plan, open_table(path), order))


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

    def batch(self, route: Callable[[Plan, int, Any], RoutedPackets], parts: Sequence[Any]) -> Manifest:
        """Route the parts, let each worker work, commit."""
        manifest = self.state.newest()
        plan = Plan(str(self.state.root), manifest, self.settings, manifest.batch + 1)
        routing = [
            self.processes[order % len(self.processes)].submit(route, plan, order, part)
            for order, part in enumerate(parts)
        ]
        inboxes: list[list[bytes]] = [[] for _ in self.processes]
        for routed in routing:
            for worker, packet in routed.result():
                inboxes[worker].append(packet)
        working = [process.submit(work, plan, worker, inboxes[worker]) for worker, process in enumerate(self.processes)]
        reports = [each.result() for each in working]
        more = second_round(plan, following(plan, "bench", reports), reports, self._all)
        self._add_up(reports)
        return commit_batch(plan, "bench", reports, more)

    def _all(self, done: Callable[[int], Report]) -> list[Report]:
        """A further round: each worker in its process."""
        working = [process.submit(done, worker) for worker, process in enumerate(self.processes)]
        return [each.result() for each in working]

    def _add_up(self, reports: Sequence[Report]) -> None:
        for report in reports:
            for stage, seconds in report.seconds.items():
                self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
