"""Counting in how many posts of a region each word occurs: the sum of the tables of the nodes it covers and of the
posts along its border (seed 000 §6.2).

A node that has a small table and is mostly covered is counted by what it is not: its table less the posts outside.
"""

import numpy as np
from numba import njit

from nearcast.kernels.blocks import APART, BLOCK, COVERS, FAN, relation, time_relation
from nearcast.kernels.check import is_among
from nearcast.kernels.counting import TABLE_LEVEL, add_table, count_repeating, count_run, count_single
from nearcast.kernels.forward import post_at
from nearcast.kernels.half_bytes import SPAN, WIDE_LEVEL, add_halves, add_wide, pour
from nearcast.kernels.packing import integer_at, place_at
from nearcast.kernels.regions import in_region
from nearcast.kernels.sorting import lower_bound
from nearcast.kernels.varint import get

ADD, SUBTRACT = np.int32(1), np.int32(-1)


@njit(cache=True, nogil=True)
def count_region(
    rows, fixed, exact, ts_data, ts_width, ts_base, data, starts, gone, boxes, times, levels, tables, table_starts,
    halves, beyond, beyond_starts, wide, kind, west, south, east, north, shape, since, until, counts,
):  # fmt: skip
    """Add the words of all posts in a region and a time: (posts, posts counted one by one, tables added).

    The small tables are of use where `counts` has no more codes than they have.
    """
    columns = (fixed, exact, ts_data, ts_width, ts_base, data, starts, gone)
    asked = (kind, west, south, east, north, shape, since, until)
    top = levels.size - 2
    first_table = min(TABLE_LEVEL, top)
    posts, singly, added = np.int64(0), np.int64(0), np.int64(0)
    half = halves.size // max(beyond_starts.size - 1, 1)
    small = beyond_starts.size > 1 and counts.size - 1 <= 2 * half
    sums, waiting = np.zeros(2 * half if small else 0, np.uint8), np.int64(0)
    of_blocks = np.empty((FAN, 2), np.int64)
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
        number = node - levels[first_table]
        has_table = first_table <= level < top and number + 1 < table_starts.size
        if covered and ((small and level) or has_table):
            first, last = begin // SPAN, (end + SPAN - 1) // SPAN
            if not small:
                add_table(tables, table_starts[number], table_starts[number + 1], counts)
                added += 1
            elif level >= WIDE_LEVEL:
                added += add_wide(wide, half, first, last, counts)
            else:
                waiting = add_halves(halves, beyond, beyond_starts, first, last, counts, sums, waiting)
                added += last - first
            posts += end - begin - _without_deleted(data, starts, gone, begin, end, counts)
            continue
        first = levels[max(level - 1, 0)] + place * FAN
        last = min(levels[level], first + FAN)
        if level == 1 and small and _mostly_covered(first, last, boxes, times, asked, of_blocks):
            waiting = add_halves(halves, beyond, beyond_starts, place, place + 1, counts, sums, waiting)
            added += 1
            for block in range(first, last):
                begin, end = block * BLOCK, min(rows, (block + 1) * BLOCK)
                meets, in_time = of_blocks[block - first]
                if meets == COVERS and in_time == COVERS:
                    posts += end - begin - _without_deleted(data, starts, gone, begin, end, counts)
                    continue
                singly += end - begin
                if meets == APART:
                    count_run(data, post_at(data, starts, begin), end - begin, counts, SUBTRACT)
                    continue
                posts += _count_block(begin, end, meets, in_time, columns, asked, False, counts)
            continue
        if level and (not covered or level > first_table):
            for child in range(last - 1, first - 1, -1):
                stack[height] = child
                stack_level[height] = level - 1
                height += 1
            continue
        singly += end - begin
        posts += _count_block(begin, end, meets, in_time, columns, asked, True, counts)
    if waiting:
        pour(sums, counts)
    return posts, singly, added


@njit(cache=True, nogil=True)
def _relations(node, boxes, times, asked):
    """Those of place and time to a node; that of place is APART if either is."""
    kind, west, south, east, north, shape, since, until = asked
    in_time = time_relation(since, until, times[2 * node], times[2 * node + 1])
    if in_time == APART:
        return APART, in_time
    return relation(kind, west, south, east, north, shape, boxes[4 * node : 4 * node + 4]), in_time


@njit(cache=True, nogil=True)
def _mostly_covered(first, last, boxes, times, asked, out):
    """Whether more of the blocks are covered than apart; those between take as long either way. Their relations are
    written down.
    """
    more = 0
    for block in range(first, last):
        meets, in_time = _relations(block, boxes, times, asked)
        out[block - first, 0], out[block - first, 1] = meets, in_time
        if meets == APART:
            more -= 1
        elif meets == COVERS and in_time == COVERS:
            more += 1
    return more > 0


@njit(cache=True, nogil=True)
def _without_deleted(data, starts, gone, begin, end, counts):
    """Subtract the words of the deleted posts among [begin, end); returns how many they are."""
    first, last = lower_bound(gone, begin), lower_bound(gone, end)
    for i in range(first, last):
        count_single(data, starts, gone[i], counts, SUBTRACT)
    return last - first


@njit(cache=True, nogil=True)
def _count_block(begin, end, meets, in_time, columns, asked, wanted, counts):
    """Add the words of the posts [begin, end) that are asked for, or, if they are not wanted, subtract those of the
    others; returns how many are asked for.
    """
    covered = meets == COVERS and in_time == COVERS
    fixed, exact, ts_data, ts_width, ts_base, data, starts, gone = columns
    kind, west, south, east, north, shape, since, until = asked
    at = post_at(data, starts, begin)
    if covered and not gone.size:
        count_run(data, at, end - begin, counts, ADD)
        return end - begin
    weight = ADD if wanted else SUBTRACT
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
        if take != wanted:
            at = stop
            continue
        if head & 1:
            count_repeating(data, at, stop, counts, weight)
            at = stop
        while at < stop:
            code, at = get(data, at)
            counts[np.uint64(code if code < rest else rest)] += weight
    return posts
