"""Searches in several segments by one call. `table` has a row for each segment (`index.segments`): how many posts it
has, how its times are packed, and of each of its arrays where it lies and how long it is. What they are is told in
`storage.posts.kernels.segment_arrays`.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mapped import array_at
from nearcast.storage.posts.kernels.blocks import APART, BLOCK, least_distance_km, relation, time_relation
from nearcast.storage.posts.kernels.counting import codes_from
from nearcast.storage.posts.kernels.nearest_posts import nearest_among, nearest_in_tree
from nearcast.storage.posts.kernels.range_search import driven_rows, range_rows
from nearcast.storage.posts.kernels.region_counts import count_region
from nearcast.storage.posts.kernels.vocabulary import find_term

ROWS, TS_WIDTH, TS_BASE, ARRAYS = 0, 1, 2, 3  # columns of a table; from ARRAYS on, an address and a size of each:
FIELDS = (
    ("counts", np.uint32),
    ("lists", np.uint8), ("list_starts", np.int64), ("skip_first", np.int64), ("skip_rows", np.int32),
    ("skip_at", np.uint32),
    ("boxes", np.float64), ("times", np.int64), ("levels", np.int64),
    ("fixed", np.int32), ("exact", np.float64), ("ts", np.uint8), ("forward", np.uint8), ("forward_starts", np.int64),
    ("terms", np.uint64), ("by_term", np.uint32),
    ("tables", np.uint8), ("table_starts", np.int64),
    ("halves", np.uint8), ("tops", np.uint16), ("beyond", np.uint8), ("beyond_starts", np.int64),
    ("several", np.uint16), ("wide", np.int32), ("heads", np.uint64), ("rare", np.uint16),
    ("gone", np.int64),
)  # fmt: skip
WIDTH = ARRAYS + 2 * len(FIELDS)
_LISTS, _TREE, _POSTS, _TERMS, _TABLES, _GONE = (
    ARRAYS + 2 * [name for name, _ in FIELDS].index(first)
    for first in ("counts", "boxes", "fixed", "terms", "tables", "gone")
)

IN_LISTS, IN_TREE, TOO_FAR = 0, 1, 2  # how the nearest were found
TRY, OPEN_BLOCK = 25, 1500  # nanoseconds: a post of a list, a block


@kernel
def _counts(row):
    return array_at(row[_LISTS], row[_LISTS + 1], np.uint32)


@kernel
def _lists(row):
    """The fields of `InvertedLists`."""
    return (
        array_at(row[_LISTS], row[_LISTS + 1], np.uint32),
        array_at(row[_LISTS + 2], row[_LISTS + 3], np.uint8),
        array_at(row[_LISTS + 4], row[_LISTS + 5], np.int64),
        array_at(row[_LISTS + 6], row[_LISTS + 7], np.int64),
        array_at(row[_LISTS + 8], row[_LISTS + 9], np.int32),
        array_at(row[_LISTS + 10], row[_LISTS + 11], np.uint32),
    )


@kernel
def _tree(row):
    """The fields of `BlockTree`."""
    return (
        array_at(row[_TREE], row[_TREE + 1], np.float64),
        array_at(row[_TREE + 2], row[_TREE + 3], np.int64),
        array_at(row[_TREE + 4], row[_TREE + 5], np.int64),
    )


@kernel
def _posts(row):
    """The fields of `PostArrays`."""
    return (
        array_at(row[_POSTS], row[_POSTS + 1], np.int32),
        array_at(row[_POSTS + 2], row[_POSTS + 3], np.float64),
        array_at(row[_POSTS + 4], row[_POSTS + 5], np.uint8),
        row[TS_WIDTH],
        row[TS_BASE],
        array_at(row[_POSTS + 6], row[_POSTS + 7], np.uint8),
        array_at(row[_POSTS + 8], row[_POSTS + 9], np.int64),
    )


@kernel
def _gone(row):
    return array_at(row[_GONE], row[_GONE + 1], np.int64)


@kernel
def _terms(row):
    return array_at(row[_TERMS], row[_TERMS + 1], np.uint64), array_at(row[_TERMS + 2], row[_TERMS + 3], np.uint32)


@kernel
def _tables(row):
    """The fields of `TermTables`."""
    return (
        array_at(row[_TABLES], row[_TABLES + 1], np.uint8),
        array_at(row[_TABLES + 2], row[_TABLES + 3], np.int64),
        array_at(row[_TABLES + 4], row[_TABLES + 5], np.uint8),
        array_at(row[_TABLES + 6], row[_TABLES + 7], np.uint16),
        array_at(row[_TABLES + 8], row[_TABLES + 9], np.uint8),
        array_at(row[_TABLES + 10], row[_TABLES + 11], np.int64),
        array_at(row[_TABLES + 12], row[_TABLES + 13], np.uint16),
        array_at(row[_TABLES + 14], row[_TABLES + 15], np.int32),
        array_at(row[_TABLES + 16], row[_TABLES + 17], np.uint64),
        array_at(row[_TABLES + 18], row[_TABLES + 19], np.uint16),
    )


@kernel
def within_reach(table, chosen, asked):
    """Which of the chosen segments have bounds that are not apart from the place and the time."""
    kind, west, south, east, north, shape, since, until = asked
    out = np.zeros(chosen.size, np.bool_)
    for n in range(chosen.size):
        row = table[chosen[n]]
        if row[ROWS]:
            boxes, times, levels = _tree(row)
            root = levels[levels.size - 2]
            out[n] = (
                time_relation(since, until, times[2 * root], times[2 * root + 1]) != APART
                and relation(kind, west, south, east, north, shape, boxes[4 * root : 4 * root + 4]) != APART
            )
    return out


@kernel
def codes_in(table, chosen, wanted):
    """The code of each wanted term in each of the chosen segments, -1 where it has none."""
    out = np.empty((chosen.size, wanted.size), np.int64)
    for n in range(chosen.size):
        terms, by_term = _terms(table[chosen[n]])
        for i in range(wanted.size):
            out[n, i] = find_term(terms, by_term, wanted[i])
    return out


@kernel
def _appended(out, size, more):
    """`out`, whose first `size` places are taken, with more behind them."""
    if size + more.size > out.size:
        larger = np.empty(2 * (size + more.size), out.dtype)
        larger[:size] = out[:size]
        out = larger
    out[size : size + more.size] = more
    return out


@kernel
def range_in(table, chosen, words, asked):
    """`range_rows` of each of the chosen segments: (rows end to end, where those of each begin, and of each its method,
    rows in the blocks touched, runs of those, candidates).
    """
    drivers, driver_bounds, codes, code_bounds, enough = words
    out = np.empty(256, np.int64)
    bounds = np.zeros(chosen.size + 1, np.int64)
    facts = np.empty((chosen.size, 4), np.int64)
    for n in range(chosen.size):
        row = table[chosen[n]]
        driving = drivers[driver_bounds[n] : driver_bounds[n + 1]]
        code = codes[code_bounds[n] : code_bounds[n + 1]]
        found, method, touched, runs, looked = range_rows(
            row[ROWS], driving, enough[n], _lists(row), _tree(row), _posts(row), _gone(row), asked, code
        )
        out = _appended(out, bounds[n], found)
        bounds[n + 1] = bounds[n] + found.size
        facts[n, 0], facts[n, 1], facts[n, 2], facts[n, 3] = method, touched, runs, looked
    return out[: bounds[-1]], bounds, facts


@kernel
def nearest_in(table, chosen, lon, lat, best, words, no_driver, asked):
    """The posts of the chosen segments that are no farther than the k-th best, `best[0]`, which is lowered as they are
    found: (rows end to end, distances, where those of each segment begin, and of each how, candidates, blocks opened).

    With a rare word its list is read whole; else the tree is opened nearest first. A list of n posts costs n, the tree
    k·N/n blocks. `no_driver` is -1 alone.
    """
    drivers, driver_bounds, codes, code_bounds, enough = words
    out, out_km = np.empty(256, np.int64), np.empty(256, np.float64)
    bounds = np.zeros(chosen.size + 1, np.int64)
    facts = np.zeros((chosen.size, 3), np.int64)
    whole = np.zeros(1, np.int64)
    for n in range(chosen.size):
        row = table[chosen[n]]
        bounds[n + 1] = bounds[n]
        tree = _tree(row)
        boxes, _, levels = tree
        root = levels[levels.size - 2]
        if least_distance_km(lon, lat, boxes[4 * root : 4 * root + 4]) > best[0]:
            facts[n, 0] = TOO_FAR
            continue
        size = row[ROWS]
        lists, posts, gone = _lists(row), _posts(row), _gone(row)
        driving = drivers[driver_bounds[n] : driver_bounds[n + 1]]
        code = codes[code_bounds[n] : code_bounds[n + 1]]
        counts, _, list_starts, _, _, _ = lists
        driven = list_starts.size > 0 and driving.size > 0
        rest = code[: 0 if enough[n] else code.size]
        frequency = np.float64(0)
        for i in range(driving.size):
            frequency += counts[driving[i]]
        if driven and frequency * TRY < best.size * size / max(1.0, frequency) / BLOCK * OPEN_BLOCK:
            candidates = driven_rows(driving, lists, whole, np.full(1, size))
            found, km, looked = nearest_among(candidates, lon, lat, best, posts, gone, asked, rest)
        else:
            facts[n, 0] = IN_TREE
            if not driven:
                driving, rest = no_driver, code
            found, km, looked, opened = nearest_in_tree(
                size, lon, lat, best, driving, lists, tree, posts, gone, asked, rest
            )
            facts[n, 2] = opened
        facts[n, 1] = looked
        out = _appended(out, bounds[n], found)
        out_km = _appended(out_km, bounds[n], km)
        bounds[n + 1] += found.size
    return out[: bounds[-1]], out_km[: bounds[-1]], bounds, facts


@kernel
def count_in(table, chosen, asked, at_most, counts, bounds):
    """`count_region` of each of the chosen segments, into its part of `counts`; of each what that returns.

    What is not counted cannot occur more often than in the whole segment either.
    """
    facts = np.empty((chosen.size, 5), np.int64)
    for n in range(chosen.size):
        row = table[chosen[n]]
        tables, totals = _tables(row), _counts(row)
        facts[n, 0], facts[n, 1], facts[n, 2], facts[n, 3], facts[n, 4] = count_region(
            row[ROWS], _posts(row), _gone(row), _tree(row), tables, asked, at_most, counts[bounds[n] : bounds[n + 1]]
        )
        rest = bounds[n + 1] - bounds[n] - 1
        most = np.int64(totals[rest]) if rest < totals.size else np.int64(0)
        facts[n, 4] = min(most, facts[n, 4]) if tables[-1].size else most
    return facts


@kernel
def greatest_in(counts, begins, ends, some):
    """The greatest count of each segment but the last, which is of all that it does not count; 0 if not of `some`."""
    out = np.zeros(some.size, np.int64)
    for n in range(some.size):
        most = np.int32(0)
        for i in range(begins[n], ends[n] - 1 if some[n] else 0):
            most = max(most, counts[np.uint64(i)])
        out[n] = most
    return out


@kernel
def terms_from(table, chosen, counts, begins, ends, least):
    """The terms that occur so often in one of the chosen segments, by what is least for it; some more than once."""
    out = np.empty(64, np.uint64)
    size = 0
    for n in range(chosen.size):
        row = table[chosen[n]]
        terms, _ = _terms(row)
        codes = codes_from(counts[begins[n] : ends[n]], _counts(row), least[n])
        out = _appended(out, size, terms[codes])
        size += codes.size
    return out[:size]


@kernel
def add_in(table, chosen, counts, begins, ends, wanted, sums):
    """Add the counts of the wanted terms. Of those that a segment has and has not counted: (which of the chosen, which
    of the wanted, its code).
    """
    missing = np.empty((3, 16), np.int64)
    size = 0
    for n in range(chosen.size):
        terms, by_term = _terms(table[chosen[n]])
        for i in range(wanted.size):
            code = find_term(terms, by_term, wanted[i])
            if code < 0:
                continue
            if code < ends[n] - begins[n] - 1:
                sums[i] += counts[begins[n] + code]
                continue
            if size == missing.shape[1]:
                more = np.empty((3, 2 * size), np.int64)
                more[:, :size] = missing
                missing = more
            missing[0, size], missing[1, size], missing[2, size] = n, i, code
            size += 1
    return missing[:, :size].copy()


@kernel
def posts_with(table, chosen, codes, no_code, asked):
    """How many of the posts asked for have a code, of each pair of a segment and a code."""
    out = np.empty(chosen.size, np.int64)
    for n in range(chosen.size):
        row = table[chosen[n]]
        found = range_rows(
            row[ROWS], codes[n : n + 1], True, _lists(row), _tree(row), _posts(row), _gone(row), asked, no_code
        )
        out[n] = found[0].size
    return out
