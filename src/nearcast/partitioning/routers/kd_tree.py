"""PS2Stream's kd-tree partitioning (PS2Stream §VI-B, after its references 21 and 26): each leaf is one partition."""

import heapq

import numpy as np

from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import CELLS, Rectangle, Tally
from nearcast.partitioning.tiles import area, cuts, paint, rectangle, space_partition

C1, C2, C3 = 0.01, 1.0, 1.0  # Def. 1: a check of an object against a query, an object, an insertion


def build(
    sample: RouterSample, workers: int, c1: float = C1, c2: float = C2, c3: float = C3, cells: int = CELLS
) -> Partition:
    """As many leaves as workers: the most loaded one (Def. 1, with no deletions) is cut at the median of its posts,
    across and along in turns as in any kd-tree, until there are enough. Cost: O(posts + queries + cells²).
    """
    tally = Tally.of(sample, cells)

    def load(part: Rectangle) -> float:
        corners = tuple(np.array(edge) for edge in part)
        posts, queries = float(tally.posts(*corners)), float(tally.queries(*corners))
        return c1 * posts * queries + c2 * posts + c3 * queries

    whole = (0, 0, cells, cells)
    heap = [(-load(whole), 0, whole)]
    cells_alone: list[Rectangle] = []
    while heap and len(heap) + len(cells_alone) < workers:
        _, depth, part = heapq.heappop(heap)
        if area(part) == 1:
            cells_alone.append(part)
            continue
        for half in halves(tally, part, across=depth % 2 == 0):
            heapq.heappush(heap, (-load(half), depth + 1, half))
    parts = sorted(cells_alone + [part for _, _, part in heap], key=lambda part: (part[1], part[0]))
    loads = np.array([load(part) for part in parts])
    return space_partition("kd", tally.extent, cells, paint(parts, cells), loads, np.arange(len(parts)), workers)


def halves(tally: Tally, part: Rectangle, across: bool) -> tuple[Rectangle, Rectangle]:
    """Cut by a line of lon (`across`) or of lat, so that the posts on both sides differ least in number; by the other
    where the part is one cell wide. Among equals the cut nearest to the middle.
    """
    low, high = cuts(part)
    by_lon = low[:, 2] < part[2]
    wanted = by_lon if (across and by_lon.any()) or by_lon.all() else ~by_lon
    low, high = low[wanted], high[wanted]
    best = int(np.argmin(np.abs(tally.posts(*low.T) - tally.posts(*high.T))))
    return rectangle(low[best]), rectangle(high[best])
