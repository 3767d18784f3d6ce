"""Balancing between two batches: decide, and change hands.

After a commit the work of the last batches is compared, from the manifest alone. Where it has come out of balance the
strategy is asked (`engine.balance_strategies`), and its move is a manifest of its own: the new routing table, and for
each worker that has gained leaves one segment of the subscriptions that it now keeps and did not have. What a worker
has lost stays in its segments until these are rewritten, as PS2Stream and Tornado clean up (PS2Stream §V, Tornado
§4.6): no post that could match it comes that way any more, and where a router sends a post to several workers one of
them reports a pair (`RoutingTable.reported`), so each still comes out once. Posts stay where they are stored.

A partition made anew (PS2Stream §V-B) comes to stand beside the previous one (`engine.previous_table`): then nothing
changes hands, until few of the older subscriptions are left.
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.engine.align import placed, rewritten, write_share
from nearcast.engine.balance_effects import neighbours
from nearcast.engine.balance_strategies import RATIO, decide, pays, picked
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.load_notes import watched
from nearcast.engine.measured_load import LeafWork, Measured
from nearcast.engine.settings import Settings
from nearcast.partitioning.kernels.cell_sums import box_rectangles
from nearcast.partitioning.moves import Loads, Move, imbalance, worker_loads
from nearcast.partitioning.partition import BY_POST, BY_QUERY, Partition
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.partitioning.sample_tally import prefix_sums
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import STATISTICS, Manifest, SegmentRef, commit
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends

PATIENCE = 3  # batches with posts, before the first decision and between two
RECORDED = 20  # adjustments
FEW = (
    0.1  # of all subscriptions that are placed by leaves: so many older ones are moved (PS2Stream §V-B gives no figure)
)
LONGEST = 200  # batches that two tables stand side by side; where nothing ends they would for ever
LOOKED_AT = 20_000  # rows of a segment, to tell how many are left


def rebalance(state: StateDirectory, settings: Settings, manifest: Manifest) -> Manifest:
    """The manifest after an adjustment, or the same one if there is nothing to gain."""
    if manifest.previous is not None:
        plan = BatchPlan(str(state.root), manifest, settings, manifest.batch)
        return united(plan) if is_due(plan) else manifest
    if not watched(settings) or not any(ref.batch == manifest.batch for ref in manifest.of(STATISTICS)):
        return manifest
    plan = BatchPlan(str(state.root), manifest, settings, manifest.batch)
    strategy, auto = picked(settings.balance, plan.router.name), settings.balance == "auto"
    work = LeafWork.of(plan)
    ratio = RATIO if auto and settings.ratio is None else settings.ratio
    if strategy == "off" or work.batches % PATIENCE or (auto and imbalance(work.loads) <= (ratio or RATIO)):
        return manifest
    began = time.perf_counter()
    move = decide(strategy, Measured(plan), ratio)
    if move is None or (auto and not pays(move)):
        return manifest
    return adjust(plan, move, time.perf_counter() - began)


def adjust(plan: BatchPlan, move: Move, decided: float = 0.0) -> Manifest:
    """Carry out a move, whatever it is worth; `decided` is how long it took to be found, in seconds."""
    began, before = time.perf_counter(), plan.manifest
    name = f"router/{before.version + 1:012d}-{uuid.uuid4().hex[:8]}.arrow"
    RoutingTable(replace(move.partition, load=move.loads.leaf_load)).save(plan.state.root / name)
    after = replace(plan, manifest=replace(before, router=name, previous=None))
    if move.gradual and plan.previous is None and placed(before):
        previous = {"router": before.router, "before": before.next_op, "batch": before.batch}
        after = replace(plan, manifest=replace(before, router=name, previous=previous))
        return _committed(plan, after, move, before.segments, 0, decided, began)
    if plan.previous is not None or must_rewrite(plan.router, after.router):
        return _rewritten(plan, after, move, decided, began)
    sums = prefix_sums(changed_cells(plan.router, after.router, plan.settings.workers).astype(np.int32))
    new = handed_over(plan, after, lambda rows: touched(rows, plan.router, sums))
    return _committed(plan, after, move, before.replacing([], new), sum(ref.rows for ref in new), decided, began)


def is_due(plan: BatchPlan) -> bool:
    """Whether few enough subscriptions follow the previous table, or for long enough; looked at now and then."""
    manifest, told = plan.manifest, plan.manifest.previous
    assert told is not None
    age = manifest.batch - told["batch"]
    if age % PATIENCE or not age:
        return False
    if age >= LONGEST:
        return True
    clock, first = (BEGINNING if manifest.clock is None else manifest.clock), manifest.first_post
    segments = open_segments(plan, [ref.name for ref in placed(manifest) if not ref.facts.get("ended")])
    ends = standing_ends(segments, read_logs(plan.state, manifest))
    old = whole = 0.0
    for name, segment in segments.items():
        step = 1 + len(segment) // LOOKED_AT
        some = np.arange(0, len(segment), step)
        lives = ends[name].applied(segment.rows, some, NEVER if first is None else first) > clock
        whole += step * np.count_nonzero(lives)
        old += step * np.count_nonzero(lives & (segment.rows.seq[some] < told["before"]))
    return old <= FEW * whole


def united(plan: BatchPlan) -> Manifest:
    """The end of two tables side by side: what is left of the older subscriptions comes to follow the newer one."""
    began, before, previous = time.perf_counter(), plan.manifest, plan.previous
    assert previous is not None
    after = replace(plan, manifest=replace(before, previous=None))
    partition = after.router.partition
    nothing = np.zeros(len(partition.node))
    cause = f"few subscriptions from before op {previous.before:,} are left: they follow the newer partition"
    now, predicted = LeafWork.of(plan).loads, worker_loads(partition, partition.load)
    move = Move("global", cause, partition, Loads(nothing, nothing, partition.load), 0.0, 0.0, now, predicted)
    if after.router.shares and not previous.table.shares:
        return _rewritten(plan, after, move, 0.0, began)
    new = handed_over(plan, after, lambda rows: rows.take(np.flatnonzero(rows.seq < previous.before)))
    return _committed(plan, after, move, before.replacing([], new), sum(ref.rows for ref in new), 0.0, began)


def _rewritten(plan: BatchPlan, after: BatchPlan, move: Move, decided: float, began: float) -> Manifest:
    new = rewritten(after)
    segments = plan.manifest.replacing([ref.name for ref in placed(plan.manifest)], new)
    return _committed(plan, after, move, segments, sum(ref.rows for ref in new), decided, began)


def _committed(
    plan: BatchPlan,
    after: BatchPlan,
    move: Move,
    segments: tuple[SegmentRef, ...],
    queries: int,
    decided: float,
    began: float,
) -> Manifest:
    record = recorded(move, plan.manifest, queries, decided, time.perf_counter() - began)
    adjustments = [*plan.manifest.adjustments, record][-RECORDED:]
    following = replace(after.manifest, aligned=after.layout, segments=segments, adjustments=adjustments)
    return commit(plan.state.manifests, plan.manifest, following)


def recorded(move: Move, before: Manifest, queries: int, decided: float, adjusted: float) -> dict[str, Any]:
    """What is told of an adjustment: cause, cost and the effect predicted. Loads are in milliseconds a batch. Some
    batches later what was measured is added (`engine.balance_effects`).
    """
    times = neighbours(before.segments, before.batch)
    if "batch_s" in times:
        times["batch_s"] = round(times["batch_s"] + decided + adjusted, 3)
    return {
        "batch": before.batch,
        "workers": move.partition.workers,
        "strategy": move.strategy,
        "cause": move.cause,
        "queries": queries,
        "decided_ms": round(decided * 1000, 1),
        "adjusted_ms": round(adjusted * 1000, 1),
        "busiest_before": round(float(move.before.max()) / 1000, 3),
        "busiest_after": round(float(move.after.max()) / 1000, 3),
        "ratio_before": _ratio(move.before),
        "ratio_after": _ratio(move.after),
        **times,
    }


def _ratio(loads: np.ndarray) -> float | None:
    """L_max / L_min; None where a worker has nothing to do."""
    ratio = imbalance(loads)
    return None if ratio == float("inf") else round(ratio, 2)


def must_rewrite(old: RoutingTable, new: RoutingTable) -> bool:
    """Whether all subscriptions must be written anew: the grid is another, or words begin to matter. Without
    a node that is cut by queries' words, each worker's copy of a subscription may be filed under another of its words.
    """
    return (old.extent, old.cells) != (new.extent, new.cells) or (new.shares and not old.shares)


def handed_over(plan: BatchPlan, after: BatchPlan, concerned: Callable[[Rows], Rows]) -> list[SegmentRef]:
    """For each worker a segment of the subscriptions, of those `concerned`, that it comes to keep and has not got.

    Cost: some nanoseconds a subscription, some microseconds for each that is concerned.
    """
    workers = plan.settings.workers
    refs = placed(plan.manifest)
    touching = {
        ref.name: concerned(segment.rows)
        for ref, segment in zip(refs, open_segments(plan, [ref.name for ref in refs]).values(), strict=True)
    }
    new: list[SegmentRef] = []
    done = np.empty(0, np.int64)
    for ended in (1, 0):  # a copy that has moved to the ended ones knows its end
        group = [ref for ref in refs if ref.facts.get("ended", 0) == ended and len(touching[ref.name])]
        if not group:
            continue
        rows = Rows.concat([touching[ref.name] for ref in group])
        rows = rows.take(np.flatnonzero(~np.isin(rows.seq, done)))
        done = rows.seq
        keepers, home = after.router.keepers(rows, workers)
        facts = {"ended": ended, "folded": min(ref.facts.get("folded", ref.batch - 1) for ref in group)}
        for worker in range(workers):
            own = [touching[ref.name].seq for ref in refs if ref.owner == worker]
            lacking = keepers[:, worker] & ~np.isin(rows.seq, np.concatenate([np.empty(0, np.int64), *own]))
            new += write_share(after, rows, np.flatnonzero(lacking), home, worker, facts)
    return new


def changed_cells(old: RoutingTable, new: RoutingTable, workers: int) -> np.ndarray:
    """Which cells have other keepers: a square of booleans."""
    known: dict[Any, int] = {}
    sides = []
    for table in (old, new):
        marks = np.array([known.setdefault(mark, len(known)) for mark in node_marks(table, workers)], np.int64)
        sides.append(marks[table.partition.node].reshape(table.cells, table.cells))
    return np.asarray(sides[0] != sides[1])


def node_marks(table: RoutingTable, workers: int) -> list[Any]:
    """For each node what decides who keeps a subscription there."""
    p: Partition = table.partition
    owners, first = table.owners(workers).tolist(), p.first.tolist()
    marks: list[Any] = []
    for node, kind in enumerate(p.kind.tolist()):
        own = owners[first[node] : first[node + 1]]
        if kind == BY_QUERY and len(set(own)) > 1:
            starts = p.keyword_starts[first[node] : first[node + 1] + 1]
            words = np.asarray(p.keywords[starts[0] : starts[-1]]).tobytes()
            marks.append((tuple(own), (starts - starts[0]).tobytes(), words))
        else:
            marks.append(tuple(sorted(set(own))) if kind == BY_POST else (own[0],))
    return marks


def touched(rows: Rows, router: RoutingTable, sums: np.ndarray) -> Rows:
    """The rows whose box touches one of some cells, of which there are the prefix sums."""
    if not len(rows) or not sums[-1, -1]:
        return rows.take(np.empty(0, np.int64))
    row, r = box_rectangles(frozen(rows.boxes), frozen(np.array(router.extent)), router.cells)
    x0, y0, x1, y1 = r.T
    some = sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0] > 0
    return rows.take(np.unique(row[some]))
