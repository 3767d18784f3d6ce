"""Counting in how many posts of a region each word occurs: the sum of the tables of the nodes it covers and of the
posts along its border (seed 000 §6.2).
"""

import numpy as np
from numba import njit

from nearcast.kernels.blocks import APART, BLOCK, COVERS, FAN, relation, time_relation
from nearcast.kernels.check import is_among
from nearcast.kernels.counting import TABLE_LEVEL, add_table, count_repeating, count_run, count_single
from nearcast.kernels.forward import post_at
from nearcast.kernels.half_bytes import SPAN, add_halves
from nearcast.kernels.packing import integer_at, place_at
from nearcast.kernels.regions import in_region
from nearcast.kernels.sorting import lower_bound
from nearcast.kernels.varint import get


@njit(cache=True, nogil=True)
def count_region(
    rows, fixed, exact, ts_data, ts_width, ts_base, data, starts, gone, boxes, times, levels, tables, table_starts,
    halves, beyond, beyond_starts, kind, west, south, east, north, shape, since, until, counts,
):  # fmt: skip
    """Add the words of all posts in a region and a time: (posts, posts counted one by one, tables added).

    The small tables are of use where `counts` has no more codes than they have.
    """
    top = levels.size - 2
    first_table = min(TABLE_LEVEL, top)
    posts, singly, added = np.int64(0), np.int64(0), np.int64(0)
    rest = np.int64(counts.size) - 1
    small = beyond_starts.size > 1 and rest <= 2 * (halves.size // (beyond_starts.size - 1))
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
        in_time = time_relation(since, until, times[2 * node], times[2 * node + 1])
        if in_time == APART:
            continue
        meets = relation(kind, west, south, east, north, shape, boxes[4 * node : 4 * node + 4])
        if meets == APART:
            continue
        place = node - levels[level]
        span = np.int64(BLOCK) << (3 * level)
        begin, end = place * span, min(rows, (place + 1) * span)
        covered = meets == COVERS and in_time == COVERS
        number = node - levels[first_table]
        has_table = covered and first_table <= level < top and number + 1 < table_starts.size
        if has_table or (covered and small and 1 <= level <= first_table):
            if has_table:
                add_table(tables, table_starts[number], table_starts[number + 1], counts)
                added += 1
            else:
                first, last = begin // SPAN, (end + SPAN - 1) // SPAN
                add_halves(halves, beyond, beyond_starts, first, last, counts)
                added += last - first
            posts += end - begin
            for i in range(lower_bound(gone, begin), lower_bound(gone, end)):
                count_single(data, starts, gone[i], counts, np.int32(-1))
                posts -= 1
            continue
        if level and (not covered or level > first_table):
            below = levels[level - 1]
            first = below + place * FAN
            for child in range(min(levels[level], first + FAN) - 1, first - 1, -1):
                stack[height] = child
                stack_level[height] = level - 1
                height += 1
            continue
        singly += end - begin
        if covered and not gone.size:
            count_run(data, post_at(data, starts, begin), end - begin, counts)
            posts += end - begin
            continue
        at = post_at(data, starts, begin)
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
            if not take:
                at = stop
                continue
            posts += 1
            if head & 1:
                count_repeating(data, at, stop, counts, np.int32(1))
                at = stop
            while at < stop:
                code, at = get(data, at)
                counts[np.uint64(code if code < rest else rest)] += np.int32(1)
    return posts, singly, added
