"""`nc.run`: posts and ops from streaming DataFrames of a user's own, or from any other source, in the user's session.

A DataFrame source has its offsets in Spark's hands; its rows become packets by a map. The state's inbox is read beside
it, and sources given by specs are too.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from nearcast.common.errors import BadInput
from nearcast.engine.align import align
from nearcast.engine.batch import BatchPlan, open_router
from nearcast.engine.begin import begin
from nearcast.engine.packets import to_batches
from nearcast.engine.route import Packets, route_ops, route_posts, route_rejects
from nearcast.engine.samples import sampled_ops, sampled_posts
from nearcast.engine.settings import Inputs, Settings
from nearcast.engine.settings_check import check_derived, settings_for
from nearcast.engine.spark.run import advices, follow
from nearcast.engine.spark.streaming_query import OnCommit, check_checkpoint, read_packets
from nearcast.engine.warmup import warm_up, warm_up_words
from nearcast.sinks.delivery import Delivery
from nearcast.sinks.protocol import SinkContext
from nearcast.sinks.registry import GivenSink, open_sinks
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.protocol import OPS, POSTS
from nearcast.sources.raw import Raw
from nearcast.sources.records import normalise
from nearcast.sources.registry import absolute
from nearcast.storage.checkpoint import batch_time
from nearcast.storage.directory import StateDirectory, WriterLock
from nearcast.storage.manifest import Manifest
from nearcast.storage.sweep import empty_spool, sweep

SCHEMA = "worker int, packet binary"

Given = DataFrame | str | Path | Sequence[str | Path] | None  # a DataFrame source, or specs of others


def run_dataframes(
    spark: SparkSession,
    posts: Given = None,
    queries: Given = None,
    state: str | Path = "state",
    mapping: Mapping[str, str] | None = None,
    drain: bool = False,
    stop: threading.Event | None = None,
    on_commit: OnCommit | None = None,
    deliver: GivenSink | Iterable[GivenSink] | None = None,
    on_fault: Callable[[str], None] | None = None,
    batch_posts: int = Inputs.batch_posts,
    **settings: Any,
) -> Manifest:
    """Stream posts and ops into a state until the query ends, `stop` is set, or all there is has been read (`drain`).

    `posts` and `queries` are streaming DataFrames, or specs as `nearcast run` takes them. A DataFrame of posts has the
    columns id, ts, lat, lon, text (others by `mapping`) and attributes; one of ops has op, id, sql and ts, or the bulk
    columns. `deliver` names sinks, or is some; `on_fault` is told when one fails, else it is logged. Further settings
    as `nearcast run` has them.
    """
    directory = StateDirectory(Path(state).absolute())
    chosen = settings_for(directory, settings)
    frames = [DataFrameSource(frame, role, dict(mapping or {})) for role, frame in frames_of(posts, queries)]
    inputs = Inputs(
        specs_of(posts), specs_of(queries), dict(mapping or {}), batch_posts, chosen.workers, ops_beside=bool(frames)
    )
    advices(directory, inputs, drain)
    check_derived(directory, chosen)
    delivery = Delivery(open_sinks(deliver, SinkContext(directory.root)), on_fault)
    with WriterLock(directory):
        begin(directory, chosen, lambda: sampled_posts(inputs), lambda: sampled_ops(inputs))
        check_checkpoint(directory)
        align(directory, chosen)
        sweep(directory)
        empty_spool(directory)
        warm_up()
        if open_router(str(directory.root), directory.newest().router or "").textual:
            warm_up_words()
        packets = read_packets(spark, directory, chosen, inputs)
        for frame in frames:
            packets = packets.unionAll(frame.packets(str(directory.root), chosen))
        return follow(directory, chosen, packets, drain, on_commit, stop, delivery)


def frames_of(posts: Given, queries: Given) -> list[tuple[str, DataFrame]]:
    """The DataFrames among what was given, with their roles."""
    frames = [(role, given) for role, given in ((POSTS, posts), (OPS, queries)) if isinstance(given, DataFrame)]
    if any(not frame.isStreaming for _, frame in frames):
        raise BadInput("nc.run takes streaming DataFrames (spark.readStream…); files are given by their paths")
    return frames


def specs_of(given: Given) -> tuple[str, ...]:
    """The specs of sources other than DataFrames."""
    if given is None or isinstance(given, DataFrame):
        return ()
    return absolute([str(given)] if isinstance(given, str | Path) else [str(each) for each in given])


@dataclass(frozen=True)
class DataFrameSource:
    """A streaming DataFrame of posts or of ops, by its role. A batch may have rows of several at once, so posts are not
    dropped before they meet the subscriptions of their own batch.
    """

    frame: DataFrame
    role: str
    mapping: dict[str, str] = field(default_factory=dict)

    def packets(self, root: str, settings: Settings) -> DataFrame:
        """Its rows as packets, which Spark routes with those of the other sources."""
        route = partial(_ops, root, settings) if self.role == OPS else partial(_posts, root, settings, self.mapping)
        return self.frame.mapInArrow(lambda batches: to_batches(route(batches)), SCHEMA)


def _posts(root: str, settings: Settings, mapping: dict[str, str], batches: Iterator[pa.RecordBatch]) -> Packets:
    plan, order = _opened(root, settings)
    for piece, batch in enumerate(batches):
        table, rejects = normalise(pa.Table.from_batches([batch]), mapping)
        yield from route_rejects(plan, rejects, order + piece)
        yield from route_posts(plan, table, order + piece, drop=False)


def _ops(root: str, settings: Settings, batches: Iterator[pa.RecordBatch]) -> Packets:
    plan, order = _opened(root, settings)
    for piece, batch in enumerate(batches):
        ops, rejects = normalise_ops(Raw.of(pa.Table.from_batches([batch])))
        yield from route_rejects(plan, rejects, order + piece)
        yield from route_ops(plan, ops, order + piece)


def _opened(root: str, settings: Settings) -> tuple[BatchPlan, int]:
    """The newest state, as none is committed while a batch runs, and where this task's rows stand among others'."""
    context = TaskContext.get()
    order = (context.partitionId() << 20) if context is not None else 0
    state = StateDirectory(Path(root))
    return BatchPlan(root, state.newest(), settings, arrival=batch_time(state)), order
