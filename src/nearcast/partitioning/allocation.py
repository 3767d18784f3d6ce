"""Allotting leaves to workers by load."""

import heapq

import numpy as np


def greedy(loads: np.ndarray, workers: int) -> np.ndarray:
    """The worker of each leaf: heaviest leaf first, each to the worker with the least load so far.

    No worker's load exceeds 4/3 - 1/(3 workers) of the best possible (Graham's longest processing time first). Leaves
    with no known load are dealt out in turn, so that a quiet region that wakes up does not wake on one worker.
    """
    owners = np.empty(len(loads), np.int32)
    heap = [(0.0, worker) for worker in range(workers)]
    for leaf in np.argsort(-loads, kind="stable"):
        if loads[leaf] <= 0:
            owners[leaf] = leaf % workers
            continue
        load, worker = heapq.heappop(heap)
        owners[leaf] = worker
        heapq.heappush(heap, (load + float(loads[leaf]), worker))
    return owners
