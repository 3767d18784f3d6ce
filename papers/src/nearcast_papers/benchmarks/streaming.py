"""Running the pipeline on Spark for a measurement: what was committed when, and what each stage cost."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.engine.batch import BatchPlan
from nearcast.engine.begin import begin
from nearcast.engine.route import route_posts
from nearcast.engine.settings import Settings
from nearcast.engine.task_result import TaskResult
from nearcast.sources.formats import read_split, whole_file
from nearcast.sources.world import World
from nearcast.sources.world_source import world_spec
from nearcast.storage.checkpoint import ROLES, Offset, batch_offset, batch_time
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import RESULTS, Manifest
from nearcast.storage.outbox import Results
from nearcast_papers.benchmarks.figures import Progress
from nearcast_papers.benchmarks.pipeline_workload import PipelineWorkload

Spark = Any  # a SparkSession, whose type only the pipeline may import


@dataclass(frozen=True)
class Commit:
    """A committed batch: when, how far it went in ops and posts, when its offsets were logged, its stages' seconds."""

    at: float
    ops: int
    posts: int
    logged: float
    seconds: dict[str, float]


def total(offset: Offset | None, role: str) -> int:
    """How far all sources of a role are, where each counts its rows."""
    return sum(entry["at"] for entry in offset[role].values()) if offset else 0


@dataclass
class Watch:
    """Notes every commit of a run."""

    state: StateDirectory
    progress: Progress
    name: str
    commits: list[Commit] = field(default_factory=list)

    def __call__(self, manifest: Manifest, reports: list[TaskResult]) -> None:
        at = time.time()
        logged = (batch_time(self.state, manifest.batch) or 0) / 1e6
        ops, posts = (total(batch_offset(self.state, manifest.batch), role) for role in ROLES)
        seconds: dict[str, float] = {}
        for report in reports:
            for stage, took in report.seconds.items():
                seconds[stage] = seconds.get(stage, 0.0) + took
        self.commits.append(Commit(at, ops, posts, logged, seconds))
        self.progress(f"{self.name}: {posts:,} posts, {manifest.counts.get('results', 0):,} results committed")

    def of_posts(self) -> list[Commit]:
        return [commit for commit in self.commits if commit.posts]


def drain(
    progress: Progress, spark: Spark, folder: Path, workload: PipelineWorkload, keep: str, batch_posts: int, cores: int
) -> tuple[Manifest, Watch]:
    """All of the workload through the pipeline, once."""
    from nearcast.engine.samples import sampled_posts
    from nearcast.engine.settings import Inputs
    from nearcast.engine.spark.streaming_query import Pipeline, read_packets

    state, settings = StateDirectory(folder / f"keep-{keep}"), Settings(workers=cores, keep=keep)
    inputs = Inputs(posts=(str(workload.posts),), ops=(str(workload.ops),), batch_posts=batch_posts, splits=cores)
    begin(state, settings, sampled_posts(inputs))
    watch = Watch(state, progress, f"keep {keep}")
    query = Pipeline(state, settings, watch).start(read_packets(spark, state, settings, inputs), drain=True)
    query.awaitTermination()
    return state.newest(), watch


def at_rate(
    progress: Progress,
    spark: Spark,
    folder: Path,
    workload: PipelineWorkload,
    world: World,
    rate: float,
    seconds: float,
    cores: int,
) -> Watch:
    """Generated posts at a rate, for so long after the first ones were committed."""
    from nearcast.engine.samples import sampled_posts
    from nearcast.engine.settings import Inputs
    from nearcast.engine.spark.streaming_query import Pipeline, read_packets

    state, settings = StateDirectory(folder / "rate"), Settings(workers=cores)
    inputs = Inputs((world_spec(world, rate),), (str(workload.ops),), splits=cores)
    begin(state, settings, sampled_posts(inputs))
    watch = Watch(state, progress, f"{rate:,.0f} posts/s")
    query = Pipeline(state, settings, watch).start(read_packets(spark, state, settings, inputs), drain=False)
    try:
        while query.isActive and not (watch.of_posts() and time.time() > watch.of_posts()[0].at + seconds):
            time.sleep(0.1)
    finally:
        query.stop()
    return watch


def latencies(watch: Watch, rate: float, from_share: float = 0.5) -> np.ndarray:
    """Seconds from each post's arrival to its commit, for the posts of the last part of a run.

    Post i is due at i / rate after the source's clock began. When that was follows from the batches: one that ends at
    post p had its end asked for when p was due, some milliseconds before Spark logged it.
    """
    commits = watch.of_posts()
    began = min(commit.logged - commit.posts / rate for commit in commits)
    ends = np.array([commit.posts for commit in commits])
    first = int(ends[0] + (ends[-1] - ends[0]) * from_share)
    posts = np.arange(first, ends[-1])
    committed = np.array([commit.at for commit in commits])[np.searchsorted(ends, posts, side="right")]
    return committed - (began + posts / rate)


def matches_below(state: StateDirectory, manifest: Manifest, posts: int) -> int:
    """How many results are about the first `posts` posts."""
    total = 0
    for ref in manifest.of(RESULTS):
        results = Results.open(state.path(ref.name))
        ids = results.posts["id"].to_numpy()
        total += int((ids[results.table["post"].to_numpy()] < posts).sum())
    return total


def route_profile(state: StateDirectory, settings: Settings, workload: PipelineWorkload) -> dict[str, float]:
    """Processor µs a post of the source's stages, done over again here for one file of posts."""
    plan = BatchPlan(str(state.root), state.newest(), settings)
    path = sorted(workload.posts.iterdir())[0]
    for _ in stages(plan, path):  # loads compiled code and the summary
        pass
    spent, posts = {"read": 0.0, "route": 0.0}, 0
    for stage, seconds, rows in stages(plan, path):
        spent[stage] += seconds
        posts += rows
    return {stage: seconds / posts * 1e6 for stage, seconds in spent.items()}


def stages(plan: BatchPlan, path: Path) -> Iterator[tuple[str, float, int]]:
    """(stage, processor seconds, posts read): reading and routing a file, piece by piece."""
    began = time.process_time()
    for order, (posts, _) in enumerate(read_split(whole_file(str(path)))):
        yield "read", time.process_time() - began, len(posts)
        began = time.process_time()
        for _ in route_posts(plan, posts, order):
            pass
        yield "route", time.process_time() - began, 0
        began = time.process_time()


def rate_of(watch: Watch) -> dict[str, Any]:
    """Wall time between the first and the last commit of posts, what was committed in it, the rate of each batch."""
    commits = watch.of_posts()
    steps = list(pairwise(commits))
    seconds = commits[-1].at - commits[0].at
    posts = commits[-1].posts - commits[0].posts
    spent: dict[str, float] = {}
    for commit in commits[1:]:
        for stage, took in commit.seconds.items():
            spent[stage] = spent.get(stage, 0.0) + took
    return {
        "seconds": seconds,
        "posts": posts,
        "batches": [(after.posts - before.posts) / (after.at - before.at) for before, after in steps],
        "stages": spent,
    }
