"""Any streaming DataFrames as posts and as ops, beside the state's own inbox."""

import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from nearcast.common.errors import BadInput
from nearcast.engine.align import align
from nearcast.engine.batch import Plan, open_router
from nearcast.engine.local import begin
from nearcast.engine.packets import to_batches
from nearcast.engine.route import Packets, route_ops, route_posts, route_rejects
from nearcast.engine.settings import Inputs, Settings
from nearcast.engine.settings_check import check_derived, settings_for
from nearcast.engine.spark.run import follow
from nearcast.engine.spark.stream import OnCommit, check_checkpoint, read_packets
from nearcast.engine.warmup import warm_up, warm_up_words
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.raw import Raw, records_as_json, reject_table
from nearcast.sources.records import normalise
from nearcast.storage.checkpoint import batch_time
from nearcast.storage.directory import StateDirectory, WriterLock
from nearcast.storage.manifest import Manifest
from nearcast.storage.sweep import empty_spool, sweep

SCHEMA = "worker int, packet binary"


def run_dataframes(
    spark: SparkSession,
    posts: DataFrame,
    queries: DataFrame | None = None,
    state: str | Path = "state",
    mapping: Mapping[str, str] | None = None,
    drain: bool = False,
    stop: threading.Event | None = None,
    on_commit: OnCommit | None = None,
    **settings: Any,
) -> Manifest:
    """Stream DataFrames into a state until the query ends, `stop` is set, or all there is has been read (`drain`).

    `posts` has the columns id, ts, lat, lon, text (others by `mapping`) and attributes; `queries` op, id, sql and ts
    or the bulk columns. Further settings as in `engine.batch.Settings`. A batch may carry ops and posts at once, so
    posts are not dropped before they meet the subscriptions of their own batch.
    """
    for frame in (posts, queries):
        if frame is not None and not frame.isStreaming:
            raise BadInput(
                "nc.run takes streaming DataFrames (spark.readStream…); for files use nearcast run --posts FILE"
            )
    directory = StateDirectory(Path(state).absolute())
    chosen = settings_for(directory, settings)
    check_derived(directory, chosen)
    with WriterLock(directory):
        begin(directory, chosen)
        check_checkpoint(directory)
        align(directory, chosen)
        sweep(directory)
        empty_spool(directory)
        warm_up()
        if open_router(str(directory.root), directory.newest().router or "").textual:
            warm_up_words()
        root = str(directory.root)
        packets = read_packets(spark, directory, chosen, Inputs())
        packets = packets.unionAll(posts.mapInArrow(post_router(root, chosen, dict(mapping or {})), SCHEMA))
        if queries is not None:
            packets = packets.unionAll(queries.mapInArrow(op_router(root, chosen), SCHEMA))
        return follow(directory, chosen, packets, drain, on_commit, stop)


Router = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def post_router(root: str, settings: Settings, mapping: dict[str, str]) -> Router:
    """Rows of posts → packets. The state is the newest at the time: none is committed while a batch runs."""

    def packets(batches: Iterator[pa.RecordBatch]) -> Packets:
        plan, order = opened(root, settings)
        for piece, batch in enumerate(batches):
            table, rejects = normalise(pa.Table.from_batches([batch]), mapping)
            yield from route_rejects(plan, rejects, order + piece)
            yield from route_posts(plan, table, order + piece, drop=False)

    return lambda batches: to_batches(packets(batches))


def op_router(root: str, settings: Settings) -> Router:
    """Rows of ops → packets."""

    def packets(batches: Iterator[pa.RecordBatch]) -> Packets:
        plan, order = opened(root, settings)
        for piece, batch in enumerate(batches):
            table = pa.Table.from_batches([batch])
            ops, rejects = normalise_ops(Raw(table, reject_table([], []), partial(records_as_json, table)))
            yield from route_rejects(plan, rejects, order + piece)
            yield from route_ops(plan, ops, order + piece)

    return lambda batches: to_batches(packets(batches))


def opened(root: str, settings: Settings) -> tuple[Plan, int]:
    """The state as it is, and where this task's rows stand among those of others."""
    context = TaskContext.get()
    order = (context.partitionId() << 20) if context is not None else 0
    state = StateDirectory(Path(root))
    return Plan(root, state.newest(), settings, arrival=batch_time(state)), order
