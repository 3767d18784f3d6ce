"""Counting over the fine grid that partitions are made of.

A rectangle of cells is (x0, y0, x1, y1), the cells with x0 <= x < x1 and y0 <= y < y1.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.grid import grid_cell
from nearcast.common.kernels.sorting import hashed_bound

SCANNED = 32  # entries of one term that are looked at for one post, spread over all of them


@kernel
def box_rectangles(boxes, extent, cells):
    """(row, rectangle of cells) of each box; a box that crosses the antimeridian has two where they do not meet."""
    rows = np.empty(2 * boxes.shape[0], np.int64)
    out = np.empty((2 * boxes.shape[0], 4), np.int32)
    n = 0
    for row in range(boxes.shape[0]):
        y0 = grid_cell(boxes[row, 1], extent[1], extent[3], cells)
        y1 = grid_cell(boxes[row, 3], extent[1], extent[3], cells) + 1
        x0 = grid_cell(boxes[row, 0], extent[0], extent[2], cells)
        x1 = grid_cell(boxes[row, 2], extent[0], extent[2], cells) + 1
        two = False
        if boxes[row, 0] > boxes[row, 2]:
            two = x1 < x0
            if not two:
                x0, x1 = 0, cells
        rows[n] = row
        out[n] = (x0, y0, cells if two else x1, y1)
        n += 1
        if two:
            rows[n] = row
            out[n] = (0, y0, x1, y1)
            n += 1
    return rows[:n].copy(), out[:n].copy()


@kernel
def node_bounds(node, cells, nodes):
    """The bounding rectangle of each node's cells; (cells, cells, 0, 0) for one without."""
    out = np.zeros((nodes, 4), np.int64)
    out[:, :2] = cells
    for y in range(cells):
        for x in range(cells):
            n = node[y * cells + x]
            out[n, 0] = min(out[n, 0], x)
            out[n, 1] = min(out[n, 1], y)
            out[n, 2] = max(out[n, 2], x + 1)
            out[n, 3] = max(out[n, 3], y + 1)
    return out


@kernel
def candidates(post_cells, cells, terms, offsets, filed_terms, filed_starts, filed_rectangles):
    """The number of entries that each post would be checked against: those filed under one of its terms, or under 0,
    whose rectangle has the post's cell. Entries filed_starts[t] to filed_starts[t + 1] - 1 are those of the sorted,
    distinct filed_terms[t]; of more than SCANNED as many are looked at, evenly spread, and stand for the rest.
    """
    out = np.zeros(post_cells.size)
    for i in range(post_cells.size):
        x, y = post_cells[i] % cells, post_cells[i] // cells
        for j in range(np.int64(offsets[i]) - 1, np.int64(offsets[i + 1])):
            own = j >= offsets[i]
            term = terms[j] if own else np.uint64(0)
            seen = own and term == 0
            for other in range(offsets[i], j):
                seen |= terms[other] == term
            at = hashed_bound(filed_terms, term)
            if seen or at == filed_terms.size or filed_terms[at] != term:
                continue
            first, count = filed_starts[at], filed_starts[at + 1] - filed_starts[at]
            looks = min(count, SCANNED)
            hits = 0
            for look in range(looks):
                entry = first + (look * count // looks + i) % count  # others for the next post
                if (
                    filed_rectangles[entry, 0] <= x < filed_rectangles[entry, 2]
                    and filed_rectangles[entry, 1] <= y < filed_rectangles[entry, 3]
                ):
                    hits += 1
            out[i] += hits * count / looks
    return out
