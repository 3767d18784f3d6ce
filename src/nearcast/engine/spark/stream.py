"""The pipeline on Structured Streaming. `process` is the path of one batch."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.common.errors import BadInput, NearcastError
from nearcast.engine import packets as kinds
from nearcast.engine.align import align
from nearcast.engine.balance_rehearsal import rehearse
from nearcast.engine.batch import Plan
from nearcast.engine.commit import commit_batch, following
from nearcast.engine.rebalancing import rebalance
from nearcast.engine.second_round import second_round
from nearcast.engine.settings import Inputs, Settings
from nearcast.engine.spark.data_source import NearcastSource
from nearcast.engine.task_result import Report, Round
from nearcast.engine.work import work
from nearcast.storage.checkpoint import batch_time, query_id
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest, is_replay
from nearcast.storage.sweep import empty_spool

OnCommit = Callable[[Manifest, list[Report]], None]


class Pipeline:
    """A state, the settings of a run, what is to be told when a batch is committed, and what each batch waits for."""

    def __init__(
        self,
        state: StateDirectory,
        settings: Settings,
        on_commit: OnCommit | None = None,
        ready: Callable[[], None] | None = None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.on_commit = on_commit or (lambda manifest, reports: None)
        self.ready = ready or (lambda: None)
        self.failure: BaseException | None = None
        self.rehearsed: threading.Thread | None = None

    def process(self, packets: DataFrame, batch: int) -> None:
        """The path of one batch: routed packets → workers → reports → the next manifest."""
        self.ready()
        began, query_id, manifest = time.perf_counter(), self.query_id(), self.state.newest()
        if is_replay(manifest, query_id, batch):
            return
        manifest = align(self.state, self.settings)
        plan = Plan(str(self.state.root), manifest, self.settings, batch, batch_time(self.state, batch))
        plan = self.with_first_post(plan, packets)
        workers = self.settings.workers
        rows = packets.repartitionById(workers, "worker").mapInArrow(task(plan), "report string").collect()
        reports = sorted((Report.from_json(row.report) for row in rows), key=lambda report: report.worker)
        if len(reports) != workers:
            raise NearcastError(f"{len(reports)} of {workers} workers reported")
        more = second_round(
            plan, following(plan, query_id, reports), reports, on_workers(packets.sparkSession, workers)
        )
        committed = commit_batch(plan, query_id, reports, more, time.perf_counter() - began)
        after = rebalance(self.state, self.settings, committed)
        self.rehearsed = self.rehearsed or rehearse(self.state, self.settings, after)
        empty_spool(self.state)
        self.on_commit(after, reports)

    def with_first_post(self, plan: Plan, packets: DataFrame) -> Plan:
        """`FOR` may count from the first post. Where no sample has shown it, it is looked for: once in a state's
        life.
        """
        if plan.manifest.first_post is not None:
            return plan
        found = [row.ts for row in packets.mapInArrow(earliest, "ts long").collect()]
        return replace(plan, manifest=replace(plan.manifest, first_post=min(found))) if found else plan

    def query_id(self) -> str:
        found = query_id(self.state)
        assert found is not None, "Spark writes it before the first batch"
        return found

    def guarded(self, packets: DataFrame, batch: int) -> None:
        """`process`, keeping the error itself: Spark only passes on its text."""
        try:
            self.process(packets, batch)
        except BaseException as error:
            self.failure = error
            raise

    def start(self, packets: DataFrame, drain: bool) -> StreamingQuery:
        check_checkpoint(self.state)
        writer = packets.writeStream.foreachBatch(self.guarded).option("checkpointLocation", str(self.state.checkpoint))
        return (writer.trigger(availableNow=True) if drain else writer.trigger(processingTime="0 seconds")).start()


def task(plan: Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The work stage as Spark runs it: one task per worker, which is one partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        packets = [value.as_buffer() for batch in batches for value in batch.column("packet")]
        report = work(plan, context.partitionId(), packets)
        yield pa.record_batch([pa.array([report.to_json()])], names=["report"])

    return run


def on_workers(spark: SparkSession, workers: int) -> Round:
    """A further job of a batch: one task per worker."""

    def run(done: Callable[[int], Report]) -> list[Report]:
        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            numbers = [number for batch in batches for number in batch.column("id").to_pylist()]
            yield pa.record_batch([pa.array([done(number).to_json() for number in numbers])], names=["report"])

        rows = spark.range(0, workers, 1, workers).mapInArrow(task, "report string").collect()
        return sorted((Report.from_json(row.report) for row in rows), key=lambda report: report.worker)

    return run


def earliest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The earliest time among the posts that some packets tell of."""
    seen = kinds.unpack(value.as_buffer() for batch in batches for value in batch.column("packet")).get(kinds.SEEN)
    if seen is not None:
        yield pa.record_batch([pa.array([min(seen["earliest"].to_pylist())], pa.int64())], names=["ts"])


def read_packets(spark: SparkSession, state: StateDirectory, settings: Settings, inputs: Inputs) -> DataFrame:
    """The sources of a run, and the inbox, as a stream of packets."""
    spark.dataSource.register(NearcastSource)
    options = {"root": str(state.root), "settings": json.dumps(asdict(settings)), "inputs": json.dumps(asdict(inputs))}
    return spark.readStream.format("nearcast").options(**options).load()


def check_checkpoint(state: StateDirectory) -> None:
    """Refuse a checkpoint that is missing or another state's: batch ids would begin again at 0."""
    manifest = state.newest()
    if manifest.batch < 0:
        return
    if query_id(state) is None:
        raise BadInput(
            f"{state.checkpoint} is missing, but {state.root} holds {manifest.batch + 1} committed batches: "
            "restore it from a copy, or start a new state directory"
        )
    if query_id(state) != manifest.query_id:
        raise BadInput(
            f"{state.checkpoint} belongs to another state: restore the right one, or start a new state directory"
        )
