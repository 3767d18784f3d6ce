"""Subscriptions to the nearest as segments, and their answers before any post."""

import numpy as np
import pyarrow as pa

from nearcast.engine.batch import BatchPlan
from nearcast.engine.op_resolution import Resolved
from nearcast.kinds.nearest import KIND
from nearcast.kinds.nearest.state import Answers
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.manifest import POSTS, SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.posts.post_tables import NO_POSTS
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Segment
from nearcast.storage.subscriptions.subscription_set import ids_of

A_SEARCH = 1000  # posts may be matched in the time that one search takes
CANDIDATES = "nearest candidates"  # files in the spool: what may enter answers
SUPERSEDED = "nearest superseded"  # subscriptions that others have taken over from
FORGOTTEN = "nearest forgotten"  # and those that were dropped long after their end


def nearest_refs(manifest: Manifest) -> list[SegmentRef]:
    return [ref for ref in manifest.of(SUBSCRIPTIONS) if ref.asks == KIND.code]


def is_searched(manifest: Manifest, rows: Rows) -> bool:
    """Whether new subscriptions catch up by a search each, rather than by a look at all posts since their start."""
    since = int(rows.start.min()) if len(rows) else 0
    posts = 0.0
    for ref in manifest.of(POSTS):
        if ref.max_ts >= since:
            share = (ref.max_ts - since + 1) / (ref.max_ts - ref.min_ts + 1)
            posts += ref.rows * min(1.0, share)
    return len(rows) * A_SEARCH < posts


def newest_only(ops: Resolved) -> Rows:
    """New subscriptions that no later op of the batch has replaced."""
    rows = ops.of(KIND)
    return rows.take(np.flatnonzero(~np.isin(rows.seq, ops.replaced)))


def write_nearest(plan: BatchPlan, segment: Segment, reach: np.ndarray) -> SegmentRef:
    """Write subscriptions, filed by circles of radius `reach`, one segment for all workers.

    A circle may outgrow its box when a post is deleted, so their textual summary knows words, and no places.
    """
    name = plan.state.new_name(SUBSCRIPTIONS, plan.batch, 0)
    everywhere = np.tile(np.array([-180.0, -90.0, 180.0, 90.0]), (len(segment), 1))
    summary = plan.router.summary(Rows(**{**segment.rows.__dict__, "boxes": everywhere}))
    arrays = {**segment.arrays(), "summary": summary, "row_reach": reach}
    size = write_table(plan.state.path(name), bundle_table(arrays))
    return SegmentRef(SUBSCRIPTIONS, name, len(segment), size, plan.batch, facts={"asks": KIND.code})


def open_reach(plan: BatchPlan, name: str) -> np.ndarray:
    """The radius by which each row of a segment is filed."""
    return np.asarray(open_bundle(plan.state.path(name))["row_reach"])


def answers_of(rows: Rows, picked: np.ndarray, batch: int) -> Answers:
    """Empty answers of some rows."""
    ids, texts = ids_of(rows, picked)
    columns = rows.columns.take(pa.array(picked)) if len(rows.columns) else pa.nulls(len(picked), pa.string())
    return Answers(
        rows.seq[picked], np.full(len(picked), batch), rows.points[picked, 2].astype(np.int64), ids, texts, columns,
        np.zeros(len(picked) + 1, np.int64), np.empty(0), np.empty(0, np.int32), NO_POSTS,
    )  # fmt: skip
