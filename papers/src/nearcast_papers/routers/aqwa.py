"""AQWA's partitioning, which STAR is compared with (STAR §8.5, its reference 6): a kd-tree that is cut where the
cost of queries, points × queries of each part, falls most.
"""

import heapq

import numpy as np

from nearcast.partitioning.allocation import greedy
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import CELLS, Rectangle, Tally
from nearcast.partitioning.tiles import area, cuts, paint, rectangle, space_partition

LEAVES = 64  # as many as the QT-tree's (SSTD §7), so that they compare


def build(sample: RouterSample, workers: int, leaves: int = LEAVES, cells: int = CELLS) -> Partition:
    """`leaves` rectangles, at least one a worker, dealt out heaviest first. Each step takes the cut that lowers the
    total of W(P) = |Q|·|O| most (SSTD §4.1.1 quotes the model). Cost: O(posts + queries + cells² + leaves · cells).
    """
    tally = Tally.of(sample, cells)
    whole = (0, 0, cells, cells)
    heap = [_candidate(tally, whole)]
    fixed: list[Rectangle] = []
    while heap and len(heap) + len(fixed) < max(leaves, workers):
        _, _, part, halves = heapq.heappop(heap)
        if not halves:
            fixed.append(part)
            continue
        for half in halves:
            heapq.heappush(heap, _candidate(tally, half))
    parts = sorted(fixed + [part for _, _, part, _ in heap], key=lambda part: (part[1], part[0]))
    load = cost(tally, *np.array(parts).T)
    return space_partition("aqwa", tally.extent, cells, paint(parts, cells), load, greedy(load, workers), workers)


def cost(tally: Tally, x0: np.ndarray, y0: np.ndarray, x1: np.ndarray, y1: np.ndarray) -> np.ndarray:
    """W(P) of rectangles of cells."""
    return (tally.posts(x0, y0, x1, y1) * tally.queries(x0, y0, x1, y1)).astype(np.float64)


def best_cut(tally: Tally, part: Rectangle) -> tuple[float, list[Rectangle]]:
    """How much the best cut lowers the cost, and its halves (none of a single cell); among equals the cut nearest to
    the middle.
    """
    low, high = cuts(part)
    if not len(low):
        return 0.0, []
    total = cost(tally, *low.T) + cost(tally, *high.T)
    best = int(np.argmin(total))
    gain = float(cost(tally, *np.array([part]).T)[0] - total[best])
    return gain, [rectangle(low[best]), rectangle(high[best])]


def _candidate(tally: Tally, part: Rectangle) -> tuple[float, int, Rectangle, list[Rectangle]]:
    gain, halves = best_cut(tally, part)
    return -gain, -area(part), part, halves
