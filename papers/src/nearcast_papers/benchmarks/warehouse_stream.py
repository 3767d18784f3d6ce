"""Standing aggregates through the whole pipeline, batch by batch in one process (`engine.local.run_locally`).

A batch is routed, worked on by each worker, reported and committed. Workers run one after the other here and side by
side on Spark, so the path of a batch is that of the busiest: routing shared by the workers, the slowest of them in each
round, and what the driver does alone.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearcast.engine.align import align
from nearcast.engine.batch import BatchPlan
from nearcast.engine.begin import begin
from nearcast.engine.commit import commit_batch, following
from nearcast.engine.local import run_locally
from nearcast.engine.route import route_posts
from nearcast.engine.second_round import second_round
from nearcast.engine.settings import Settings
from nearcast.engine.task_result import TaskResult
from nearcast.engine.work import work
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.warehouse_data import stream
from nearcast_papers.benchmarks.warehouse_queries import WarehouseQueries
from nearcast_papers.benchmarks.warehouse_standing import SETS, StandingOptions, cut, sampled, subscriptions

AIM = 100_000
WORKERS = 2
COLD = 1  # batches that compile and plan


@dataclass
class Spent:
    """Seconds of processor time of one batch: those of its path, and by stage of all workers together."""

    path: dict[str, float] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    posts: int = 0
    reports: int = 0

    def add(self, what: str, seconds: float) -> None:
        self.path[what] = self.path.get(what, 0.0) + seconds


def measure(progress: Progress, folder: Path, name: str, options: StandingOptions) -> dict[str, Any]:
    function, pivots = SETS[name]
    tables = stream(options.posts, options.vocabulary, options.seed, options.rate)
    queries = WarehouseQueries(sampled(tables, options.seed), function, pivots, options.seed, standing=True)
    state, settings = StateDirectory(folder / f"stream-{name}"), Settings(workers=WORKERS, balance="off")
    batches = cut(tables, options.batch_posts)
    begin(state, settings, batches[0].slice(0, 20_000))
    progress(f"{name}, whole pipeline: subscribing")
    began = time.process_time()
    run_locally(state, settings, ops=subscriptions(queries.take(options.queries)))
    subscribing = time.process_time() - began
    spent = []
    for number, batch in enumerate(batches):
        each = Spent(posts=len(batch))
        timed_batch(state, settings, batch, each)
        spent.append(each)
        progress(
            f"{name}, whole pipeline: batch {number + 1} of {len(batches)}, {each.posts:,} posts, "
            f"{each.reports:,} reports, {sum(each.path.values()):.2f} s"
        )
    return told(spent[COLD:] or spent, subscribing)


def timed_batch(state: StateDirectory, settings: Settings, posts: pa.Table, spent: Spent) -> Manifest:
    """As `run_locally`, with a clock beside it."""
    clock = time.process_time
    plan = BatchPlan(str(state.root), align(state, settings), settings, state.newest().batch + 1)
    began = clock()
    inboxes: list[list[bytes]] = [[] for _ in range(settings.workers)]
    half = -(-len(posts) // settings.workers)
    for order in range(settings.workers):
        for worker, packet in route_posts(plan, posts.slice(order * half, half), 1 + order):
            inboxes[worker].append(packet)
    spent.add("route", (clock() - began) / settings.workers)
    took, reports = busiest(lambda worker: work(plan, worker, inboxes[worker]), settings.workers)
    spent.add("work", max(took))
    rounds: list[list[float]] = []

    def all_workers(done: Callable[[int], TaskResult]) -> list[TaskResult]:
        each, found = busiest(done, settings.workers)
        rounds.append(each)
        return found

    began = clock()
    more = second_round(plan, following(plan, "bench", reports), reports, all_workers)
    whole = clock() - began
    spent.add("second round", sum(max(each) for each in rounds))
    spent.add("driver", whole - sum(sum(each) for each in rounds))
    began = clock()
    manifest = commit_batch(plan, "bench", reports, more)
    spent.add("driver", clock() - began)
    for report in reports:
        for stage, seconds in report.seconds.items():
            spent.stages[stage] = spent.stages.get(stage, 0.0) + seconds
        spent.reports += report.counts.get("reports", 0)
    return manifest


def busiest(done: Callable[[int], TaskResult], workers: int) -> tuple[list[float], list[TaskResult]]:
    took, found = [], []
    for worker in range(workers):
        began = time.process_time()
        found.append(done(worker))
        took.append(time.process_time() - began)
    return took, found


def told(spent: Sequence[Spent], subscribing: float) -> dict[str, Any]:
    posts = sum(each.posts for each in spent)
    seconds = [sum(each.path.values()) for each in spent]
    reports = sum(each.reports for each in spent)
    path, stages = (summed([getattr(each, name) for each in spent], posts) for name in ("path", "stages"))
    return {
        "posts_per_s": figure(posts / sum(seconds), at_least=AIM),
        "batches_posts_per_s": figure([each.posts / took for each, took in zip(spent, seconds, strict=True)]),
        "path_us_a_post": path,
        "workers_core_us_a_post": stages,
        "posts": posts,
        "reports": reports,
        "us_a_report": rounded(sum(each.stages.get("reports", 0.0) for each in spent) / max(1, reports) * 1e6),
        "subscribing_s": rounded(subscribing),
    }


def summed(parts: Sequence[dict[str, float]], posts: int) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: rounded(sum(part.get(name, 0.0) for part in parts) / posts * 1e6) for name in names}
