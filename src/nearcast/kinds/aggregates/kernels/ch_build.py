"""Laying out a CH-tree: the quadtree of its ranges, the leaves that a range overlaps, and the nodes.

The quadtree divides the world: its cells are those of the Z-order curve, and a leaf is known by the code it begins at.
Coordinates are 32-bit integers (`register.grid_coordinate`), which are monotone in degrees: what overlaps in degrees
does so in integers, and what is strictly inside in integers is inside in degrees.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.growing import grown
from nearcast.kinds.aggregates.kernels.ch_walk import NONE, OWNERS, SPREAD, shift_of
from nearcast.storage.subscriptions.kernels.register import grid_coordinate, z_code

LEAST = 8  # the smallest cell has a side of 2^LEAST units, some 2 m


@kernel
def grid_boxes(boxes):
    """(box, least x, least y, greatest x, greatest y) in integers; a box that crosses the antimeridian is two."""
    out = np.empty((2 * boxes.shape[0], 5), np.int64)
    n = 0
    for box in range(boxes.shape[0]):
        wraps = boxes[box, 0] > boxes[box, 2]
        for part in range(2 if wraps else 1):
            west = -180.0 if wraps and part else boxes[box, 0]
            east = 180.0 if wraps and not part else boxes[box, 2]
            out[n, 0] = box
            out[n, 1], out[n, 2] = grid_coordinate(west, -180.0, 360.0), grid_coordinate(boxes[box, 1], -90.0, 180.0)
            out[n, 3], out[n, 4] = grid_coordinate(east, -180.0, 360.0), grid_coordinate(boxes[box, 3], -90.0, 180.0)
            n += 1
    return out[:n].copy()


@kernel
def grow_quadtree(boxes, most, leaves):
    """Where the leaves of the quadtree of some `grid_boxes` begin, unsorted: a cell that overlaps more than `most` of
    them is divided while that helps and there are fewer than `leaves`.
    """
    cells = np.empty((4 * leaves + 4, 3), np.int64)  # x, y, bits of the side
    cells[0, 0], cells[0, 1], cells[0, 2] = 0, 0, 32
    out = np.empty(leaves + 4, np.uint64)
    done, todo, found = 0, 1, 0
    while done < todo:  # breadth first, so that all crowded places get their share
        x, y, bits = cells[done]
        done += 1
        side = np.int64(1) << bits
        inside, partly = 0, 0
        for i in range(boxes.shape[0]):
            x0, y0, x1, y1 = boxes[i, 1], boxes[i, 2], boxes[i, 3], boxes[i, 4]
            if x0 < x + side and x1 >= x and y0 < y + side and y1 >= y:
                inside += 1
                partly += not (x0 < x and x1 >= x + side and y0 < y and y1 >= y + side)
        full = found + (todo - done) + 4 > leaves
        if full or inside <= most or 4 * partly <= inside or bits == LEAST:  # covering boxes would only be repeated
            out[found] = z_code(x, y)
            found += 1
            continue
        for quarter in range(4):
            cells[todo, 0] = x + (side >> 1) * (quarter & 1)
            cells[todo, 1] = y + (side >> 1) * (quarter >> 1)
            cells[todo, 2] = bits - 1
            todo += 1
    return out[:found].copy()


@kernel
def leaves_of_boxes(boxes, leaves, most):
    """(box, leaf, whether the box covers the leaf) of each leaf that one of some `grid_boxes` overlaps; none of one
    with more than `most`. `leaves` are sorted.
    """
    owners, labels = np.empty(4 * boxes.shape[0] + 16, np.int64), np.empty(4 * boxes.shape[0] + 16, np.int64)
    covered = np.empty(owners.size, np.int64)
    cells = np.empty((4 * 33, 3), np.int64)
    n = first = 0
    for i in range(boxes.shape[0]):
        x0, y0, x1, y1 = boxes[i, 1], boxes[i, 2], boxes[i, 3], boxes[i, 4]
        second = i > 0 and boxes[i - 1, 0] == boxes[i, 0]  # half of a box
        if not second:
            first = n
        elif first < 0:
            continue
        top = 1
        cells[0, 0], cells[0, 1], cells[0, 2] = 0, 0, 32
        while top and n - first <= most:
            top -= 1
            x, y, bits = cells[top]
            side = np.int64(1) << bits
            if x0 >= x + side or x1 < x or y0 >= y + side or y1 < y:
                continue
            z = z_code(x, y)
            last = z_code(x + side - 1, y + side - 1)
            low, size = np.int64(0), np.int64(leaves.size)
            while size > 1:
                half = size >> 1
                low += half if leaves[low + half] <= z else 0
                size -= half
            if low + 1 < leaves.size and leaves[low + 1] <= last:
                for quarter in range(4):
                    cells[top, 0] = x + (side >> 1) * (quarter & 1)
                    cells[top, 1] = y + (side >> 1) * (quarter >> 1)
                    cells[top, 2] = bits - 1
                    top += 1
                continue
            if n == owners.size:
                owners, labels, covered = grown(owners, 2 * n), grown(labels, 2 * n), grown(covered, 2 * n)
            owners[n], labels[n] = boxes[i, 0], low
            covered[n] = x0 < x and x1 >= x + side and y0 < y and y1 >= y + side
            n += 1
        if n - first > most:
            n, first = first, -1
    return owners[:n].copy(), labels[:n].copy(), covered[:n].copy()


@kernel
def lay_out_nodes(labels):
    """The nodes over items whose labels (items × levels) are sorted; label 0 is "none", and a node none of whose items
    has a label is left out. Returns (level, child "none") of nodes, (node, label, child) of the rest, and the first
    item of each leaf, with the number of items at the end.
    """
    items, levels = labels.shape
    size = items * (levels + 1) + 2
    node_levels, nones = np.empty(size, np.int32), np.empty(size, np.int32)
    edges = np.empty((size, 3), np.int32)
    leaf_starts = np.empty(items + 2, np.int64)
    nodes = edge = leaves = 0
    todo = np.empty((size, 5), np.int64)  # begin, end, level, the edge to it (-1: none) and the node above
    todo[0] = (0, items, 0, -2, -1)
    top = 1
    while top:  # depth first and from the first item on, so that leaves come in the order of their items
        top -= 1
        begin, end, level, via, above = todo[top]
        while level < levels and labels[end - 1, level] == 0:
            level += 1
        if level == levels:
            reference = ~np.int32(leaves)
            leaf_starts[leaves] = begin
            leaves += 1
        else:
            reference = np.int32(nodes)
            node_levels[nodes] = level
            nones[nodes] = NONE
            nodes += 1
        if via == -1:
            nones[above] = reference
        elif via >= 0:
            edges[via, 2] = reference
        if level == levels:
            continue
        last = end
        while last > begin:  # runs of equal labels, the last first
            first = last - 1
            while first > begin and labels[first - 1, level] == labels[last - 1, level]:
                first -= 1
            label = labels[first, level]
            to = np.int64(-1)
            if label:
                edges[edge, 0], edges[edge, 1] = reference, label
                to = edge
                edge += 1
            todo[top] = (first, last, level + 1, to, reference)
            top += 1
            last = first
    leaf_starts[leaves] = items
    return (
        node_levels[:nodes].copy(), nones[:nodes].copy(), edges[:edge].copy(), leaf_starts[: leaves + 1].copy(),
    )  # fmt: skip


@kernel
def hash_children(edges, slots):
    """The open hash table of (node, label) → child."""
    keys, children = np.zeros(slots, np.uint64), np.full(slots, NONE, np.int32)
    shift = shift_of(slots)
    for i in range(edges.shape[0]):
        key = np.uint64(edges[i, 0]) << np.uint64(32) | np.uint64(edges[i, 1])
        slot = np.int64((key * SPREAD) >> shift)
        while children[slot] != NONE:
            slot = (slot + 1) & (slots - 1)
        keys[slot], children[slot] = key, edges[i, 2]
    return keys, children


@kernel
def hash_keys(keys, owners, labels, slots):
    """The open hash table of (key, owner) → label, which is never 0."""
    out, out_owners = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    out_labels = np.zeros(slots, np.int32)
    shift = shift_of(slots)
    for i in range(keys.size):
        slot = np.int64((keys[i] * SPREAD + np.uint64(owners[i]) * OWNERS) >> shift)
        while out_labels[slot]:
            slot = (slot + 1) & (slots - 1)
        out[slot], out_owners[slot], out_labels[slot] = keys[i], owners[i], labels[i]
    return out, out_owners, out_labels
