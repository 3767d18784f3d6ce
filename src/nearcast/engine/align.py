"""Aligning a state with another router or number of workers: each worker gets segments of just the subscriptions that
its leaves need.

Done before the stream starts, in a manifest of its own. Posts need nothing: a worker picks those of its leaves out of
any segment that was written before.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from nearcast.common.kinds import codes
from nearcast.engine.batch import BatchPlan, open_segments, write_segment
from nearcast.engine.settings import Settings
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import SUBSCRIPTIONS, Manifest, SegmentRef, commit
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Segment


def align(state: StateDirectory, settings: Settings) -> Manifest:
    """The manifest with every segment of subscriptions written for its router and `settings.workers`. Costs nothing
    where that is so.
    """
    manifest = state.newest()
    if manifest.router is None or not placed(manifest):
        return manifest
    plan = BatchPlan(str(state.root), manifest, settings, manifest.batch)
    if manifest.aligned == plan.layout:
        return manifest
    segments = manifest.replacing([ref.name for ref in placed(manifest)], rewritten(plan))
    return commit(state.manifests, manifest, replace(manifest, segments=segments, aligned=plan.layout))


def placed(manifest: Manifest) -> list[SegmentRef]:
    """The segments of subscriptions that are placed by leaves, each its owner's; others are for all workers."""
    return [ref for ref in manifest.of(SUBSCRIPTIONS) if ref.asks in codes("placed")]


def rewritten(plan: BatchPlan) -> list[SegmentRef]:
    """All subscriptions that are placed by leaves, for the workers that there are."""
    old = placed(plan.manifest)
    new: list[SegmentRef] = []
    moved = np.empty(0, np.int64)  # to the ended ones by some workers already, by others not yet
    for ended in (1, 0):
        group = [ref for ref in old if ref.facts.get("ended", 0) == ended]
        if group:
            rows = Rows.concat([segment.rows for segment in open_segments(plan, [ref.name for ref in group]).values()])
            rows = rows.take(np.flatnonzero(~np.isin(rows.seq, moved)))
            moved = rows.seq
            folded = min(ref.facts.get("folded", ref.batch - 1) for ref in group)
            keepers, home = plan.keepers(rows)
            for worker in range(plan.settings.workers):
                facts = {"ended": ended, "folded": folded}
                new += write_share(plan, rows, np.flatnonzero(keepers[:, worker]), home, worker, facts)
    return new


def write_share(
    plan: BatchPlan, rows: Rows, mine: np.ndarray, home: np.ndarray, worker: int, facts: dict[str, Any]
) -> list[SegmentRef]:
    """The segment of those of some rows that a worker is to have, if any."""
    if not len(mine):
        return []
    rows = Rows(**{**rows.__dict__, "home": (home == worker).astype(np.uint8)})
    segment = Segment.build(rows, plan.filing, mine)
    name, size = write_segment(plan, segment, worker)
    return [SegmentRef(SUBSCRIPTIONS, name, len(segment), size, plan.batch, worker, facts=facts)]
