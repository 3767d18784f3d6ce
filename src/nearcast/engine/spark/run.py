"""A run: one writer on one state, from the lock to the last commit."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.common.errors import BadInput, NearcastError
from nearcast.engine.align import align
from nearcast.engine.begin import begin, create
from nearcast.engine.kernel_compilation import Kernels, compiling
from nearcast.engine.kernel_forecast import to_compile
from nearcast.engine.samples import sampled_ops, sampled_posts
from nearcast.engine.settings import Inputs, Settings
from nearcast.engine.settings_check import check_derived
from nearcast.engine.spark.session import local_session, prime
from nearcast.engine.spark.streaming_query import OnCommit, Pipeline, check_checkpoint, read_packets
from nearcast.engine.task_result import TaskResult
from nearcast.engine.warmup import is_warm
from nearcast.sinks.delivery import CommittedOutbox, Delivery
from nearcast.sources.inbox import empty_inbox
from nearcast.sources.protocol import OPS, POSTS, SourceContext
from nearcast.sources.registry import open_sources
from nearcast.storage.directory import StateDirectory, WriterLock
from nearcast.storage.manifest import Manifest
from nearcast.storage.sweep import empty_spool, sweep

SWEEP_EVERY = 60.0


def run(
    state: str,
    inputs: Inputs,
    settings: Settings,
    drain: bool = False,
    on_commit: OnCommit | None = None,
    on_stage: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
    memory: str = "3g",
    delivery: Delivery | None = None,
) -> Manifest:
    """Stream posts and ops into a state until `stop` is set, or until everything given has been read (`drain`).

    The settings are those that `settings_check.settings_for` makes.
    """
    say = on_stage or (lambda stage: None)
    directory = StateDirectory(Path(state).absolute())
    check_derived(directory, settings)
    for advice in advices(directory, inputs, drain):
        say(advice)
    with WriterLock(directory):
        if directory.exists():
            check_checkpoint(directory)
        with compiling() as kernels, opened(directory, inputs, settings, memory, say, kernels) as spark:
            kernels.then(lambda: say("streaming"))
            packets = read_packets(spark, directory, settings, inputs)
            return follow(directory, settings, packets, drain, on_commit, stop, delivery, kernels)


@contextmanager
def opened(
    state: StateDirectory,
    inputs: Inputs,
    settings: Settings,
    memory: str,
    say: Callable[[str], None],
    kernels: Kernels,
) -> Iterator[SparkSession]:
    """The state made ready and Spark started: each takes its time, so they take it together. Kernels still compile."""
    if is_warm():
        say("starting Spark")
    else:
        say("compiling kernels and starting Spark (half a minute, the first time only)")
    create(state, settings)
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(local_session, cores(), memory, state.root / "spark.log")
        try:
            begin(state, settings, lambda: sampled_posts(inputs), lambda: sampled_ops(inputs))
            align(state, settings)
            sweep(state)
            empty_spool(state)
            kinds = to_compile(state, inputs)
            if kinds:
                say(f"compiling kernels for subscriptions to {' and '.join(kinds)} too (the first time only)")
            kernels.start(state, kinds)
        except BaseException:
            starting.result().stop()
            raise
    spark = starting.result()
    threading.Thread(target=prime, args=(spark,), daemon=True).start()
    try:
        yield spark
    finally:
        spark.stop()


def follow(
    state: StateDirectory,
    settings: Settings,
    packets: DataFrame,
    drain: bool,
    on_commit: OnCommit | None,
    stop: threading.Event | None,
    delivery: Delivery | None = None,
    kernels: Kernels | None = None,
) -> Manifest:
    """Start the query, keep the house between batches, and wait for its end."""
    stop, delivery = stop or threading.Event(), delivery or Delivery([])
    swept = [time.monotonic()]

    def committed(manifest: Manifest, tasks: list[TaskResult]) -> None:
        if time.monotonic() - swept[0] > SWEEP_EVERY:
            sweep(state)
            empty_inbox(state)
            swept[0] = time.monotonic()
        if on_commit is not None:
            on_commit(manifest, tasks)
        if kernels is not None:
            kernels.rest(sum(task.counts.get("posts", 0) for task in tasks))

    ready = None if kernels is None else lambda: kernels.ready(stop)
    pipeline = Pipeline(state, settings, committed, ready, delivery)
    delivery.begin(CommittedOutbox(state, state.newest()))
    query = pipeline.start(packets, drain)
    try:
        while query.isActive and not stop.wait(0.2):
            pass
    finally:
        halt(query)
        delivery.end(CommittedOutbox(state, state.newest()))
    failure = query.exception()
    if failure is not None and not stop.is_set():
        raise explained(failure, pipeline) from None
    return state.newest()


def advices(state: StateDirectory, inputs: Inputs, drain: bool) -> list[str]:
    """Open the sources once, so that what is wrong with one is told before anything starts; what they say."""
    found = []
    for role, specs in ((POSTS, inputs.posts), (OPS, inputs.ops)):
        for source in open_sources(specs, SourceContext(role, state.root, inputs.mapping, drain)):
            found += [source.advice()]
            source.close()
    return [advice for advice in found if advice]


def halt(query: StreamingQuery) -> None:
    if query.isActive:
        query.stop()


def explained(error: Exception, pipeline: Pipeline) -> NearcastError:
    """What went wrong, in one line that a person can act on."""
    if isinstance(pipeline.failure, NearcastError):
        return pipeline.failure
    text = f"{pipeline.failure or ''}\n{error}"
    own = re.search(r"nearcast\.common\.errors\.(\w+): (.+)", text)
    if own:
        return (BadInput if own[1] != "NearcastError" else NearcastError)(own[2])
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return NearcastError(
            f"the disk of {pipeline.state.root} is full: free some space and run again; nothing is lost"
        )
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*[\w.]+(Error|Exception): ", line)]
    return NearcastError(
        f"the stream stopped: {(lines[-1] if lines else text.strip().splitlines()[0]).rstrip('.')}; run again to go on"
    )


def cores() -> int:
    return os.cpu_count() or 2
