"""Counting in how many posts of a region each word occurs: the sum of the tables of the nodes it covers and of the
posts along its border (SSTD §6.2).

Whoever wants few words need not have all counts exact. Then a node on the border counts by its small table as a whole,
less its posts outside as far as the HEAD most frequent words go: those are exact, of all others there are at most so
many. Only where few posts of a node are inside they are read.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import in_region
from nearcast.common.kernels.packing import integer_at, place_at
from nearcast.common.kernels.sorting import lower_bound
from nearcast.common.kernels.varint import get
from nearcast.storage.posts.kernels.blocks import APART, BLOCK, COVERS, FAN
from nearcast.storage.posts.kernels.check import is_among
from nearcast.storage.posts.kernels.counting import TABLE_LEVEL, add_table, count_repeating, count_run, count_single
from nearcast.storage.posts.kernels.forward import post_at
from nearcast.storage.posts.kernels.half_bytes import (
    COMMON,
    FREQUENT,
    SPAN,
    WIDE_LEVEL,
    add_halves,
    add_several,
    add_wide,
    pour,
)
from nearcast.storage.posts.kernels.head_words import HALF, ONE, ones, subtract_heads
from nearcast.storage.posts.kernels.inside import edges_of, mark_inside, relations

ADD, SUBTRACT = np.int32(1), np.int32(-1)
FEW_INSIDE = 24  # posts of a node, which take no longer to read than its table and bits


@kernel
def count_region(rows, posts, gone, tree, tables, asked, at_most, counts):
    """Add the words of all posts in a region and a time: (posts, posts looked at one by one, tables added, nodes of
    which words beyond the HEAD were counted by their tables as a whole, in how many posts any one word occurs at most
    that `counts` has no place for).

    The small tables are of use where `counts` has no more codes than they have; it may have as many, or the COMMON.
    With `at_most` words beyond the HEAD may be counted too high.
    """
    _, _, _, _, _, words, word_starts = posts
    _, _, levels = tree
    _, west, south, east, north, _, _, _ = asked
    every, table_starts, halves, tops, beyond, beyond_starts, several, wide, heads, rare = tables
    edges = edges_of(west, south, east, north)
    top = levels.size - 2
    first_table = min(TABLE_LEVEL, top)
    total, singly, added, loose, uncounted = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
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
        meets, in_time = relations(node, tree, asked)
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
                add_table(every, table_starts[number], table_starts[number + 1], counts)
                added += 1
            elif level >= WIDE_LEVEL:
                added += add_wide(wide, half, first, last, counts)
            elif level == WIDE_LEVEL - 1 and counts.size - 1 <= COMMON:
                add_several(several, half, place, counts)
                added += 1
            else:
                waiting = add_halves(halves, tops, beyond, beyond_starts, first, last, counts, sums, waiting)
                added += last - first
            total += end - begin - _without_deleted(words, word_starts, gone, begin, end, counts)
            continue
        first = levels[max(level - 1, 0)] + place * FAN
        last = min(levels[level], first + FAN)
        if level == 1 and small and at_most:
            here, looked = mark_inside(first, last, rows, tree, posts, gone, asked, edges, inside)
            total += here
            singly += looked
            if here <= FEW_INSIDE:
                for block in range(first, last):
                    for side in range(2):
                        some = inside[block - first, side]
                        _count_some(words, word_starts, block * BLOCK + side * HALF, some, counts)
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
        total += _count_block(begin, end, meets, in_time, posts, gone, asked, counts)
    if waiting:
        pour(sums, counts)
    return total, singly, added, loose, uncounted


@kernel
def _without_deleted(words, word_starts, gone, begin, end, counts):
    """Subtract the words of the deleted posts among [begin, end); returns how many they are."""
    first, last = lower_bound(gone, begin), lower_bound(gone, end)
    for i in range(first, last):
        count_single(words, word_starts, gone[i], counts, SUBTRACT)
    return last - first


@kernel
def _count_block(begin, end, meets, in_time, posts, gone, asked, counts):
    """Add the words of the posts [begin, end) that are asked for; returns how many are."""
    covered = meets == COVERS and in_time == COVERS
    fixed, exact, ts_data, ts_width, ts_base, data, starts = posts
    kind, west, south, east, north, shape, since, until = asked
    at = post_at(data, starts, begin)
    if covered and not gone.size:
        count_run(data, at, end - begin, counts, ADD)
        return end - begin
    rest = np.int64(counts.size) - 1
    taken = np.int64(0)
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
        taken += take
        if not take:
            at = stop
            continue
        if head & 1:
            count_repeating(data, at, stop, counts, ADD)
            at = stop
        while at < stop:
            code, at = get(data, at)
            counts[np.uint64(code if code < rest else rest)] += ADD
    return taken


@kernel
def _count_some(words, word_starts, begin, some, counts):
    """Add the words of the posts whose bits are set."""
    while some:
        bit = some & (~some + ONE)
        some ^= bit
        count_single(words, word_starts, begin + np.int64(ones(bit - ONE)), counts, ADD)
