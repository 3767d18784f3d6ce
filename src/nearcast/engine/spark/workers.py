"""The tasks of a batch on Spark: one partition a worker. The packets come routed out of the source."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from nearcast.common.errors import NearcastError
from nearcast.engine import packets as packing
from nearcast.engine.batch import BatchPlan
from nearcast.engine.task_result import TaskResult
from nearcast.engine.work import work

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class SparkWorkers:
    packets: DataFrame
    workers: int

    def route(self, plan: BatchPlan) -> DataFrame:
        """Sources route what they read (`engine.splits`, `engine.spark.dataframes`), so that the JVM sees no row."""
        return self.packets

    def earliest(self, packets: DataFrame) -> int | None:
        return min((row.ts for row in packets.mapInArrow(earliest, "ts long").collect()), default=None)

    def work(self, plan: BatchPlan, packets: DataFrame) -> list[TaskResult]:
        return self._collected(packets.repartitionById(self.workers, "worker"), task_of(plan))

    def all_workers(self, task: Callable[[int], TaskResult]) -> list[TaskResult]:
        numbers = self.packets.sparkSession.range(0, self.workers, 1, self.workers)
        return self._collected(numbers, numbered(task))

    def _collected(self, frame: DataFrame, task: Callable[[Batches], Batches]) -> list[TaskResult]:
        rows = frame.mapInArrow(task, "result string").collect()
        tasks = sorted((TaskResult.from_json(row.result) for row in rows), key=lambda each: each.worker)
        if len(tasks) != self.workers:
            raise NearcastError(f"{len(tasks)} of {self.workers} workers have answered")
        return tasks


def task_of(plan: BatchPlan) -> Callable[[Batches], Batches]:
    """The work stage as Spark runs it: one task per worker, which is one partition."""

    def run(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        packets = [value.as_buffer() for batch in batches for value in batch.column("packet")]
        yield told(work(plan, context.partitionId(), packets))

    return run


def numbered(task: Callable[[int], TaskResult]) -> Callable[[Batches], Batches]:
    """A function of the worker's number as Spark runs it."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield told(task(number))

    return run


def told(result: TaskResult) -> pa.RecordBatch:
    return pa.record_batch([pa.array([result.to_json()])], names=["result"])


def earliest(batches: Batches) -> Batches:
    """The earliest time among the posts that some packets tell of."""
    seen = packing.unpack(value.as_buffer() for batch in batches for value in batch.column("packet")).get(packing.SEEN)
    if seen is not None:
        yield pa.record_batch([pa.array([min(seen["earliest"].to_pylist())], pa.int64())], names=["ts"])
