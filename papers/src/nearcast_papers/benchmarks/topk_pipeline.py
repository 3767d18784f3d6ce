"""Subscriptions by relevance through the whole pipeline: registering, a first window, then batches (Skype §8.2).

Route, work, match, settle and commit, each worker in a process of its own; what Spark adds is left out
(`nearcast_papers.benchmarks.crew`).
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.engine.begin import begin
from nearcast.engine.settings import Settings
from nearcast.engine.spark.data_source import OPS_A_BATCH
from nearcast.sources.file_log import FileLog
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_table
from nearcast.storage.manifest import BUFFERS
from nearcast_papers.benchmarks.bulk_queries import write_parquet
from nearcast_papers.benchmarks.crew import Crew, ops_of, posts_of
from nearcast_papers.benchmarks.figures import Progress, figure
from nearcast_papers.benchmarks.pubsub_churn import compile_kernels

A_FILE = 500_000  # subscribers
A_PART = 250_000  # posts of the first window that are written at once
EVERY = 30.0  # seconds: how often a long batch says that it goes on


def measure_pipeline(
    progress: Progress, folder: Path, subscribers: int, window: int, posts: int, batches: int, k: int, workers: int,
    distribution: str, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Posts a second once the window is full: `batches` of `posts` each, all committed, results in the outbox."""
    world = World(seed=seed, vocabulary=300_000)
    progress(f"pipeline: writing {subscribers:,} subscribers")
    for first in range(0, subscribers, A_FILE):
        made = asked_from(world, first, min(A_FILE, subscribers - first), k, window, seed)
        write_parquet(folder / "subscribers" / f"{first:012d}.parquet", made)
    start = 2 * subscribers  # posts that no subscriber was drawn from
    state = StateDirectory(folder / "state")
    settings = Settings(workers=workers, topk_distribution=distribution, max_future=None)
    begin(state, settings, normalise(world.posts(start, 50_000))[0])
    with Crew(state, settings) as crew:
        for each in [process.submit(compile_kernels) for process in crew.processes]:
            each.result()
        found = {"registering": register(progress, crew, state, folder / "subscribers", subscribers)}
        progress(f"pipeline: the first window, {window:,} posts, which all subscribers search")
        pids = [process.submit(os.getpid).result() for process in crew.processes]
        files = written(folder / "window", world, start, window, workers)
        began = time.perf_counter()
        with watched(progress, "pipeline: the first window", pids):
            crew.batch(posts_of, files)
        took = time.perf_counter() - began
        found["filling"] = {"seconds": round(took, 1), "core_us_a_subscriber": core(crew, subscribers)}
        found["batches"] = go_on(progress, crew, folder, world, start + window, posts, batches, workers)
        found["memory"] = {"peak_gb_by_worker": [memory(pid, "VmHWM") for pid in pids]}
    size = sum(ref.size for ref in state.newest().of(BUFFERS))
    found["buffers"] = {"bytes_on_disk_a_subscriber": round(size / subscribers, 1)}
    return found


@contextmanager
def watched(progress: Progress, what: str, pids: Sequence[int]) -> Iterator[None]:
    """Say from time to time how long it has taken, and what memory the workers have."""
    done, began = Event(), time.perf_counter()

    def tell() -> None:
        while not done.wait(EVERY):
            sizes = " and ".join(f"{memory(pid, 'VmRSS')} GB" for pid in pids)
            progress(f"{what}: {time.perf_counter() - began:.0f} s, workers with {sizes}")

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def memory(pid: int, name: str) -> float:
    """GB that a process has (VmRSS) or had at most (VmHWM), mapped files included; 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((round(int(line.split()[1]) / 1e6, 2) for line in lines if line.startswith(f"{name}:")), 0.0)


def asked_from(world: World, first: int, count: int, k: int, window: int, seed: int) -> pa.Table:
    """One subscriber of each post: its place, one to five of its words, any alpha (§8.1.1)."""
    made = world.posts(first, count)
    rng = np.random.default_rng((seed, first))
    pieces = pc.utf8_split_whitespace(pc.utf8_lower(made["text"].combine_chunks()))
    offsets = pieces.offsets.to_numpy()
    sizes = np.diff(offsets)
    wanted = np.minimum(rng.integers(1, 6, count), np.maximum(sizes, 1))
    owner = np.repeat(np.arange(count), sizes)
    order = np.lexsort((rng.random(len(owner)), owner))
    place = np.arange(len(owner)) - np.repeat(offsets[:-1] - offsets[0], sizes)
    picked = order[place < wanted[owner]]
    ends = np.concatenate([[0], np.cumsum(np.minimum(wanted, sizes))]).astype(np.int32)
    words = pa.ListArray.from_arrays(pa.array(ends), pieces.values.take(pa.array(picked)))
    return pa.table(
        {
            "id": np.arange(first, first + count), "lon": made["lon"], "lat": made["lat"],
            "words": pc.binary_join(words, " "), "alpha": rng.random(count), "k": np.full(count, k),
            "window_posts": np.full(count, window),
        }
    )  # fmt: skip


def written(folder: Path, world: World, first: int, count: int, workers: int) -> list[Path]:
    """Normalised posts, in a file for each worker."""
    cuts = [first + count * i // workers for i in range(workers + 1)]
    files = []
    for worker in range(workers):
        tables = []
        for at in range(cuts[worker], cuts[worker + 1], A_PART):
            tables.append(normalise(world.posts(at, min(A_PART, cuts[worker + 1] - at)))[0])
        files.append(folder / f"{first:012d}-{worker}.arrow")
        write_table(files[-1], pa.concat_tables(tables).combine_chunks())
    return files


def register(progress: Progress, crew: Crew, state: StateDirectory, folder: Path, count: int) -> dict[str, Any]:
    log = FileLog(state.source, "ops")
    log.extend([str(folder)])
    position, began = 0, time.perf_counter()
    while position < log.total:
        end = log.advance(position, OPS_A_BATCH, log.total)
        crew.batch(ops_of, log.splits(position, end, crew.settings.workers))
        position = end
        progress(f"pipeline: registered {position:,} of {log.total:,}")
    return {"subscriptions_per_s": round(count / (time.perf_counter() - began))}


def go_on(
    progress: Progress, crew: Crew, folder: Path, world: World, first: int, posts: int, batches: int, workers: int
) -> dict[str, Any]:
    """Batches over the full window, timed."""
    files = [written(folder / "posts", world, first + i * posts, posts, workers) for i in range(batches)]
    before = dict(crew.state.newest().counts)
    crew.seconds.clear()
    seconds = []
    for number, some in enumerate(files):
        began = time.perf_counter()
        crew.batch(posts_of, some)
        seconds.append(time.perf_counter() - began)
        progress(f"pipeline: batch {number + 1} of {batches}, {posts / seconds[-1]:,.0f} posts/s")
    after = crew.state.newest().counts
    grew = {name: after.get(name, 0) - before.get(name, 0) for name in after}
    total = posts * batches
    names = ("entered", "left", "refilled", "settled", "relevance_candidates", "relevance_messages")
    return {
        "posts_per_s": figure(total / sum(seconds), at_least=1_300),
        "by_batch": figure([posts / each for each in seconds]),
        "core_us_a_post": core(crew, total),
        "a_post": {name: round(grew.get(name, 0) / total, 2) for name in names},
    }


def core(crew: Crew, count: int) -> dict[str, float]:
    stages = {name: round(took / count * 1e6, 1) for name, took in sorted(crew.seconds.items())}
    crew.seconds.clear()
    return {name: value for name, value in stages.items() if value}
