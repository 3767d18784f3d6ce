"""Counting in how many posts of a region each word occurs: the sum of the tables of the nodes it covers and of the
posts along its border (seed 000 §6.2).

Whoever wants few words need not have all counts exact. Then a node on the border counts by its small table as a whole,
less its posts outside as far as the HEAD most frequent words go: those are exact, of all others there are at most so
many. Only where few posts of a node are inside they are read.
"""

import math

import numpy as np
from numba import njit

from nearcast.kernels.blocks import APART, BLOCK, COVERS, FAN, relation, time_relation
from nearcast.kernels.check import is_among
from nearcast.kernels.counting import TABLE_LEVEL, add_table, count_repeating, count_run, count_single
from nearcast.kernels.forward import post_at
from nearcast.kernels.half_bytes import COMMON, FREQUENT, SPAN, WIDE_LEVEL, add_halves, add_several, add_wide, pour
from nearcast.kernels.head_words import ALL, HALF, ONE, ones, subtract_heads
from nearcast.kernels.packing import DECIMALS, integer_at, place_at
from nearcast.kernels.regions import in_region
from nearcast.kernels.sorting import lower_bound
from nearcast.kernels.varint import get

ADD, SUBTRACT = np.int32(1), np.int32(-1)
BEYOND = 200.0  # no place has such a coordinate
FEW_INSIDE = 24  # posts of a node, which take no longer to read than its table and bits


@njit(cache=True, nogil=True)
def count_region(
    rows, fixed, exact, ts_data, ts_width, ts_base, data, starts, gone, boxes, times, levels, tables, table_starts,
    halves, tops, beyond, beyond_starts, several, wide, heads, rare, kind, west, south, east, north, shape, since,
    until, at_most, counts,
):  # fmt: skip
    """Add the words of all posts in a region and a time: (posts, posts looked at one by one, tables added, nodes of
    which words beyond the HEAD were counted by their tables as a whole, in how many posts any one word occurs at most
    that `counts` has no place for).

    The small tables are of use where `counts` has no more codes than they have; it may have as many, or the COMMON.
    With `at_most` words beyond the HEAD may be counted too high.
    """
    columns = (fixed, exact, ts_data, ts_width, ts_base, data, starts, gone)
    asked = (kind, west, south, east, north, shape, since, until)
    edges, fixed_edges = _edges(west, south, east, north)
    top = levels.size - 2
    first_table = min(TABLE_LEVEL, top)
    posts, singly, added, loose, uncounted = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    half = halves.size // max(beyond_starts.size - 1, 1)
    small = beyond_starts.size > 1 and counts.size - 1 <= 2 * half
    sums, waiting = np.zeros(counts.size - 1 if small else 0, np.uint8), np.int64(0)
    beyond_common = np.int64(counts.size - 1 >= FREQUENT)
    inside = np.empty((FAN, 2), np.uint64)
    stack = np.empty(32 * FAN, np.int64)
    stack_level = np.empty(32 * FAN, np.int64)
    height = 0
    if rows:
        stack[0] = levels[top]
        stack_level[0] = top
        height = 1
    while height:
        height -= 1
        node, level = stack[height], stack_level[height]
        meets, in_time = _relations(node, boxes, times, asked)
        if meets == APART:
            continue
        covered = meets == COVERS and in_time == COVERS
        place = node - levels[level]
        span = np.int64(BLOCK) << (3 * level)
        begin, end = place * span, min(rows, (place + 1) * span)
        if small and (covered or level == min(top, 1)):
            for n in range(begin // SPAN, (end + SPAN - 1) // SPAN):
                uncounted += rare[2 * n + beyond_common]
        number = node - levels[first_table]
        has_table = first_table <= level < top and number + 1 < table_starts.size
        if covered and ((small and level) or has_table):
            first, last = begin // SPAN, (end + SPAN - 1) // SPAN
            if not small:
                add_table(tables, table_starts[number], table_starts[number + 1], counts)
                added += 1
            elif level >= WIDE_LEVEL:
                added += add_wide(wide, half, first, last, counts)
            elif level == WIDE_LEVEL - 1 and counts.size - 1 <= COMMON:
                add_several(several, half, place, counts)
                added += 1
            else:
                waiting = add_halves(halves, tops, beyond, beyond_starts, first, last, counts, sums, waiting)
                added += last - first
            posts += end - begin - _without_deleted(data, starts, gone, begin, end, counts)
            continue
        first = levels[max(level - 1, 0)] + place * FAN
        last = min(levels[level], first + FAN)
        if level == 1 and small and at_most:
            here = np.int64(0)
            for block in range(first, last):
                begin, end = block * BLOCK, min(rows, (block + 1) * BLOCK)
                meets, in_time = _relations(block, boxes, times, asked)
                singly += 0 if meets == APART or (meets == COVERS and in_time == COVERS) else end - begin
                for side in range(2):
                    some = _inside(begin + side * HALF, end, meets, in_time, columns, asked, edges, fixed_edges)
                    inside[block - first, side] = some
                    here += np.int64(ones(some))
            posts += here
            if here <= FEW_INSIDE:
                for block in range(first, last):
                    for side in range(2):
                        _count_some(data, starts, block * BLOCK + side * HALF, inside[block - first, side], counts)
                continue
            waiting = add_halves(halves, tops, beyond, beyond_starts, place, place + 1, counts, sums, waiting)
            added += 1
            loose += 1
            for block in range(first, last):
                low, high = ~inside[block - first, 0], ~inside[block - first, 1]
                if low or high:
                    subtract_heads(heads, block, low, high, counts)
            continue
        if level and (not covered or level > first_table):
            for child in range(last - 1, first - 1, -1):
                stack[height] = child
                stack_level[height] = level - 1
                height += 1
            continue
        singly += end - begin
        posts += _count_block(begin, end, meets, in_time, columns, asked, counts)
    if waiting:
        pour(sums, counts)
    return posts, singly, added, loose, uncounted


@njit(cache=True, nogil=True)
def _relations(node, boxes, times, asked):
    """Those of place and time to a node; that of place is APART if either is."""
    kind, west, south, east, north, shape, since, until = asked
    in_time = time_relation(since, until, times[2 * node], times[2 * node + 1])
    if in_time == APART:
        return APART, in_time
    return relation(kind, west, south, east, north, shape, boxes[4 * node : 4 * node + 4]), in_time


@njit(cache=True, nogil=True)
def _without_deleted(data, starts, gone, begin, end, counts):
    """Subtract the words of the deleted posts among [begin, end); returns how many they are."""
    first, last = lower_bound(gone, begin), lower_bound(gone, end)
    for i in range(first, last):
        count_single(data, starts, gone[i], counts, SUBTRACT)
    return last - first


@njit(cache=True, nogil=True)
def _count_block(begin, end, meets, in_time, columns, asked, counts):
    """Add the words of the posts [begin, end) that are asked for; returns how many are."""
    covered = meets == COVERS and in_time == COVERS
    fixed, exact, ts_data, ts_width, ts_base, data, starts, gone = columns
    kind, west, south, east, north, shape, since, until = asked
    at = post_at(data, starts, begin)
    if covered and not gone.size:
        count_run(data, at, end - begin, counts, ADD)
        return end - begin
    rest = np.int64(counts.size) - 1
    posts = np.int64(0)
    for row in range(begin, end):
        head, at = get(data, at)
        stop = at + (head >> 1)
        take = True
        if not covered:
            lon, lat = place_at(fixed, exact, row)
            take = south <= lat <= north
            over = lon >= west or lon <= east  # the antimeridian
            take = take and (west <= lon <= east if west <= east else over)
            if take and in_time != COVERS:
                ts = integer_at(ts_data, ts_width, ts_base, row)
                take = since <= ts < until
            if take and kind > 1:
                take = in_region(kind, west, south, east, north, shape, 0, shape.size, lon, lat)
        if take and gone.size:
            take = not is_among(gone, row)
        posts += take
        if not take:
            at = stop
            continue
        if head & 1:
            count_repeating(data, at, stop, counts, ADD)
            at = stop
        while at < stop:
            code, at = get(data, at)
            counts[np.uint64(code if code < rest else rest)] += ADD
    return posts


# -- posts inside, as bits ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _inside(begin, end, meets, in_time, columns, asked, edges, fixed_edges):
    """The bits of the posts [begin, begin + HALF) that are asked for, of which `end` bounds those there are."""
    if meets == APART or end <= begin:
        return np.uint64(0)
    fixed, exact, ts_data, ts_width, ts_base, _, _, gone = columns
    kind, west, south, east, north, shape, since, until = asked
    count = min(end - begin, HALF)
    some = ALL >> np.uint64(HALF - count)
    if meets != COVERS:
        some = _in_box(fixed, begin, count, fixed_edges) if fixed.size else _in_box(exact, begin, count, edges)
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


@njit(cache=True, nogil=True)
def _in_box(places, begin, count, edges):
    """The bits of the places within bounds: no branch, so that the processor takes several at a time."""
    west, south, east, north, over = edges
    some = np.uint64(0)
    for i in range(count):
        lon, lat = places[np.uint64(2 * (begin + i))], places[np.uint64(2 * (begin + i) + 1)]
        take = (((lon >= west) & (lon <= east)) != over) & (lat >= south) & (lat <= north)
        some |= np.uint64(take) << np.uint64(i)
    return some


@njit(cache=True, nogil=True)
def _edges(west, south, east, north):
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


@njit(cache=True, nogil=True)
def _least_fixed(value):
    """The least integer that is not below a value when divided by DECIMALS."""
    near = np.int32(math.floor(min(max(value, -BEYOND), BEYOND) * DECIMALS) - 2)
    while near / DECIMALS < value and near < BEYOND * DECIMALS:
        near += np.int32(1)
    return np.int32(near)


@njit(cache=True, nogil=True)
def _count_some(data, starts, begin, some, counts):
    """Add the words of the posts whose bits are set."""
    while some:
        bit = some & (~some + ONE)
        some ^= bit
        count_single(data, starts, begin + np.int64(ones(bit - ONE)), counts, ADD)
