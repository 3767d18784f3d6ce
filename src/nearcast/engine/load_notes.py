"""What a worker notes of a batch for balancing: a small sample of the posts it stored, and what it did.

Each batch adds one small file a worker; those of the last KEPT batches stay. What is older counts for less
(`engine.measured_load`), so that statistics follow the stream; and since they are posts and not figures of a partition,
they outlive any change of it: the quadtree J of SSTD §4.1.1 is made of them whenever it is needed.
"""

from collections.abc import Mapping

import numpy as np

from nearcast.engine.batch import BatchPlan
from nearcast.engine.settings import Settings
from nearcast.partitioning.worker_load import CANDIDATE, MATCH, MEASURED
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import STATISTICS, SegmentRef
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import take_lists

SAMPLED = 1_000  # posts a worker and batch
KEPT = 12  # batches


def watched(settings: Settings) -> bool:
    """Whether anyone will ask."""
    return settings.balance != "off" and settings.workers > 1


def observe(
    plan: BatchPlan, worker: int, counts: Mapping[str, int], columns: PostColumns, stored: np.ndarray
) -> SegmentRef:
    """Write the notes of a worker that has carried these posts and stores some of them. Cost: nothing a post."""
    rows = stored[:: max(1, -(-len(stored) // SAMPLED))]
    terms, offsets = take_lists(columns.terms, columns.offsets, rows)
    arrays = {
        "lon": columns.lon[rows], "lat": columns.lat[rows], "ts": columns.ts[rows], "terms": terms, "offsets": offsets,
    }  # fmt: skip
    name = plan.state.new_name(STATISTICS, plan.batch, worker)
    size = write_table(plan.state.path(name), bundle_table(arrays))
    facts = {
        "layout": plan.layout,
        "posts": len(stored),
        "carrying": round(MEASURED.c2 * len(columns.lon)),
        "checking": round(CANDIDATE * counts.get("candidates", 0) + MATCH * counts.get("matches", 0)),
    }
    return SegmentRef(STATISTICS, name, len(rows), size, plan.batch, worker, facts=facts)
