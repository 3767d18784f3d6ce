"""Partitions of space alone: tiles of cells, each a node of one leaf."""

from collections.abc import Sequence

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.kernels.cell_sums import node_bounds
from nearcast.partitioning.partition import SPACE, Partition
from nearcast.partitioning.sample_tally import Extent, Rectangle


def paint(rectangles: Sequence[Rectangle], cells: int) -> np.ndarray:
    """The rectangle of each cell, where rectangles cover the grid and do not overlap."""
    node = np.full((cells, cells), -1, np.int32)
    for number, (x0, y0, x1, y1) in enumerate(rectangles):
        node[y0:y1, x0:x1] = number
    return node.reshape(-1)


def space_partition(
    name: str, extent: Extent, cells: int, node: np.ndarray, load: np.ndarray, owner: np.ndarray, workers: int
) -> Partition:
    """The partition whose tile t, the cells with `node` t, is the one leaf t."""
    leaves = len(load)
    return Partition(
        name=name,
        extent=extent,
        cells=cells,
        node=np.ascontiguousarray(node, np.int32),
        kind=np.full(leaves, SPACE, np.uint8),
        first=np.arange(leaves + 1, dtype=np.int32),
        load=np.ascontiguousarray(load, np.float64),
        owner=np.ascontiguousarray(owner, np.int32),
        workers=workers,
    )


def cuts(part: Rectangle) -> tuple[np.ndarray, np.ndarray]:
    """All ways to cut a rectangle in two along a line of the grid, as rows of lower and of upper halves: those nearest
    to the middle first, and among equals those across the longer side. So the first of the best is the best.
    """
    x0, y0, x1, y1 = part
    xs, ys = np.arange(x0 + 1, x1), np.arange(y0 + 1, y1)
    low = np.tile(np.array(part), (len(xs) + len(ys), 1))
    high = low.copy()
    low[: len(xs), 2] = high[: len(xs), 0] = xs
    low[len(xs) :, 3] = high[len(xs) :, 1] = ys
    from_middle = np.concatenate((np.abs(2 * xs - x0 - x1) / (x1 - x0), np.abs(2 * ys - y0 - y1) / (y1 - y0)))
    shorter = np.repeat([x1 - x0 < y1 - y0, x1 - x0 >= y1 - y0], [len(xs), len(ys)])
    order = np.lexsort((shorter, from_middle))
    return low[order], high[order]


def area(part: Rectangle) -> int:
    return (part[2] - part[0]) * (part[3] - part[1])


def rectangle(row: np.ndarray) -> Rectangle:
    x0, y0, x1, y1 = row.tolist()
    return x0, y0, x1, y1


def bounds(partition: Partition) -> np.ndarray:
    """The bounding rectangle (x0, y0, x1, y1) of each node; x1 = 0 for one without cells."""
    return node_bounds(frozen(partition.node), partition.cells, partition.nodes)
