"""Caching regions along the borders of quadtree nodes (STAR §4.2): which one covers an overlap, and its posts.

A node has eight *slots*: four sides and four corners. The *reach* of a place in a slot is its distance in degrees from
that side, or the square of that from that corner; a caching region is what lies within a reach. All reaches come from
`reach_of`, and rounding keeps their order, so a place in the overlap is never just outside a region that covers it.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.packing import place_at
from nearcast.common.kernels.sorting import lower_bound
from nearcast.kinds.aggregates.kernels.quadtree import node_box

SLOTS = 8
WEST, EAST, SOUTH, NORTH, SOUTH_WEST, SOUTH_EAST, NORTH_WEST, NORTH_EAST = range(SLOTS)
NO_REGION = -1.0


@kernel
def reach_of(slot, box, lon, lat):
    """How far a place of a node lies from a side or a corner."""
    if slot == WEST:
        return lon - box[0]
    if slot == EAST:
        return box[2] - lon
    if slot == SOUTH:
        return lat - box[1]
    if slot == NORTH:
        return box[3] - lat
    x = lon - box[0] if slot in (SOUTH_WEST, NORTH_WEST) else box[2] - lon
    y = lat - box[1] if slot in (SOUTH_WEST, SOUTH_EAST) else box[3] - lat
    return x * x + y * y


@kernel
def overlap_options(box, west, south, east, north, slots, needs):
    """The slots whose region could cover what a region's bounding box and a node have in common, and the reaches it
    needs; returns how many. One if the overlap lies along one side, three if at one corner, else none.
    """
    if west > east:  # across the antimeridian: the part that the node is in
        if box[2] >= west and box[0] <= east:
            return 0
        if box[2] >= west:
            east = 180.0
        else:
            west = -180.0
    low_x, high_x = max(west, box[0]), min(east, box[2])
    low_y, high_y = max(south, box[1]), min(north, box[3])
    if low_x > high_x or low_y > high_y:
        return 0
    at_west, at_east, at_south, at_north = low_x == box[0], high_x == box[2], low_y == box[1], high_y == box[3]
    wide, high = at_west and at_east, at_south and at_north
    if wide == high and wide:
        return 0
    if high and (at_west or at_east):
        slots[0] = WEST if at_west else EAST
        needs[0] = reach_of(slots[0], box, high_x if at_west else low_x, low_y)
        return 1
    if wide and (at_south or at_north):
        slots[0] = SOUTH if at_south else NORTH
        needs[0] = reach_of(slots[0], box, low_x, high_y if at_south else low_y)
        return 1
    if wide or high or at_west == at_east or at_south == at_north:
        return 0
    far_x, far_y = high_x if at_west else low_x, high_y if at_south else low_y
    slots[0] = SOUTH_WEST + (0 if at_west else 1) + (0 if at_south else 2)
    slots[1] = WEST if at_west else EAST
    slots[2] = SOUTH if at_south else NORTH
    for i in range(3):
        needs[i] = reach_of(slots[i], box, far_x, far_y)
    return 3


@kernel
def all_options(nodes, west, south, east, north):
    """`overlap_options` of many nodes: (number of the node, slot, need), a row each."""
    out_node, out_slot = np.empty(3 * nodes.size, np.int64), np.empty(3 * nodes.size, np.int64)
    out_need = np.empty(3 * nodes.size, np.float64)
    box, slots, needs = np.empty(4, np.float64), np.empty(3, np.int64), np.empty(3, np.float64)
    n = 0
    for i in range(nodes.size):
        node_box(nodes[i], box)
        for j in range(overlap_options(box, west, south, east, north, slots, needs)):
            out_node[n], out_slot[n], out_need[n] = i, slots[j], needs[j]
            n += 1
    return out_node[:n], out_slot[:n], out_need[:n]


@kernel
def reaches(fixed, exact, rows, nodes, of, slot):
    """The reach of each row in one slot of its node, nodes[of[row]]."""
    out = np.empty(rows.size, np.float64)
    box = np.empty(4, np.float64)
    last = np.int64(-1)
    for i in range(rows.size):
        if of[i] != last:
            last = of[i]
            node_box(nodes[last], box)
        lon, lat = place_at(fixed, exact, rows[i])
        out[i] = reach_of(slot, box, lon, lat)
    return out


@kernel
def gather(nodes, table, extents, used, tick, offsets, rows, held, west, south, east, north):
    """(candidate rows from cached regions, which of the nodes they answer).

    `table` are the nodes that have regions, sorted; `extents` (node × slot) how far each reaches; region r has the rows
    offsets[r] … offsets[r+1] in order of their reach, `held`. Of the regions that cover an overlap the one with fewest
    posts within it is taken, and only those posts.
    """
    answered = np.zeros(nodes.size, np.bool_)
    out = np.empty(256, np.int64)
    found = 0
    box, slots, needs = np.empty(4, np.float64), np.empty(3, np.int64), np.empty(3, np.float64)
    for i in range(nodes.size):
        at = lower_bound(table, nodes[i])
        if at == table.size or table[at] != nodes[i]:
            continue
        node_box(nodes[i], box)
        best, begin, end = np.int64(-1), np.int64(0), np.int64(0)
        for j in range(overlap_options(box, west, south, east, north, slots, needs)):
            if extents[at, slots[j]] < needs[j]:
                continue
            region = at * SLOTS + slots[j]
            first, low, high = offsets[region], offsets[region], offsets[region + 1]
            while low < high:  # past the last that is within the need
                middle = (low + high) >> 1
                if held[middle] <= needs[j]:
                    low = middle + 1
                else:
                    high = middle
            if best < 0 or low - first < end - begin:
                best, begin, end = region, first, low
        if best < 0:
            continue
        answered[i] = True
        used[best // SLOTS, best % SLOTS] = tick
        while found + end - begin > out.size:
            more = np.empty(2 * out.size, np.int64)
            more[:found] = out[:found]
            out = more
        out[found : found + end - begin] = rows[begin:end]
        found += end - begin
    return out[:found], answered
