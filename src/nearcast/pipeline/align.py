"""Aligning a state with another router or number of workers: each worker gets segments of just the subscriptions that
its leaves need.

Done before the stream starts, in a manifest of its own. Posts need nothing: a worker picks those of its leaves out of
any segment that was written before.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from nearcast.index.rows import Rows
from nearcast.index.segment import Segment
from nearcast.model.ops import RANGE
from nearcast.pipeline.plan import Plan, open_segments, write_segment
from nearcast.pipeline.settings import Settings
from nearcast.state.directory import StateDirectory
from nearcast.state.manifest import SUBSCRIPTIONS, Manifest, SegmentRef, commit


def align(state: StateDirectory, settings: Settings) -> Manifest:
    """The manifest with every segment of subscriptions written for its router and `settings.workers`."""
    manifest = state.newest()
    refs = [ref for ref in manifest.of(SUBSCRIPTIONS) if ref.asks == RANGE]  # others are for all workers
    plan = Plan(str(state.root), manifest, settings, manifest.batch)
    old = [ref for ref in refs if ref.facts.get("layout") != plan.layout]
    if not old:
        return manifest
    new: list[SegmentRef] = []
    moved = np.empty(0, np.int64)  # to the ended ones by some workers already, by others not yet
    for ended in (1, 0):
        group = [ref for ref in old if ref.facts.get("ended", 0) == ended]
        if group:
            rows = Rows.concat([segment.rows for segment in open_segments(plan, [ref.name for ref in group]).values()])
            rows = rows.take(np.flatnonzero(~np.isin(rows.seq, moved)))
            moved = rows.seq
            folded = min(ref.facts.get("folded", ref.batch - 1) for ref in group)
            facts = {"layout": plan.layout, "ended": ended, "folded": folded}
            new += [write_share(plan, rows, worker, facts) for worker in range(settings.workers)]
    segments = manifest.replacing([ref.name for ref in old], [ref for ref in new if ref.rows])
    return commit(state.manifests, manifest, replace(manifest, segments=segments))


def write_share(plan: Plan, rows: Rows, worker: int, facts: dict[str, Any]) -> SegmentRef:
    """The segment of the rows that one worker keeps."""
    keepers, home = plan.router.keepers(rows, plan.settings.workers)
    mine = np.flatnonzero(keepers[:, worker])
    if not len(mine):
        return SegmentRef(SUBSCRIPTIONS, "", 0, 0, plan.batch, worker)
    rows = Rows(**{**rows.__dict__, "home": (home == worker).astype(np.uint8)})
    segment = Segment.build(rows, plan.filing, mine)
    name, size = write_segment(plan, segment, worker)
    return SegmentRef(SUBSCRIPTIONS, name, len(segment), size, plan.batch, worker, facts=facts)
