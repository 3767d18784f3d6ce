"""What a state holds, as figures."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.common.kinds import kind_coded
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.reader import Reader
from nearcast.reader.subscription_list import Subscriptions
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import folder_size, open_table
from nearcast.storage.manifest import REJECTS, SUBSCRIPTIONS, Manifest


@dataclass(frozen=True)
class FileTotals:
    """The files of one kind: how many, their rows, their bytes."""

    segments: int
    rows: int
    size: int


@dataclass(frozen=True)
class Status:
    """A state after its newest batch. Times in microseconds, sizes in bytes.

    `counts` are totals since the state was made; `rejects` are those on disk by reason; `load` is what each worker did
    in the last batch. `owners` tells of each worker's leaves and their expected share of the load, `adjustments` of the
    last changes for the sake of balance. From `kept_since` on posts are kept, None if none have left. `kinds` are the
    files of the manifest; `disk` is all that lies in the directory, replaced files that wait for their sweeping
    included.
    """

    state: str
    version: int
    batch: int
    clock: int | None
    first_post: int | None
    settings: dict[str, Any]
    counts: dict[str, int]
    subscriptions: dict[str, int]
    rejects: dict[str, int]
    kinds: dict[str, FileTotals]
    disk: int
    router: str | None
    leaves: int
    load: list[dict[str, Any]] = field(default_factory=list)
    owners: list[dict[str, Any]] = field(default_factory=list)
    adjustments: list[dict[str, Any]] = field(default_factory=list)
    kept_since: int | None = None

    @property
    def balance(self) -> float | None:
        """The busiest worker's processor time over the mean, in the last batch: 1 is perfect."""
        seconds = [float(worker.get("seconds", 0)) for worker in self.load]
        mean = sum(seconds) / len(seconds) if seconds else 0.0
        return round(max(seconds) / mean, 2) if mean else None


def read_status(source: Reader | StateDirectory | str | Path) -> Status:
    reader = source if isinstance(source, Reader) else Reader(source)
    manifest = reader.manifest
    router = RoutingTable.load(reader.state.root / manifest.router) if manifest.router else None
    return Status(
        state=str(reader.state.root),
        version=manifest.version,
        batch=manifest.batch,
        clock=manifest.clock,
        first_post=manifest.first_post,
        settings=dict(manifest.settings),
        counts=dict(manifest.counts),
        subscriptions=Subscriptions(reader).counts(),
        rejects=_reasons(reader),
        kinds=_kinds(manifest),
        disk=folder_size(reader.state.root),
        router=router.name if router else None,
        leaves=router.leaves if router else 0,
        load=manifest.load,
        owners=_owners(manifest, router) if router else [],
        adjustments=manifest.adjustments,
        kept_since=manifest.kept_since,
    )


def _kinds(manifest: Manifest) -> dict[str, FileTotals]:
    totals: dict[str, FileTotals] = {}
    for ref in manifest.segments:
        before = totals.get(ref.kind, FileTotals(0, 0, 0))
        totals[ref.kind] = FileTotals(before.segments + 1, before.rows + ref.rows, before.size + ref.size)
    return dict(sorted(totals.items()))


def _owners(manifest: Manifest, router: RoutingTable) -> list[dict[str, Any]]:
    """By worker: leaves, their share of the load that the routing table expects, and the subscriptions on hand."""
    workers = len(manifest.load) or router.partition.workers
    owners, load = router.owners(workers), router.partition.load
    share = np.bincount(owners, load, workers) / max(float(load.sum()), 1e-300)
    rows = np.zeros(workers, np.int64)
    for ref in manifest.of(SUBSCRIPTIONS):
        if kind_coded(ref.asks).placed and ref.owner < workers:
            rows[ref.owner] += ref.rows
    leaves = np.bincount(owners, minlength=workers)
    return [
        {"worker": w, "leaves": int(leaves[w]), "share": round(float(share[w]), 3), "subscriptions": int(rows[w])}
        for w in range(workers)
    ]


def _reasons(reader: Reader) -> dict[str, int]:
    """Rejects by the first line of their reason, the most frequent first."""
    reasons: Counter[str] = Counter()
    for ref in reader.manifest.of(REJECTS):
        for each in open_table(reader.state.path(ref.name))["reason"].value_counts().to_pylist():
            reasons[each["values"].partition("\n")[0]] += each["counts"]
    return dict(reasons.most_common())
