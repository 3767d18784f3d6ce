"""A first decision that nobody waits for.

A process that decides for the first time imports SciPy and loads what Numba has compiled, half a second and more, while
the stream waits. So once there are notes of a batch, the strategy is asked beside the next one, and what it says is
forgotten.
"""

import threading
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.op_schema import CODE_LAST, NEVER
from nearcast.engine.balance_strategies import decide, picked
from nearcast.engine.batch import BatchPlan
from nearcast.engine.load_notes import watched
from nearcast.engine.measured_load import Measured
from nearcast.engine.settings import Settings
from nearcast.partitioning.router_sample import CRQ, Queries
from nearcast.partitioning.routing_table import EVERYTHING
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import STATISTICS, Manifest

LEAST = 1.0001  # L_max / L_min: any imbalance is worth trying


class Rehearsal(Measured):
    """What was measured, with two made-up subscriptions. It opens nothing that the process keeps for its batches, so
    that it may run beside one.
    """

    @cached_property
    def _rows(self) -> tuple[Queries, float]:
        west, south, width, height = self.partition.extent
        boxes = np.array([[west, south, west + width, south + height], [west, south, west, south]])
        code, offsets = np.array([1 | CODE_LAST, 1] * 2, np.uint64), np.array([0, 2, 4], np.uint32)
        life, k = np.full(2, NEVER, np.int64), np.zeros(2, np.int64)
        return Queries(np.full(2, CRQ, np.uint8), frozen(boxes), frozen(code), frozen(offsets), life, k), 1.0

    @cached_property
    def _summary(self) -> np.ndarray:
        return EVERYTHING


def rehearse(state: StateDirectory, settings: Settings, manifest: Manifest) -> threading.Thread | None:
    """Decide for nothing in the background, where there is something to decide on."""
    if not watched(settings) or manifest.previous is not None or not manifest.of(STATISTICS):
        return None
    plan = BatchPlan(str(state.root), manifest, settings, manifest.batch)
    strategy = picked(settings.balance, plan.router.name)
    thread = threading.Thread(target=lambda: decide(strategy, Rehearsal(plan), LEAST), daemon=True)
    thread.start()
    return thread
