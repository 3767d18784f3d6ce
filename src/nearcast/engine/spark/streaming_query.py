"""The pipeline on Structured Streaming: each of its batches goes the way of `engine.driver.run_batch`."""

import json
import threading
from collections.abc import Callable
from dataclasses import asdict

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nearcast.common.errors import BadInput
from nearcast.engine.balance_rehearsal import rehearse
from nearcast.engine.driver import BatchId, run_batch
from nearcast.engine.settings import Inputs, Settings
from nearcast.engine.spark.data_source import NearcastSource
from nearcast.engine.spark.workers import SparkWorkers
from nearcast.engine.task_result import TaskResult
from nearcast.sinks.delivery import Delivery
from nearcast.storage.checkpoint import batch_time, query_id
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest, is_replay

OnCommit = Callable[[Manifest, list[TaskResult]], None]


class Pipeline:
    """A state, the settings of a run, what is to be told when a batch is committed, and what each batch waits for."""

    def __init__(
        self,
        state: StateDirectory,
        settings: Settings,
        on_commit: OnCommit | None = None,
        ready: Callable[[], None] | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        self.state = state
        self.settings = settings
        self.delivery = delivery
        self.on_commit = on_commit or (lambda manifest, tasks: None)
        self.ready = ready or (lambda: None)
        self.failure: BaseException | None = None
        self.rehearsed: threading.Thread | None = None

    def process(self, packets: DataFrame, batch: int) -> None:
        """A batch of Spark's: the driver's path, if it has not been committed already."""
        self.ready()
        which = BatchId(self.query_id(), batch, batch_time(self.state, batch))
        if is_replay(self.state.newest(), which.query_id, batch):
            return
        workers = SparkWorkers(packets, self.settings.workers)
        after, tasks = run_batch(self.state, self.settings, which, workers, self.delivery)
        self.rehearsed = self.rehearsed or rehearse(self.state, self.settings, after)
        self.on_commit(after, tasks)

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
