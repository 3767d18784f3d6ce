"""Ops in work: what they mean for all subscriptions, whatever their kind. New ones are filed by their kinds."""

import numpy as np
import pyarrow as pa

from nearcast.engine.batch import open_segments
from nearcast.engine.noted_searches import note_searches
from nearcast.engine.op_packets import OpShare
from nearcast.engine.op_resolution import Resolved, resolve
from nearcast.engine.task import Task
from nearcast.storage.bundle import bundle_table
from nearcast.storage.deletes import SCHEMA as DELETED
from nearcast.storage.files import write_table
from nearcast.storage.manifest import DELETES, ENDS, SUBSCRIPTIONS
from nearcast.storage.subscriptions.subscription_set import EndLog, SubscriptionSet, read_logs


def apply_ops(task: Task, ops: pa.Table, share: OpShare) -> Resolved:
    """Work out what the ops mean, as every worker does; worker 0 writes what is the same for all."""
    result = task.result
    with result.timed("ops"):
        resolved = resolve(ops, all_subscriptions(task), task.manifest.clock, task.manifest.next_op, share)
        result.ops = len(ops)
    if task.worker == 0:
        result.count(**resolved.counts)
        result.searches = [dict(row) for row in resolved.searches.to_pylist()]
        result.segments += note_searches(task.plan, share.ops)
        write_ends(task, resolved.ends)
        write_deletes(task, resolved.deletes)
    return resolved


def all_subscriptions(task: Task) -> SubscriptionSet:
    """Those of every worker and kind."""
    names = [ref.name for ref in task.manifest.of(SUBSCRIPTIONS)]
    logs = read_logs(task.plan.state, task.manifest)
    return SubscriptionSet(open_segments(task.plan, names), EndLog.empty(), task.first_post, logs)


def write_ends(task: Task, ends: EndLog) -> None:
    if len(ends):
        arrays = {"key": ends.key, "seq": ends.seq, "end": ends.end}
        name = task.new_name(ENDS)
        task.add(ENDS, name, len(ends), write_table(task.plan.state.path(name), bundle_table(arrays)))


def write_deletes(task: Task, deletes: pa.Table) -> None:
    if len(deletes):
        batch = pa.array(np.full(len(deletes), task.plan.batch))
        table = deletes.append_column("batch", batch).cast(DELETED)
        name = task.new_name(DELETES)
        task.add(DELETES, name, len(table), write_table(task.plan.state.path(name), table))
