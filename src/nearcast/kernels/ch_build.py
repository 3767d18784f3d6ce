"""Laying out a CH-tree: the quadtree of its ranges, the leaves that a range overlaps, and the nodes."""

import numpy as np
from numba import njit

from nearcast.kernels.ch_tree import NONE, OUTSIDE, first_slot

DEPTH = 24


@njit(cache=True, nogil=True, inline="always")
def touches(box, west, south, east, north):
    """Whether a closed box, which may cross the antimeridian, and a closed rectangle have a place in common."""
    if box[1] > north or box[3] < south:
        return False
    if box[0] <= box[2]:
        return box[0] <= east and box[2] >= west
    return box[0] <= east or box[2] >= west


@njit(cache=True, nogil=True, inline="always")
def covers(box, west, south, east, north):
    """Whether all of a rectangle is in a box."""
    if box[1] > south or box[3] < north:
        return False
    if box[0] <= box[2]:
        return box[0] <= west and box[2] >= east
    return box[0] <= west or box[2] >= east


@njit(cache=True, nogil=True)
def grow_quadtree(boxes, root, most, leaves):
    """The quadtree that boxes make: a leaf that overlaps more than `most` of them is divided while that helps and
    there are fewer than `leaves`. A node has four children: a node, or the complement of a leaf's label.
    """
    quarters = np.empty((leaves, 4), np.int32)
    nodes, labels = 1, OUTSIDE + 4
    for quarter in range(4):
        quarters[0, quarter] = ~np.int32(OUTSIDE + 1 + quarter)
    slots = np.empty((4 * leaves + 8, 3), np.int64)  # leaves to be looked at: node, quarter, depth
    areas = np.empty((4 * leaves + 8, 4))
    todo = np.int64(0)
    for quarter in range(4):
        todo = push_quarter(slots, areas, todo, 0, quarter, 1, root)
    done = np.int64(0)
    while done < todo and labels + 3 < leaves:  # breadth first, so that all crowded places get their share
        node, quarter, depth = slots[done]
        area = areas[done]
        done += 1
        inside, partly = 0, 0
        for i in range(boxes.shape[0]):
            if touches(boxes[i], area[0], area[1], area[2], area[3]):
                inside += 1
                partly += not covers(boxes[i], area[0], area[1], area[2], area[3])
        if inside <= most or 4 * partly <= inside or depth >= DEPTH:  # covered boxes would only be repeated
            continue
        label = ~quarters[node, quarter]
        quarters[node, quarter] = nodes
        for q in range(4):
            quarters[nodes, q] = ~np.int32(label if q == 0 else labels + q)
            todo = push_quarter(slots, areas, todo, nodes, q, depth + 1, area)
        labels += 3
        nodes += 1
    return quarters[:nodes].copy()


@njit(cache=True, nogil=True)
def push_quarter(slots, areas, todo, node, quarter, depth, area):
    slots[todo, 0], slots[todo, 1], slots[todo, 2] = node, quarter, depth
    middle, centre = (area[0] + area[2]) / 2.0, (area[1] + area[3]) / 2.0
    areas[todo, 0] = middle if quarter & 1 else area[0]
    areas[todo, 2] = area[2] if quarter & 1 else middle
    areas[todo, 1] = centre if quarter & 2 else area[1]
    areas[todo, 3] = area[3] if quarter & 2 else centre
    return todo + 1


@njit(cache=True, nogil=True)
def leaves_of_boxes(boxes, root, quarters, most):
    """(box, label, whether the box covers the leaf) of each leaf that a box overlaps, OUTSIDE where it sticks out; none
    of a box with more than `most`.
    """
    owners, labels = np.empty(4 * boxes.shape[0] + 16, np.int64), np.empty(4 * boxes.shape[0] + 16, np.int64)
    covered = np.empty(owners.size, np.bool_)
    stack, areas = np.empty(4 * DEPTH + 8, np.int64), np.empty((4 * DEPTH + 8, 4))
    n = 0
    for box in range(boxes.shape[0]):
        first = n
        if not covers(root, boxes[box, 0], boxes[box, 1], boxes[box, 2], boxes[box, 3]) or boxes[box, 0] > boxes[box, 2]:
            if n == owners.size:
                owners, labels, covered = longer(owners), longer(labels), longer(covered)
            owners[n], labels[n], covered[n] = box, OUTSIDE, False
            n += 1
        top = 0
        if touches(boxes[box], root[0], root[1], root[2], root[3]):
            stack[0] = 0
            areas[0] = root
            top = 1
        while top and n - first <= most:
            top -= 1
            node = stack[top]
            west, south, east, north = areas[top]
            middle, centre = (west + east) / 2.0, (south + north) / 2.0
            for quarter in range(4):
                w, e = (middle, east) if quarter & 1 else (west, middle)
                s, t = (centre, north) if quarter & 2 else (south, centre)
                if not touches(boxes[box], w, s, e, t):
                    continue
                child = np.int64(quarters[node, quarter])
                if child >= 0:
                    stack[top] = child
                    areas[top, 0], areas[top, 1], areas[top, 2], areas[top, 3] = w, s, e, t
                    top += 1
                    continue
                if n == owners.size:
                    owners, labels, covered = longer(owners), longer(labels), longer(covered)
                owners[n], labels[n], covered[n] = box, ~child, covers(boxes[box], w, s, e, t)
                n += 1
        if n - first > most:
            n = first
    return owners[:n].copy(), labels[:n].copy(), covered[:n].copy()


@njit(cache=True, nogil=True)
def longer(values):
    out = np.empty(2 * values.size, values.dtype)
    out[: values.size] = values
    return out


@njit(cache=True, nogil=True)
def lay_out_nodes(labels):
    """The nodes over items whose labels (items × levels) are sorted; label 0 is "none", and a node none of whose items
    has a label is left out. Returns (level, child "none") of nodes, (node, label, child) of the rest, and the first item
    of each leaf with the number of items at the end.
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


@njit(cache=True, nogil=True)
def hash_children(edges, slots):
    """The open hash table of (node, label) → child."""
    keys, children = np.zeros(slots, np.uint64), np.full(slots, NONE, np.int32)
    for i in range(edges.shape[0]):
        key = np.uint64(edges[i, 0]) << np.uint64(32) | np.uint64(edges[i, 1])
        slot = first_slot(key, slots)
        while children[slot] != NONE:
            slot = (slot + 1) & (slots - 1)
        keys[slot], children[slot] = key, edges[i, 2]
    return keys, children


@njit(cache=True, nogil=True)
def hash_keys(keys, owners, labels, slots):
    """The open hash table of (key, owner) → label, which is never 0."""
    out, out_owners = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    out_labels = np.zeros(slots, np.int32)
    for i in range(keys.size):
        slot = first_slot(keys[i], slots)
        while out_labels[slot]:
            slot = (slot + 1) & (slots - 1)
        out[slot], out_owners[slot], out_labels[slot] = keys[i], owners[i], labels[i]
    return out, out_owners, out_labels
