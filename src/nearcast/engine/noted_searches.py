"""Searches that came with the stream, as routers and statistics see them: noted by a worker in its batch, some of each,
and kept for a while (SSTD §4.1.1: J is of all types of query).
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import SEARCH, SUBSCRIBE
from nearcast.engine.batch import BatchPlan
from nearcast.partitioning.router_sample import CKQ, CRQ, CTQ, SKQ, SRQ, STQ, Queries
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.manifest import SEARCHES, SegmentRef
from nearcast.storage.subscriptions.rows import flat_lists

ONCE, STANDING = np.array([SRQ, SKQ, STQ], np.uint8), np.array([CRQ, CKQ, CTQ], np.uint8)  # by what an op asks
COLUMNS = ("type", "boxes", "code", "life", "k")
SAMPLED = 1_000  # searches of a batch
HALF_LIFE = 4  # batches with searches, in which the weight of a search halves


def asked_by(ops: pa.Table) -> Queries:
    """What encoded ops ask, subscriptions and searches: the point of a nearest query is its box, and the life of a
    search is how far it looks back.
    """
    code, offsets = flat_lists(ops["code"])
    standing = ops["op"].to_numpy() == SUBSCRIBE
    asks = np.minimum(ops["asks"].to_numpy(), len(STANDING) - 1)
    type_ = np.where(standing, STANDING[asks], ONCE[asks])
    boxes = np.stack([ops[name].to_numpy() for name in ("min_lon", "min_lat", "max_lon", "max_lat")], axis=1)
    points = np.stack([ops[name].to_numpy() for name in ("at_lon", "at_lat", "at_lon", "at_lat")], axis=1)
    boxes = np.where(((type_ == CKQ) | (type_ == SKQ))[:, None], points, boxes)
    life = np.where(standing, ops["life"].to_numpy(), ops["window"].to_numpy())
    return Queries(type_, boxes, code, offsets.astype(np.int64), life, ops["k"].to_numpy())


def joined(parts: Sequence[Queries]) -> Queries:
    """Queries one after the other."""
    parts = [no_queries(), *parts]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    sizes = np.concatenate([np.diff(part.code_offsets.astype(np.int64)) for part in parts])
    return Queries(**columns, code_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def no_queries() -> Queries:
    nothing = np.empty(0, np.int64)
    return Queries(
        np.empty(0, np.uint8), np.empty((0, 4)), np.empty(0, np.uint64), np.zeros(1, np.int64), nothing, nothing
    )


def note_searches(plan: BatchPlan, ops: pa.Table) -> list[SegmentRef]:
    """The searches among encoded ops as a segment, if there are any; of many some, evenly spread."""
    rows = np.flatnonzero(ops["op"].to_numpy() == SEARCH)
    if not len(rows):
        return []
    some = rows[:: -(-len(rows) // SAMPLED)]
    queries = asked_by(ops.take(pa.array(some)))
    arrays = {name: getattr(queries, name) for name in (*COLUMNS, "code_offsets")}
    name = plan.state.new_name(SEARCHES, plan.batch, 0)
    size = write_table(plan.state.path(name), bundle_table(arrays))
    return [SegmentRef(SEARCHES, name, len(some), size, plan.batch, facts={"searches": len(rows)})]


def open_searches(plan: BatchPlan) -> tuple[Queries, np.ndarray]:
    """The searches noted, the oldest first, and how many each stands for: the older, the fewer."""
    refs = sorted(plan.manifest.of(SEARCHES), key=lambda ref: ref.batch)
    parts, weights = [], [np.empty(0)]
    for age, ref in zip(range(len(refs) - 1, -1, -1), refs, strict=True):
        arrays = {name: np.asarray(array) for name, array in open_bundle(plan.state.path(ref.name)).items()}
        parts.append(Queries(**{**arrays, "boxes": arrays["boxes"].reshape(-1, 4)}))
        weights.append(np.full(ref.rows, 0.5 ** (age / HALF_LIFE) * ref.facts["searches"] / ref.rows))
    return joined(parts), np.concatenate(weights)
