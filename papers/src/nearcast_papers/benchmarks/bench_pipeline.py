"""The whole pipeline on Spark, Parquet files to committed outbox, beside what Spark SQL's joins do with the same."""

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nearcast.engine.settings import Settings
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.pipeline_workload import PipelineWorkload, make_workload
from nearcast_papers.benchmarks.streaming import (
    Spark,
    Watch,
    at_rate,
    drain,
    latencies,
    matches_below,
    rate_of,
    route_profile,
)

SUMMARY = "posts a second from Parquet files to the committed outbox on Spark, latency, and Spark SQL's joins"
TARGETS = {"none": 250_000, "posts": 150_000}
PARTS = ("rate", "joins", "latency")


def run(
    progress: Progress,
    *,
    posts: int = 2_000_000,
    subscriptions: int = 200_000,
    batch_posts: int = 800_000,
    joined: int = 400_000,
    seconds: float = 30.0,
    load: float = 0.25,
    profile: bool = False,
    parts: tuple[str, ...] = PARTS,
    cores: int = 2,
    seed: int = 1,
    memory: str = "3g",
    folder: str | None = None,
) -> dict[str, Any]:
    """`joined` posts go through the joins; latency is measured for `seconds` at `load` times the measured rate."""
    from nearcast.engine.spark.session import local_session
    from nearcast.engine.warmup import warm_up

    facts, world = machine(), World(seed=seed)
    joined = min(joined, posts) if "joins" in parts else 0
    with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
        workload = make_workload(progress, Path(scratch), world, posts, subscriptions, joined)
        progress("compiling kernels (first time only)")
        warm_up()
        progress("starting Spark")
        spark = local_session(cores, memory, Path(scratch) / "spark.log", quick=False)
        try:
            figures = measure_rates(progress, spark, Path(scratch), workload, batch_posts, cores, profile)
            if "joins" in parts:
                figures["joins"] = measure_joins(progress, spark, Path(scratch), workload, joined, figures)
            if "latency" in parts:
                rate = load * figures["keep_posts"]["posts_per_s"]["value"]
                figures["latency"] = measure_latency(
                    progress, spark, Path(scratch), workload, world, rate, seconds, cores
                )
        finally:
            spark.stop()
    parameters = {
        "seed": seed, "posts": posts, "subscriptions": subscriptions, "words": 1, "batch_posts": batch_posts,
        "joined_posts": joined, "side_scale": rounded(workload.side_scale),
        "side_degrees": [rounded(side) for side in workload.side],
        "sampled_matches_a_post": rounded(workload.sampled_matches_a_post), "cores": cores, "driver_memory": memory,
    }  # fmt: skip
    return {"bench": "pipeline", "machine": facts, "parameters": parameters, "figures": figures}


def measure_rates(
    progress: Progress,
    spark: Spark,
    folder: Path,
    workload: PipelineWorkload,
    batch_posts: int,
    cores: int,
    profile: bool,
) -> dict[str, Any]:
    """Posts a second with `--keep none` and with posts kept.

    The clock runs from the first commit of posts to the last, so the JVM's start and the first batch's compiling are
    left out; `total_s` has everything from the start of the streaming query on, registering included.
    """
    figures: dict[str, Any] = {}
    for keep, target in TARGETS.items():
        began = time.time()
        manifest, watch = drain(progress, spark, folder, workload, keep, batch_posts, cores)
        if len(watch.of_posts()) < 2:
            raise ValueError("the rate needs two batches of posts: give more posts, or a smaller batch_posts")
        measured = rate_of(watch)
        results = manifest.counts["results"]
        figures[f"keep_{keep}"] = {
            "posts_per_s": figure(measured["posts"] / measured["seconds"], at_least=target),
            "batches_posts_per_s": figure(measured["batches"]),
            "posts_measured": measured["posts"],
            "measured_s": rounded(measured["seconds"]),
            "total_s": rounded(watch.commits[-1].at - began),
            "matches": results,
            "matches_a_post": round(results / workload.count, 4),
        }
        if profile:
            settings = Settings(workers=cores, keep=keep)
            source = route_profile(watch.state, settings, workload)
            figures[f"keep_{keep}"]["core_us_a_post"] = profiled(watch, source, cores)
    return figures


def profiled(watch: Watch, source: dict[str, float], cores: int) -> dict[str, float]:
    """Core time a post at each stage; "spark and idle" is what the stages leave of all cores' wall time."""
    measured = rate_of(watch)
    work = {stage: seconds / measured["posts"] * 1e6 for stage, seconds in measured["stages"].items()}
    whole = min(cores, os.cpu_count() or cores) * measured["seconds"] / measured["posts"] * 1e6
    known = {**source, **work}
    known["spark and idle"] = whole - sum(known.values())
    return {stage: round(micros, 3) for stage, micros in {**known, "all": whole}.items()}


def measure_joins(
    progress: Progress, spark: Spark, folder: Path, workload: PipelineWorkload, joined: int, figures: dict[str, Any]
) -> dict[str, Any]:
    """Spark SQL's joins over the first posts, held to the same number of matches as the outbox has for them."""
    from nearcast_papers.benchmarks.spark_join import cell_join, word_join

    state = StateDirectory(folder / "keep-none")
    ours = matches_below(state, state.newest(), joined)
    posts, queries = workload.for_joins / "posts", workload.for_joins / "subscriptions"
    rate = figures["keep_none"]["posts_per_s"]["value"]
    out: dict[str, Any] = {"posts": joined, "matches": ours}
    progress(f"Spark SQL: {joined:,} posts joined on the word and the cell")
    found, took = cell_join(spark, posts, queries, workload.side)
    check(found, ours, "word and cell")
    out["word_and_cell_posts_per_s"] = figure(joined / took)
    out["faster_than_word_and_cell"] = figure(rate / (joined / took), at_least=4)
    progress(f"Spark SQL: {joined:,} posts joined on the word")
    found, took = word_join(spark, posts, queries)
    check(found, ours, "word")
    out["word_posts_per_s"] = figure(joined / took)
    out["faster_than_word"] = figure(rate / (joined / took), at_least=50)
    return out


def check(found: int, ours: int, join: str) -> None:
    if found != ours:
        raise AssertionError(f"the join on {join} finds {found:,} matches, the pipeline {ours:,}")


def measure_latency(
    progress: Progress,
    spark: Spark,
    folder: Path,
    workload: PipelineWorkload,
    world: World,
    rate: float,
    seconds: float,
    cores: int,
) -> dict[str, Any]:
    """Seconds from the moment a generated post is due to the commit that holds it, posts kept."""
    watch = at_rate(progress, spark, folder, workload, world, rate, seconds, cores)
    waited = latencies(watch, rate)
    return {
        "posts_per_s": rounded(rate),
        "posts": len(waited),
        "median_s": figure(float(np.median(waited)), at_most=1.0),
        "p95_s": figure(float(np.percentile(waited, 95))),
    }
