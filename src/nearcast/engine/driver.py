"""The driver of a batch. `run_batch` is the path of every batch, wherever its tasks run: on Spark, in this process, or
in several for a benchmark.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from nearcast.engine.align import align
from nearcast.engine.batch import BatchPlan
from nearcast.engine.commit import commit_batch, following
from nearcast.engine.rebalancing import rebalance
from nearcast.engine.second_round import second_round
from nearcast.engine.settings import Settings
from nearcast.engine.task_result import TaskResult
from nearcast.sinks.delivery import CommittedOutbox, Delivery
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest
from nearcast.storage.sweep import empty_spool

Packets = TypeVar("Packets")


class Workers(Protocol[Packets]):
    """Where the tasks of a batch run. What is read and how it is handed on is theirs."""

    def route(self, plan: BatchPlan) -> Packets:
        """The posts and ops of the batch as packets (`engine.route`)."""
        ...

    def earliest(self, packets: Packets) -> int | None:
        """The earliest time of its posts. Asked for once in a state's life."""
        ...

    def work(self, plan: BatchPlan, packets: Packets) -> list[TaskResult]:
        """Each worker's task on its packets (`engine.work`)."""
        ...

    def all_workers(self, task: Callable[[int], TaskResult]) -> list[TaskResult]:
        """A further round: a function of the worker's number, done by all of them."""
        ...


@dataclass(frozen=True)
class BatchId:
    """The batch of a streaming query, and when it arrived: the same when it is replayed."""

    query_id: str
    number: int
    arrival: int | None = None


def run_batch(
    state: StateDirectory,
    settings: Settings,
    batch: BatchId,
    workers: Workers[Packets],
    delivery: Delivery | None = None,
) -> tuple[Manifest, list[TaskResult]]:
    """The path of one batch, from what was read to the next manifest and to the sinks."""
    began = time.perf_counter()
    manifest = align(state, settings)
    plan = BatchPlan(str(state.root), manifest, settings, batch.number, batch.arrival)
    packets = workers.route(plan)
    plan = with_first_post(plan, workers, packets)
    tasks = workers.work(plan, packets)
    more = second_round(plan, following(plan, batch.query_id, tasks), tasks, workers.all_workers)
    committed = commit_batch(plan, batch.query_id, tasks, more, time.perf_counter() - began)
    after = rebalance(state, settings, committed)
    empty_spool(state)
    if delivery is not None:
        delivery.deliver(CommittedOutbox(state, after))
    return after, tasks


def with_first_post(plan: BatchPlan, workers: Workers[Packets], packets: Packets) -> BatchPlan:
    """`FOR` may count from the first post. Where no sample has shown it, it is looked for: once in a state's life."""
    if plan.manifest.first_post is not None:
        return plan
    earliest = workers.earliest(packets)
    return plan if earliest is None else replace(plan, manifest=replace(plan.manifest, first_post=earliest))
