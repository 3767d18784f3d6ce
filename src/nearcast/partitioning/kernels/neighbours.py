"""Tornado's neighbour-based routing (Tornado §3.1, Algorithm 1), from the south-west corner of a range instead of the
top left: rows count from the south here.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.grid import grid_cell


@kernel
def neighbour_routes(boxes, extent, cells, node, bounds):
    """The nodes that each box overlaps, as (nodes, offsets). `bounds` are the rectangles (x0, y0, x1, y1) of the nodes,
    which cover the grid without overlapping.

    From the dominant cell of a partition (its south-west cell inside the range) the search goes on to the partitions
    across its east and its north side. That misses none: of the partitions west and south of a dominant cell that is
    not on the range's own edge, one begins at that cell's row or column, so its shortcut ends in that very cell.
    """
    out = np.empty(4 * boxes.shape[0] + 16, np.int32)
    offsets = np.zeros(boxes.shape[0] + 1, np.int64)
    visited = np.full(bounds.shape[0], -1, np.int64)
    stack = np.empty((2 * bounds.shape[0] + 2, 2), np.int64)
    n = 0
    for row in range(boxes.shape[0]):
        west = grid_cell(boxes[row, 0], extent[0], extent[2], cells)
        south = grid_cell(boxes[row, 1], extent[1], extent[3], cells)
        east = grid_cell(boxes[row, 2], extent[0], extent[2], cells)
        north = grid_cell(boxes[row, 3], extent[1], extent[3], cells)
        stack[0, 0], stack[0, 1] = west, south
        depth = 1
        while depth:
            depth -= 1
            x, y = stack[depth, 0], stack[depth, 1]
            if x > east or y > north:
                continue
            part = node[y * cells + x]
            if visited[part] == row:
                continue
            visited[part] = row
            if n == out.size:
                out = np.concatenate((out, np.empty(n, np.int32)))
            out[n] = part
            n += 1
            stack[depth, 0], stack[depth, 1] = max(bounds[part, 0], west), bounds[part, 3]
            stack[depth + 1, 0], stack[depth + 1, 1] = bounds[part, 2], max(bounds[part, 1], south)
            depth += 2
        offsets[row + 1] = n
    return out[:n].copy(), offsets
