"""Ops on their way to the workers: of each op what decides its meaning, and whole queries for those whom they concern.

Every worker works out what all ops of a batch mean: an id may stand with one worker and be replaced by an op whose
query goes to another. For that it needs the *head* of each op. Queries are most of the bytes and most of the work, and
one that is placed by leaves goes only to those who keep it. Columns that say nothing (no FOR, no predicates) stay
behind.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.kinds import codes
from nearcast.common.op_schema import OPS, SEARCH, SUBSCRIBE
from nearcast.common.post_schema import no_rows
from nearcast.engine.batch import BatchPlan
from nearcast.engine.empty_columns import NOTHING, default
from nearcast.engine.packets import OPS as HEADS
from nearcast.engine.packets import QUERIES, pack
from nearcast.partitioning.routing_table import Placed
from nearcast.storage.subscriptions.rows import flat_lists

HEAD = ("op", "id", "id_text", "ts", "digest", "since", "until", "life")
ALWAYS = ("op", "id", "digest")
ROLE = "role"
KEEPS, HOME, STORES, TOLD = 1, 2, 4, 8  # bits: what a worker has to do with a query
WORKERS = 8  # in a column of heads that tells who gets the query


@dataclass(frozen=True)
class OpShare:
    """The whole ops that concern a worker, with their places among all ops of the batch, and its roles."""

    ops: pa.Table
    places: np.ndarray
    roles: np.ndarray

    @classmethod
    def all_of(cls, ops: pa.Table) -> "OpShare":
        return cls(ops, np.arange(len(ops)), np.zeros(len(ops), np.uint8))


def pack_ops(plan: BatchPlan, ops: pa.Table, order: int, piece: int = 0) -> Iterator[tuple[int, bytes]]:
    """Packets of encoded ops: their heads for every worker, and the queries of each worker."""
    if not len(ops):
        return
    workers = plan.settings.workers
    roles, ops = roles_of(plan, ops), lean(ops)
    heads = ops.select([name for name in HEAD if name in ops.column_names])
    for first in range(0, workers, WORKERS):
        told = np.packbits(roles[:, first : first + WORKERS] > 0, axis=1, bitorder="little")
        heads = heads.append_column(f"to{first}", pa.array(told[:, 0]))
    for packet in pack(HEADS, heads, order, plan.spool, piece):
        for worker in range(workers):
            yield worker, packet
    for worker in range(workers):
        rows = np.flatnonzero(roles[:, worker])
        some = ops if len(rows) == len(ops) else ops.take(pa.array(rows))
        some = some.append_column(ROLE, pa.array(roles[rows, worker]))
        for packet in pack(QUERIES, some, order, plan.spool, piece):
            yield worker, packet


def unpack_ops(heads: pa.Table, queries: pa.Table | None, worker: int) -> tuple[pa.Table, OpShare]:
    """(heads of all ops, what concerns a worker): its queries come in the order of their heads."""
    told = heads[f"to{worker - worker % WORKERS}"].to_numpy() >> np.uint8(worker % WORKERS) & np.uint8(1)
    places = np.flatnonzero(told)
    heads = filled(heads, [OPS.field(name) for name in HEAD])
    if queries is None:
        return heads, OpShare.all_of(no_rows(OPS))
    return heads, OpShare(filled(queries, list(OPS)), places, queries[ROLE].to_numpy())


def roles_of(plan: BatchPlan, ops: pa.Table) -> np.ndarray:
    """A matrix (op, worker). Who keeps a subscription that is placed by leaves, who is its home, and who stores posts
    that it has to catch up with; all are told of other subscriptions, and worker 0 of searches.
    """
    kinds, asks = ops["op"].to_numpy(), ops["asks"].to_numpy()
    out = np.zeros((len(ops), plan.settings.workers), np.uint8)
    placed = np.isin(asks, codes("placed"))
    out[(kinds == SUBSCRIBE) & ~placed] = TOLD
    out[kinds == SEARCH, 0] = TOLD
    rows = np.flatnonzero((kinds == SUBSCRIBE) & placed)
    if not len(rows):
        return out
    some = ops.select(["min_lon", "min_lat", "max_lon", "max_lat", "code"])
    some = some if len(rows) == len(ops) else some.take(pa.array(rows))
    boxes = np.stack([column.to_numpy() for column in some.columns[:4]], axis=1)
    queries = Placed(boxes, *flat_lists(some["code"]))
    keepers, home = plan.router.keepers(queries, plan.settings.workers)
    roles = keepers.view(np.uint8)
    roles[np.arange(len(home)), home] |= HOME
    if catches_up_elsewhere(plan):
        storing, _ = plan.router.keepers(queries, plan.settings.workers, by_place=True)
        roles |= storing.view(np.uint8) * np.uint8(STORES)
    if len(rows) == len(ops):
        return roles
    out[rows] = roles
    return out


def catches_up_elsewhere(plan: BatchPlan) -> bool:
    """Whether new subscriptions look at posts that others store than those who keep them."""
    return plan.router.shares and plan.settings.keep != "none" and plan.manifest.clock is not None


def lean(ops: pa.Table) -> pa.Table:
    """Without the columns that say nothing of any op."""
    return ops.select([name for name in ops.column_names if name in ALWAYS or not _says_nothing(ops[name], name)])


def filled(table: pa.Table, fields: list[pa.Field]) -> pa.Table:
    """With all columns again; where only some of the packets had one, the others' rows are null in it."""
    columns = []
    for field in fields:
        if field.name not in table.column_names:
            columns.append(default(field, len(table)))
            continue
        column = table[field.name]
        if column.null_count and not field.nullable and not pa.types.is_list(field.type):
            column = column.fill_null(NOTHING[field.name])
        columns.append(column)
    return pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in fields]))


def _says_nothing(column: pa.ChunkedArray, name: str) -> bool:
    if pa.types.is_list(column.type):
        return not any(len(chunk.flatten()) for chunk in column.chunks)
    if NOTHING.get(name) is None:
        return bool(column.null_count == len(column))
    return bool((frozen(column.to_numpy()) == NOTHING[name]).all())
