"""Subscriptions that keep an answer up to date (SSTD's CKQ) or report on a beat (CTQ): the whole pipeline on Spark.

Queries are SSTD's (SSTD §7.1): made from posts, one word and k = 10 for the nearest, 0.01% of the world for the
frequent terms. Posts are those of the generator's world, 100,000 for each second of stream time, so that a rate of
100,000 posts/s is one that keeps up with the stream. The paper names no window and no step; here they are options.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.sources.world import World
from nearcast_papers.benchmarks.bulk_queries import write_parquet
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.pipeline_workload import A_FILE, SIDE, PipelineWorkload
from nearcast_papers.benchmarks.streaming import Spark, Watch, drain, rate_of
from nearcast_papers.query_sets import PostSample, sstd

SUMMARY = "posts a second with subscriptions to the nearest (CKQ) and to frequent terms (CTQ), on Spark"
PARTS = ("ckq", "ctq")
AIM = 100_000


def run(
    progress: Progress,
    *,
    posts: int = 4_000_000,
    subscriptions: int = 100_000,
    k: int = 10,
    window: float = 30.0,
    beat: float = 10.0,
    rate: int = 100_000,
    batch_posts: int = 400_000,
    keep: str = "posts",
    parts: tuple[str, ...] = PARTS,
    cores: int = 2,
    seed: int = 1,
    memory: str = "3g",
    folder: str | None = None,
) -> dict[str, Any]:
    """`window` and `beat` are in seconds of stream time, of which each has `rate` posts."""
    from nearcast.engine.spark.session import local_session
    from nearcast.engine.warmup import warm_up, warm_up_searches

    parts = (parts,) if isinstance(parts, str) else parts
    facts, world = machine(), World(seed=seed, rate=rate)
    figures: dict[str, Any] = {}
    with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
        write_posts(progress, Path(scratch), world, posts)
        progress("compiling kernels (first time only)")
        warm_up()
        warm_up_searches()
        progress("starting Spark")
        spark = local_session(cores, memory, Path(scratch) / "spark.log", quick=False)
        try:
            for part in parts:
                queries = (
                    nearest(world, subscriptions, k) if part == "ckq" else terms(world, subscriptions, k, window, beat)
                )
                figures[part] = measure(progress, spark, Path(scratch), part, queries, posts, keep, batch_posts, cores)
        finally:
            spark.stop()
    parameters = {
        "seed": seed, "posts": posts, "subscriptions": subscriptions, "k": k, "window_s": window, "beat_s": beat,
        "posts_per_stream_s": rate, "batch_posts": batch_posts, "keep": keep, "cores": cores, "driver_memory": memory,
    }  # fmt: skip
    return {"bench": "continuous", "machine": facts, "parameters": parameters, "figures": figures}


def write_posts(progress: Progress, folder: Path, world: World, posts: int) -> None:
    for first in range(0, posts, A_FILE):
        write_parquet(folder / "posts" / f"{first:012d}.parquet", world.posts(first, min(A_FILE, posts - first)))
        progress(f"wrote {min(first + A_FILE, posts):,} of {posts:,} posts")


def nearest(world: World, count: int, k: int) -> pa.Table:
    """The k nearest with one word, to the place of a post that has it."""
    made = sstd(PostSample.of(world), count, world.seed)
    lon, lat = ((made[f"min_{axis}"].to_numpy() + made[f"max_{axis}"].to_numpy()) / 2 for axis in ("lon", "lat"))
    return pa.table({"id": made["id"], "lon": lon, "lat": lat, "k": np.full(count, float(k)), "text": made["text"]})


def terms(world: World, count: int, k: int, window: float, beat: float) -> pa.Table:
    """The k most frequent terms of 0.01% of the world about a post."""
    places = PostSample.of(world)
    pick = np.random.default_rng((world.seed, 0xC79)).integers(len(places.lon), size=count)
    lon, lat = places.lon[pick], places.lat[pick]
    width, height = SIDE
    return pa.table({
        "id": np.arange(count), "k": np.full(count, float(k)),
        "min_lon": np.clip(lon - width / 2, -180, 180), "max_lon": np.clip(lon + width / 2, -180, 180),
        "min_lat": np.clip(lat - height / 2, -90, 90), "max_lat": np.clip(lat + height / 2, -90, 90),
        "window_seconds": np.full(count, window), "sync_seconds": np.full(count, beat),
    })  # fmt: skip


def measure(
    progress: Progress,
    spark: Spark,
    folder: Path,
    part: str,
    queries: pa.Table,
    posts: int,
    keep: str,
    batch_posts: int,
    cores: int,
) -> dict[str, Any]:
    """The rate between the first and the last commit of posts; the first one finds every answer empty."""
    ops = folder / part / "ops" / "subscriptions.parquet"
    write_parquet(ops, queries)
    workload = PipelineWorkload(folder / "posts", ops, folder, posts, 1.0, 0.0)
    manifest, watch = drain(progress, spark, folder / part, workload, keep, batch_posts, cores)
    measured = rate_of(watch)
    counts = manifest.counts
    return {
        "posts_per_s": figure(measured["posts"] / measured["seconds"], at_least=AIM),
        "batches_posts_per_s": figure(measured["batches"]),
        "first_batch_s": rounded(first_batch(watch)),
        "posts_measured": measured["posts"],
        **{name: counts[name] for name in ("entered", "left", "reports", "late", "results") if counts.get(name)},
        "core_us_a_post": costs(measured, cores),
    }


def first_batch(watch: Watch) -> float:
    """From the commit of the subscriptions to that of the first posts."""
    first = watch.of_posts()[0]
    before = [commit.at for commit in watch.commits if commit.at < first.at]
    return first.at - max(before, default=first.logged)


def costs(measured: dict[str, Any], cores: int) -> dict[str, float]:
    """Core time a post of each stage of the workers, and all cores' wall time."""
    stages = {stage: seconds / measured["posts"] * 1e6 for stage, seconds in measured["stages"].items()}
    stages["all"] = min(cores, os.cpu_count() or cores) * measured["seconds"] / measured["posts"] * 1e6
    return {stage: round(micros, 3) for stage, micros in stages.items()}
