"""The nearest posts: nodes of the tree are opened nearest first, until none can hold a post among the k best.

`best` holds the k least distances so far, the greatest first, and is shared by all segments of a search: what the first
finds is the radius by which the rest are pruned (SSTD §6.2).
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import haversine_km, in_region
from nearcast.common.kernels.packing import integer_at, place_at
from nearcast.storage.posts.kernels.blocks import APART, BLOCK, FAN, least_distance_km, relation, time_relation
from nearcast.storage.posts.kernels.check import has_words, is_among
from nearcast.storage.posts.kernels.postings import rows_in_runs


@kernel
def lower_to(best, distance):
    """Put a distance in the place of the greatest: a heap."""
    root = 0
    while True:
        child = 2 * root + 1
        if child >= best.size:
            break
        if child + 1 < best.size and best[child + 1] > best[child]:
            child += 1
        if best[child] <= distance:
            break
        best[root] = best[child]
        root = child
    best[root] = distance


@kernel
def _push(keys, nodes, height, key, node):
    at = height
    while at:
        parent = (at - 1) >> 1
        if keys[parent] <= key:
            break
        keys[at] = keys[parent]
        nodes[at] = nodes[parent]
        at = parent
    keys[at] = key
    nodes[at] = node


@kernel
def _pop(keys, nodes, height):
    """Move the least out of the heap's first `height` places; it is at place height - 1 afterwards."""
    last = height - 1
    key, node = keys[0], nodes[0]
    moved, moved_node = keys[last], nodes[last]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        if child + 1 < last and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= moved:
            break
        keys[at] = keys[child]
        nodes[at] = nodes[child]
        at = child
    keys[at] = moved
    nodes[at] = moved_node
    keys[last] = key
    nodes[last] = node


@kernel
def try_rows(rows, count, lon, lat, best, posts, gone, asked, code, out_rows, out_km, found):
    """Append those of rows[:count] that satisfy everything and are no farther than the k-th best."""
    fixed, exact, ts_data, ts_width, ts_base, words, word_starts = posts
    kind, west, south, east, north, shape, since, until = asked
    terms = np.empty(64, np.uint64)
    scratch = np.empty(64, np.uint64)
    looked = 0
    for i in range(count):
        row = rows[i]
        x, y = place_at(fixed, exact, row)
        if abs(y - lat) * 111.0 > best[0]:  # a degree of latitude is 111.19 km
            continue
        km = haversine_km(lon, lat, x, y)
        if km > best[0]:
            continue
        looked += 1
        ts = integer_at(ts_data, ts_width, ts_base, row)
        if ts < since or ts >= until:
            continue
        if kind and not in_region(kind, west, south, east, north, shape, 0, shape.size, x, y):
            continue
        if code.size:
            ok, terms, scratch = has_words(code, words, word_starts, row, terms, scratch)
            if not ok:
                continue
        if is_among(gone, row):
            continue
        lower_to(best, km)
        if found == out_rows.size:
            more_rows = np.empty(2 * found, np.int64)
            more_rows[:found] = out_rows[:found]
            out_rows = more_rows
            more_km = np.empty(2 * found, np.float64)
            more_km[:found] = out_km[:found]
            out_km = more_km
        out_rows[found] = row
        out_km[found] = km
        found += 1
    return out_rows, out_km, found, looked


@kernel
def nearest_among(rows, lon, lat, best, posts, gone, asked, code):
    """(rows, distances, candidates) of given rows: all that may be among the k nearest."""
    out_rows, out_km = np.empty(64, np.int64), np.empty(64)
    out_rows, out_km, found, looked = try_rows(
        rows, rows.size, lon, lat, best, posts, gone, asked, code, out_rows, out_km, 0
    )
    return out_rows[:found], out_km[:found], looked


@kernel
def nearest_in_tree(rows, lon, lat, best, drivers, lists, tree, posts, gone, asked, code):
    """(rows, distances, candidates, blocks opened), best first over the tree.

    `drivers` are the codes of which a post must have at least one, -1 alone if there is no such: then every post of a
    block is tried.
    """
    boxes, times, levels = tree
    kind, west, south, east, north, shape, since, until = asked
    out_rows, out_km, found = np.empty(64, np.int64), np.empty(64, np.float64), 0
    looked, opened = np.int64(0), np.int64(0)
    keys = np.empty(1024, np.float64)
    nodes = np.empty(1024, np.int64)
    height = 0
    if rows:
        root = levels[levels.size - 2]
        keys[0] = least_distance_km(lon, lat, boxes[4 * root : 4 * root + 4])
        nodes[0] = root
        height = 1
    wanted = np.empty(BLOCK, np.int64)
    marked = np.zeros(BLOCK, np.bool_)
    begins, ends = np.empty(1, np.int64), np.empty(1, np.int64)
    while height:
        _pop(keys, nodes, height)
        height -= 1
        node = nodes[height]
        if keys[height] > best[0]:
            break
        level = 0
        while node >= levels[level + 1]:
            level += 1
        if level:
            first = levels[level - 1] + (node - levels[level]) * FAN
            for child in range(first, min(levels[level], first + FAN)):
                if time_relation(since, until, times[2 * child], times[2 * child + 1]) == APART:
                    continue
                box = boxes[4 * child : 4 * child + 4]
                if kind and relation(kind, west, south, east, north, shape, box) == APART:
                    continue
                key = least_distance_km(lon, lat, box)
                if key > best[0]:
                    continue
                if height == keys.size:
                    more_keys = np.empty(2 * height, np.float64)
                    more_keys[:height] = keys
                    keys = more_keys
                    more_nodes = np.empty(2 * height, np.int64)
                    more_nodes[:height] = nodes
                    nodes = more_nodes
                _push(keys, nodes, height, key, child)
                height += 1
            continue
        opened += 1
        begin, end = node * BLOCK, min(rows, (node + 1) * BLOCK)
        n = 0
        if drivers[0] < 0:
            for row in range(begin, end):
                wanted[n] = row
                n += 1
        else:
            begins[0], ends[0] = begin, end
            marked[:] = False
            for i in range(drivers.size):
                having, _ = rows_in_runs(drivers[i], lists, begins, ends)
                for j in range(having.size):
                    marked[having[j] - begin] = True
            for j in range(end - begin):
                if marked[j]:
                    wanted[n] = begin + j
                    n += 1
        out_rows, out_km, found, tried = try_rows(
            wanted, n, lon, lat, best, posts, gone, asked, code, out_rows, out_km, found
        )
        looked += tried
    return out_rows[:found], out_km[:found], looked, opened
