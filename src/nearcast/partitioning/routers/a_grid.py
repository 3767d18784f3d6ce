"""Tornado's A-Grid (Tornado §3.1): the space as N_e rectangles of cells of a fine grid, one an evaluator.

Textual summaries (§3.1) belong to the routing table, since every router has them here.
"""

import heapq

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.allocation import greedy
from nearcast.partitioning.kernels.cell_sums import candidates
from nearcast.partitioning.kernels.neighbours import neighbour_routes
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import Extent, Rectangle, cells_of, extent_of, prefix_sums, rectangles_of
from nearcast.partitioning.tiles import area, bounds, cuts, paint, rectangle, space_partition
from nearcast.partitioning.worker_load import CANDIDATE, MATCH, MEASURED
from nearcast.storage.subscriptions.kernels.register import key_terms

MOST_CELLS = 1000  # a side, as in §6
MATCHING = 0.64  # of the queries that eq. 1 counts: those that a post was seen to match, of Q1 in the generated world
CHECK = (CANDIDATE + MATCHING * MATCH) / MEASURED.c2  # what one of them costs, in posts carried
FEWEST_CELLS = 64  # a side: boundaries move by whole cells, so a few huge queries must not make them coarse


def build(
    sample: RouterSample, workers: int, evaluators: int | None = None, cells: int | None = None, check: float = CHECK
) -> Partition:
    """One rectangle an evaluator (§4.1), of about equal cost; as many evaluators as workers unless told otherwise.

    `cells` a side comes from §5 unless given. The cost of a cell is the sum over its posts of 1 + `check` · q_l, q_l
    being the queries there that the words of post l lead to. Eq. 1 has q_l alone; but to carry a post and store it
    costs as much as several. Cost: O(posts + queries + evaluators · cells).
    """
    cells = cells or granularity(sample)
    extent = extent_of(sample)
    posts = np.bincount(cells_of(sample.posts, extent, cells), minlength=cells * cells).reshape(cells, cells)
    cost = prefix_sums(posts + check * cell_costs(sample, extent, cells))
    parts = split(cost, min(evaluators or workers, cells * cells))
    load = np.array([max(cost_of(cost, part), 0.0) for part in parts])  # sums round
    owner = np.arange(len(parts)) if len(parts) <= workers else greedy(load, workers)
    return space_partition("agrid", extent, cells, paint(parts, cells), load, owner, workers)


def granularity(sample: RouterSample) -> int:
    """Cells a side such that a cell is as long as the mean query (§5: r_c = r_q), within FEWEST_CELLS and MOST_CELLS.

    The side of a query is the mean of its width and height as shares of the space; points have none and do not count.
    """
    _, _, width, height = extent_of(sample)
    boxes = sample.queries.boxes
    across = boxes[:, 2] - boxes[:, 0]
    across = np.where(across < 0, across + 360.0, across)
    sides = (np.minimum(across / width, 1.0) + np.minimum((boxes[:, 3] - boxes[:, 1]) / height, 1.0)) / 2
    sides = sides[sides > 0]
    if not len(sides):
        return MOST_CELLS
    return int(np.clip(round(1 / float(sides.mean())), FEWEST_CELLS, MOST_CELLS))


def cell_costs(sample: RouterSample, extent: Extent, cells: int) -> np.ndarray:
    """cost(FG[i][j]) of eq. 1, as a matrix of rows from the south.

    A query is filed as it is in the evaluators here: under the key of each conjunction, in the cells that it touches.
    """
    posts, queries = sample.posts, sample.queries
    at = cells_of(posts, extent, cells)
    rows, rectangles = rectangles_of(queries, extent, cells)
    filed, terms = key_terms(frozen(queries.code), frozen(queries.code_offsets.astype(np.uint32)))
    first = np.searchsorted(rows, filed, "left")
    sizes = np.searchsorted(rows, filed, "right") - first
    entries = np.repeat(first, sizes) + np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    terms = np.repeat(terms, sizes)
    order = np.argsort(terms, kind="stable")
    distinct, starts = np.unique(terms[order], return_index=True)
    checked = candidates(
        frozen(at.astype(np.int64)),
        cells,
        frozen(posts.terms),
        frozen(posts.offsets.astype(np.int64)),
        frozen(distinct),
        frozen(np.append(starts, len(terms)).astype(np.int64)),
        frozen(rectangles[entries[order]]),
    )
    return np.bincount(at, checked, cells * cells).reshape(cells, cells)


def cost_of(cost: np.ndarray, part: Rectangle) -> float:
    """cost(P_w) of eq. 2, from prefix sums of the cells' costs."""
    x0, y0, x1, y1 = part
    return float(cost[y1, x1] - cost[y0, x1] - cost[y1, x0] + cost[y0, x0])


def split(cost: np.ndarray, parts: int) -> list[Rectangle]:
    """The whole grid as so many rectangles (§4.1): time and again the costliest is cut in two where the greater of the
    costs is least. A single cell stays as it is, and the next costliest is cut instead.
    """
    cells = len(cost) - 1
    whole = (0, 0, cells, cells)
    heap = [(-cost_of(cost, whole), -area(whole), whole)]
    cells_alone: list[Rectangle] = []
    while heap and len(heap) + len(cells_alone) < parts:
        _, _, part = heapq.heappop(heap)
        if area(part) == 1:
            cells_alone.append(part)
            continue
        for half in cut(cost, part):
            heapq.heappush(heap, (-cost_of(cost, half), -area(half), half))
    return sorted(cells_alone + [part for _, _, part in heap], key=lambda part: (part[1], part[0]))


def cut(cost: np.ndarray, part: Rectangle) -> tuple[Rectangle, Rectangle]:
    """A rectangle of more than one cell in two, so that their costs differ least, in O(rows + columns) as with the row
    and column aggregates of §4.3. Among equals the cut nearest to the middle.
    """
    low, high = cuts(part)
    x0, y0, x1, y1 = low.T
    below = cost[y1, x1] - cost[y0, x1] - cost[y1, x0] + cost[y0, x0]
    best = int(np.argmin(np.abs(2 * below - cost_of(cost, part))))
    return rectangle(low[best]), rectangle(high[best])


def route(partition: Partition, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The partitions that each box (which must not cross the antimeridian) overlaps, by neighbour-based routing (§3.1,
    Algorithm 1): `nodes[offsets[i]:offsets[i + 1]]`, in the order of the search. O(N_p) a box, however fine the grid.

    The routing table gives the same answer; this is the paper's way to it. Nodes must be rectangles.
    """
    nodes, offsets = neighbour_routes(
        frozen(np.ascontiguousarray(boxes, np.float64)),
        frozen(np.array(partition.extent)),
        partition.cells,
        frozen(partition.node),
        frozen(bounds(partition)),
    )
    return nodes, offsets
