"""Blocks of posts and the tree over them: bounding boxes and time bounds, FAN children a node.

Level 0 are the blocks, of BLOCK rows each, in row order; node i of a level has the children FAN·i … FAN·i + FAN - 1 of
the level below. The levels lie end to end, blocks first; `levels[l]` is where level l begins. Boxes never cross the
antimeridian.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.geometry import CIRCLE, EVERYWHERE, RADIANS, RECT, haversine_km, in_region
from nearcast.common.kernels.packing import integer_at, place_at

BLOCK = 128
FAN = 8
APART, MEETS, COVERS = 0, 1, 2

_SURE_KM = 1e-6  # far above the rounding of a distance


@kernel
def build_tree(fixed, exact, ts_data, ts_width, ts_base, rows):
    """(boxes of 4, times of 2, levels) of all nodes."""
    levels = np.zeros(32, np.int64)
    count = (rows + BLOCK - 1) // BLOCK
    top = 0
    total = count
    while count > 1:
        top += 1
        levels[top] = total
        count = (count + FAN - 1) // FAN
        total += count
    levels[top + 1] = total
    levels = levels[: top + 2].copy()
    boxes = np.empty(4 * total, np.float64)
    times = np.empty(2 * total, np.int64)
    for node in range(levels[1] if levels.size > 1 else 0):
        west, south, east, north = np.inf, np.inf, -np.inf, -np.inf
        low, high = np.int64(2**63 - 1), np.int64(-(2**63))
        for row in range(node * BLOCK, min(rows, (node + 1) * BLOCK)):
            lon, lat = place_at(fixed, exact, row)
            ts = integer_at(ts_data, ts_width, ts_base, row)
            west, east = min(west, lon), max(east, lon)
            south, north = min(south, lat), max(north, lat)
            low, high = min(low, ts), max(high, ts)
        boxes[4 * node], boxes[4 * node + 1], boxes[4 * node + 2], boxes[4 * node + 3] = west, south, east, north
        times[2 * node], times[2 * node + 1] = low, high
    for level in range(1, levels.size - 1):
        below = levels[level - 1]
        for node in range(levels[level], levels[level + 1]):
            first = below + (node - levels[level]) * FAN
            for child in range(first, min(levels[level], first + FAN)):
                if child == first:
                    for j in range(4):
                        boxes[4 * node + j] = boxes[4 * child + j]
                    for j in range(2):
                        times[2 * node + j] = times[2 * child + j]
                    continue
                for j in range(2):
                    boxes[4 * node + j] = min(boxes[4 * node + j], boxes[4 * child + j])
                    boxes[4 * node + 2 + j] = max(boxes[4 * node + 2 + j], boxes[4 * child + 2 + j])
                times[2 * node] = min(times[2 * node], times[2 * child])
                times[2 * node + 1] = max(times[2 * node + 1], times[2 * child + 1])
    return boxes, times, levels


@kernel
def relation(kind, west, south, east, north, shape, box):
    """Whether a region is apart from a box, certainly covers it, or may meet it."""
    if kind == EVERYWHERE:
        return COVERS
    if box[3] < south or box[1] > north:
        return APART
    within = south <= box[1] and box[3] <= north
    if west <= east:
        if box[2] < west or box[0] > east:
            return APART
        within = within and west <= box[0] and box[2] <= east
    else:
        if box[2] < west and box[0] > east:
            return APART
        within = within and (box[0] >= west or box[2] <= east)
    if kind == RECT:
        return COVERS if within else MEETS
    if kind == CIRCLE:
        if not within:
            return MEETS
        for j in range(2):
            # Up to a quarter turn away, a box is farthest at its corners.
            turn = abs(box[2 * j] - shape[0])
            if min(turn, 360.0 - turn) > 90.0:
                return MEETS
            for i in range(2):
                if haversine_km(shape[0], shape[1], box[2 * j], box[2 * i + 1]) > shape[2] - _SURE_KM:
                    return MEETS
        # A wider box has places on the far side of the earth, though its edges be near.
        inside = box[0] <= shape[0] <= box[2]
        wide = box[2] - box[0]
        return COVERS if wide < 180.0 or (inside and wide == 180.0) else MEETS
    start = 0
    while start < shape.size:  # a polygon: no edge near the box, so all of it lies on one side
        end = start + 1 + 2 * int(shape[start])
        x1, y1 = shape[end - 2], shape[end - 1]
        for i in range(start + 1, end, 2):
            x2, y2 = shape[i], shape[i + 1]
            if not (max(x1, x2) < box[0] or min(x1, x2) > box[2] or max(y1, y2) < box[1] or min(y1, y2) > box[3]):
                return MEETS
            x1, y1 = x2, y2
        start = end
    corner = in_region(kind, west, south, east, north, shape, 0, shape.size, box[0], box[1])
    return COVERS if corner else APART


@inlined
def time_relation(since, until, low, high):
    if high < since or low >= until:
        return APART
    return COVERS if since <= low and high < until else MEETS


@kernel
def least_distance_km(lon, lat, box):
    """A distance that no place of the box is nearer than, and hardly less than that of its nearest place."""
    if box[0] <= lon <= box[2]:
        if box[1] <= lat <= box[3]:
            return 0.0
        near = box[1] if lat < box[1] else box[3]
        return max(0.0, haversine_km(lon, lat, lon, near) * (1.0 - 1e-12) - _SURE_KM)
    best = np.inf
    for j in range(2):
        edge = box[2 * j]
        turn = abs(edge - lon)
        if turn > 180.0:
            turn = 360.0 - turn
        # Along a meridian the cosine of the distance is a sine of the latitude, with its peak here.
        peak = math.atan2(math.sin(lat * RADIANS), math.cos(lat * RADIANS) * math.cos(turn * RADIANS)) / RADIANS
        best = min(best, haversine_km(lon, lat, edge, box[1]), haversine_km(lon, lat, edge, box[3]))
        if box[1] < peak < box[3]:
            best = min(best, haversine_km(lon, lat, edge, peak))
    return max(0.0, best * (1.0 - 1e-12) - _SURE_KM)


@kernel
def runs_touched(rows, tree, asked, floor=0):
    """Runs of rows [begin, end) whose nodes of the level `floor`, blocks if it is 0, may hold what is asked for:
    (begins, ends, how many rows). `rows` is how many the segment has.
    """
    boxes, times, levels = tree
    kind, west, south, east, north, shape, since, until = asked
    begins = np.empty(64, np.int64)
    ends = np.empty(64, np.int64)
    n = 0
    total = np.int64(0)
    stack = np.empty(32 * FAN, np.int64)
    stack_level = np.empty(32 * FAN, np.int64)
    height = 0
    if rows:
        stack[0] = levels[levels.size - 2]
        stack_level[0] = levels.size - 2
        height = 1
    while height:
        height -= 1
        node, level = stack[height], stack_level[height]
        in_time = time_relation(since, until, times[2 * node], times[2 * node + 1])
        if in_time == APART:
            continue
        meets = relation(kind, west, south, east, north, shape, boxes[4 * node : 4 * node + 4])
        if meets == APART:
            continue
        place = node - levels[level]
        if level > floor and not (meets == COVERS and in_time == COVERS):
            below = levels[level - 1]
            first = below + place * FAN
            for child in range(min(levels[level], first + FAN) - 1, first - 1, -1):
                stack[height] = child
                stack_level[height] = level - 1
                height += 1
            continue
        span = np.int64(BLOCK) << (3 * level)
        begin, end = place * span, min(rows, (place + 1) * span)
        total += end - begin
        if n and ends[n - 1] == begin:
            ends[n - 1] = end
            continue
        if n == begins.size:
            begins = np.concatenate((begins, np.empty(n, np.int64)))
            ends = np.concatenate((ends, np.empty(n, np.int64)))
        begins[n] = begin
        ends[n] = end
        n += 1
    return begins[:n], ends[:n], total
