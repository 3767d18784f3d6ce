"""Registering subscriptions in bulk, and PS2Stream's churn over what was registered (PS2Stream §VI-A)."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.engine.begin import begin
from nearcast.engine.settings import Settings
from nearcast.engine.spark.data_source import OPS_A_BATCH
from nearcast.sources.file_log import FileLog
from nearcast.sources.formats import whole_file
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.sources.world.world_vocabulary import SMALLEST
from nearcast.storage.compaction_policy import FAN
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_table
from nearcast.storage.manifest import SUBSCRIPTIONS, Manifest
from nearcast_papers.benchmarks.bulk_queries import as_ops, write_parquet
from nearcast_papers.benchmarks.crew import Crew, ops_of, posts_of
from nearcast_papers.benchmarks.figures import Progress, figure
from nearcast_papers.query_sets import DELETE, INSERT, POSTS_PER_UPDATE, PostSample, churn, q2, updates

A_FILE = 1_000_000  # subscriptions
FEWEST_SAMPLED, SAMPLED = 10_000, 1_000_000  # posts, for the words and places of queries
VOCABULARY = 1_000_000  # words: a day of tweets has as many, and Q2 is about those outside their top 1%


@dataclass(frozen=True)
class Coming:
    """How many queries stand at first, numbered from 0, and the updates to come: INSERT or DELETE, and the query."""

    standing: int
    kinds: np.ndarray
    queries: np.ndarray

    @classmethod
    def of(cls, mu: int, count: int, seed: int) -> "Coming":
        """`count` updates of a stream that has run long enough for about μ queries to stand."""
        before = 2 * mu
        deleted_at = churn(mu, before + count, seed)
        alive = (np.arange(len(deleted_at)) >= before) | (deleted_at >= before)
        number = np.cumsum(alive) - 1
        kinds, queries = updates(deleted_at)
        later = np.cumsum(kinds == INSERT) > before
        kinds, queries = kinds[later][:count], queries[later][:count]
        return cls(int(alive[:before].sum()), kinds, number[queries])


def measure_churn(
    progress: Progress, folder: Path, live: int, posts: int, steps: int, workers: int, or_share: float, seed: int
) -> dict[str, Any]:
    """Registering, then churn. A step is a batch of updates and one of posts, five posts to an update, each committed.

    Subscriptions come from Parquet files with bulk columns, posts from memory-mapped files, their texts not yet cut
    into words.
    """
    a_step = posts // POSTS_PER_UPDATE
    coming = Coming.of(live, a_step * steps, seed)
    world = World(seed=seed, vocabulary=max(SMALLEST, min(VOCABULARY, live)))
    progress("churn: looking at the words of a sample of posts")
    sample = PostSample.of(world.posts(0, min(SAMPLED, max(live, FEWEST_SAMPLED))))
    progress(f"churn: writing {coming.standing:,} Q2 queries, and {steps} steps of {posts:,} posts")
    queries = folder / "queries"
    for first in range(0, coming.standing, A_FILE):
        table = q2(sample, min(A_FILE, coming.standing - first), seed, first, or_share)
        write_parquet(queries / f"{first:012d}.parquet", table)
    prepared = [prepare(folder, step, coming, sample, world, posts, workers, or_share, seed) for step in range(steps)]

    state, settings = StateDirectory(folder / "state"), Settings(workers=workers, keep="none")
    begin(state, settings, normalise(world.posts(0, 20_000))[0])
    with Crew(state, settings) as crew:
        registering = register(progress, crew, state, queries)
        crew.seconds.clear()
        churning = go_on(progress, crew, prepared, posts)
    return {"registering": registering, "churn": churning}


def prepare(
    folder: Path,
    step: int,
    coming: Coming,
    sample: PostSample,
    world: World,
    posts: int,
    workers: int,
    or_share: float,
    seed: int,
) -> tuple[Path, list[Path]]:
    """A step's file of updates, and its posts as one file a worker."""
    a_step = posts // POSTS_PER_UPDATE
    part = slice(step * a_step, (step + 1) * a_step)
    kinds, queries = coming.kinds[part], coming.queries[part]
    fresh = queries[kinds == INSERT]
    made = as_ops(q2(sample, len(fresh), seed, int(fresh[0]) if len(fresh) else 0, or_share))
    ended = pa.table({"op": ["unsubscribe"] * int((kinds == DELETE).sum()), "id": queries[kinds == DELETE]})
    both = pa.concat_tables([made, ended], promote_options="default")
    place = np.empty(len(kinds), np.int64)
    place[kinds == INSERT] = np.arange(len(fresh))
    place[kinds == DELETE] = len(fresh) + np.arange(len(ended))
    ops = folder / "updates" / f"{step:06d}.parquet"
    write_parquet(ops, both.take(pa.array(place)).drop_columns(["id_text", "ts", "sql"]))
    cuts = [step * posts + posts * i // workers for i in range(workers + 1)]
    files = []
    for worker in range(workers):
        files.append(folder / "posts" / f"{step:06d}-{worker}.arrow")
        write_table(
            files[-1], normalise(world.posts(cuts[worker], cuts[worker + 1] - cuts[worker]))[0].combine_chunks()
        )
    return ops, files


def register(progress: Progress, crew: Crew, state: StateDirectory, queries: Path) -> dict[str, Any]:
    """All files of queries, in batches as the pipeline takes them, merging included."""
    log = FileLog(state.source, "ops")
    log.extend([str(queries)])
    warm_up(crew)
    position, manifest = 0, state.newest()
    began = time.perf_counter()
    while position < log.total:
        end = log.advance(position, OPS_A_BATCH, log.total)
        manifest = crew.batch(ops_of, log.splits(position, end, crew.settings.workers))
        position = end
        progress(f"registering: {position:,} of {log.total:,}")
    took = time.perf_counter() - began
    kept = manifest.of(SUBSCRIPTIONS)
    stood = manifest.counts["subscribed"]
    return {
        "subscriptions": stood,
        "copies_kept_by_workers": sum(ref.rows for ref in kept),
        "subscriptions_per_s": figure(stood / took, at_least=500_000),
        "bytes_a_subscription": figure(sum(ref.size for ref in kept) / stood, at_most=250),
        "segments": len(kept),
    }


def warm_up(crew: Crew) -> None:
    """Start the processes, and let them load compiled code."""
    for each in [process.submit(compile_kernels) for process in crew.processes]:
        each.result()


def compile_kernels() -> None:
    """The whole path once, over a handful of queries and posts in a state that is thrown away."""
    from tempfile import TemporaryDirectory

    from nearcast.engine.local import run_locally

    world = World()
    made = world.posts(0, 4000)
    posts = normalise(made)[0]
    with TemporaryDirectory() as folder:
        state, settings = StateDirectory(Path(folder) / "state"), Settings(workers=2, keep="none")
        begin(state, settings, posts)
        ops = as_ops(q2(made, 10 * (FAN + 1)))
        for turn in range(FAN + 1):  # so many that segments are merged
            run_locally(state, settings, ops=ops.slice(10 * turn, 10))
        ended = pa.table({"op": ["unsubscribe"] * 10, "id": ops["id"].slice(0, 10)})
        filled = pa.concat_tables([ops.schema.empty_table(), ended], promote_options="default")
        run_locally(state, settings, ops=filled)
        run_locally(state, settings, posts=[posts])


def go_on(progress: Progress, crew: Crew, prepared: list[tuple[Path, list[Path]]], posts: int) -> dict[str, Any]:
    """Every step, timed; a step that merges large segments takes longer, and counts like the others."""
    seconds, tuples = [], posts + posts // POSTS_PER_UPDATE
    manifest: Manifest = crew.state.newest()
    before = dict(manifest.counts)
    for step, (ops, files) in enumerate(prepared):
        began = time.perf_counter()
        crew.batch(ops_of, [whole_file(str(ops))])
        manifest = crew.batch(posts_of, files)
        seconds.append(time.perf_counter() - began)
        progress(f"churn: step {step + 1} of {len(prepared)}, {tuples / seconds[-1]:,.0f} tuples/s")
    grew = {name: manifest.counts.get(name, 0) - before.get(name, 0) for name in manifest.counts}
    stages = {name: round(took / (tuples * len(seconds)) * 1e6, 3) for name, took in sorted(crew.seconds.items())}
    return {
        "tuples": tuples * len(seconds),
        "tuples_per_s": figure(tuples * len(seconds) / sum(seconds), at_least=270_000),
        "steps_tuples_per_s": figure([tuples / each for each in seconds]),
        "live_queries": manifest.counts["subscribed"] - manifest.counts["unsubscribed"],
        "inserted": grew.get("subscribed", 0),
        "deleted": grew.get("unsubscribed", 0),
        "matches": grew.get("matches", 0),
        "matches_a_post": round(grew.get("matches", 0) / (posts * len(seconds)), 3),
        "merges": grew.get("merges", 0),
        "core_us_a_tuple": stages,
    }
