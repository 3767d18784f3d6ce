"""Allotting leaves to workers by the largest differencing method of Karmarkar and Karp (SSTD §4.1.2)."""

import heapq

import numpy as np


def karmarkar_karp(loads: np.ndarray, workers: int) -> np.ndarray:
    """The worker of each leaf, so that the workers' loads differ little.

    Every leaf begins as a solution of its own, all of its load on one worker. Again and again the two solutions with
    the largest difference between their workers are put together, the fullest worker of one with the emptiest of the
    other. The most loaded worker has at most 4/3 - 1/(3 workers) of the best possible (7/6 for two workers), and mostly
    far less than the greedy allotment's. Leaves without load are dealt out in turn, as they may wake up together.
    O(n (log n + workers log workers)).
    """
    owners = np.arange(len(loads), dtype=np.int32) % np.int32(workers)
    heap: list[tuple[float, int, list[float], list[list[int]]]] = []
    for leaf in np.flatnonzero(loads > 0).tolist():
        load = float(loads[leaf])
        # the loads of the workers from the lightest to the heaviest, and their leaves
        heap.append((-load, leaf, [0.0] * (workers - 1) + [load], [[] for _ in range(workers - 1)] + [[leaf]]))
    heapq.heapify(heap)
    while len(heap) > 1:
        _, order, sums, groups = heapq.heappop(heap)
        _, _, other_sums, other_groups = heapq.heappop(heap)
        joined = [
            (a + b, _joined(ours, theirs))
            for a, b, ours, theirs in zip(sums, reversed(other_sums), groups, reversed(other_groups), strict=True)
        ]
        joined.sort(key=lambda pair: pair[0])
        sums = [pair[0] for pair in joined]
        heapq.heappush(heap, (sums[0] - sums[-1], order, sums, [pair[1] for pair in joined]))
    if heap:
        for worker, group in enumerate(heap[0][3]):
            owners[group] = worker
    return owners


def _joined(one: list[int], other: list[int]) -> list[int]:
    """Both lists, in the longer one's place."""
    if len(one) < len(other):
        one, other = other, one
    one.extend(other)
    return one
