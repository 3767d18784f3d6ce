"""Which posts of some blocks are in a region and a time, as bits: two words of 64 for each block."""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import in_region
from nearcast.common.kernels.packing import DECIMALS, integer_at, place_at
from nearcast.common.kernels.sorting import lower_bound
from nearcast.storage.posts.kernels.blocks import APART, BLOCK, COVERS, relation, time_relation
from nearcast.storage.posts.kernels.head_words import ALL, HALF, ONE, ones

BEYOND = 200.0  # no place has such a coordinate


@kernel
def mark_inside(first, last, rows, tree, posts, gone, asked, edges, inside):
    """Mark the posts of the blocks [first, last) that are asked for: (how many they are, how many had to be looked at).
    `edges` are those of the region (`edges_of`).
    """
    found, looked = np.int64(0), np.int64(0)
    for block in range(first, last):
        begin, end = block * BLOCK, min(rows, (block + 1) * BLOCK)
        meets, in_time = relations(block, tree, asked)
        looked += 0 if meets == APART or (meets == COVERS and in_time == COVERS) else end - begin
        for side in range(2):
            some = _marked(begin + side * HALF, end, meets, in_time, posts, gone, asked, edges)
            inside[block - first, side] = some
            found += np.int64(ones(some))
    return found, looked


@kernel
def relations(node, tree, asked):
    """Those of place and time to a node; that of place is APART if either is."""
    boxes, times, _ = tree
    kind, west, south, east, north, shape, since, until = asked
    in_time = time_relation(since, until, times[2 * node], times[2 * node + 1])
    if in_time == APART:
        return APART, in_time
    return relation(kind, west, south, east, north, shape, boxes[4 * node : 4 * node + 4]), in_time


@kernel
def _marked(begin, end, meets, in_time, posts, gone, asked, edges):
    """The bits of the posts [begin, begin + HALF) that are asked for, of which `end` bounds those there are."""
    if meets == APART or end <= begin:
        return np.uint64(0)
    fixed, exact, ts_data, ts_width, ts_base, _, _ = posts
    kind, west, south, east, north, shape, since, until = asked
    count = min(end - begin, HALF)
    some = ALL >> np.uint64(HALF - count)
    if meets != COVERS:
        some = _in_box(fixed, begin, count, edges[1]) if fixed.size else _in_box(exact, begin, count, edges[0])
    exactly = meets != COVERS and kind > 1
    left = some if exactly or in_time != COVERS else np.uint64(0)
    while left:
        bit = left & (~left + ONE)
        left ^= bit
        row = begin + np.int64(ones(bit - ONE))
        take = True
        if in_time != COVERS:
            ts = integer_at(ts_data, ts_width, ts_base, row)
            take = since <= ts < until
        if take and exactly:
            lon, lat = place_at(fixed, exact, row)
            take = in_region(kind, west, south, east, north, shape, 0, shape.size, lon, lat)
        if not take:
            some ^= bit
    for i in range(lower_bound(gone, begin), lower_bound(gone, begin + count)):
        some &= ~(ONE << np.uint64(gone[i] - begin))
    return some


@kernel
def _in_box(places, begin, count, edges):
    """The bits of the places within bounds: no branch, so that the processor takes several at a time."""
    west, south, east, north, over = edges
    some = np.uint64(0)
    for i in range(count):
        lon, lat = places[np.uint64(2 * (begin + i))], places[np.uint64(2 * (begin + i) + 1)]
        take = (((lon >= west) & (lon <= east)) != over) & (lat >= south) & (lat <= north)
        some |= np.uint64(take) << np.uint64(i)
    return some


@kernel
def edges_of(west, south, east, north):
    """Bounds as `_in_box` takes them, of places as they are and as integers over DECIMALS: (west, south, east, north,
    whether it is the places between west and east that are outside, as over the antimeridian).
    """
    over = west > east
    if over:
        west, east = np.nextafter(east, np.inf), np.nextafter(west, -np.inf)
    least_lon, least_lat = _least_fixed(west), _least_fixed(south)
    most_lon = _least_fixed(np.nextafter(east, np.inf)) - np.int32(1)
    most_lat = _least_fixed(np.nextafter(north, np.inf)) - np.int32(1)
    return (west, south, east, north, over), (least_lon, least_lat, most_lon, most_lat, over)


@kernel
def _least_fixed(value):
    """The least integer that is not below a value when divided by DECIMALS."""
    near = np.int32(math.floor(min(max(value, -BEYOND), BEYOND) * DECIMALS) - 2)
    while near / DECIMALS < value and near < BEYOND * DECIMALS:
        near += np.int32(1)
    return np.int32(near)
