"""A batch of posts through OpIndex: counting the satisfied predicates of each query (STAR §8.3)."""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.mix import mix
from nearcast.common.kernels.sorting import lower_bound
from nearcast.kinds.aggregates.kernels.conditions import MISSING, TIME, check
from nearcast_papers.compiled_apart import kernel

WAVE = 64  # posts
EQUALS, INTERVALS = 0, 1  # kinds of predicate lists


class PredicateLists(NamedTuple):
    """`lists`: pivot and attribute (the last two are longitude and latitude), kind, and the run of its intervals. Equal
    values are in an open hash table of (code, list and kind) → run of `queries`. Intervals are sorted by their lower
    end; `reach` is the greatest upper end so far. A query with `needs` satisfied predicates is a candidate.
    """

    lists: np.ndarray
    keys: np.ndarray
    owners: np.ndarray
    runs: np.ndarray
    run_starts: np.ndarray
    queries: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    reach: np.ndarray
    interval_queries: np.ndarray
    needs: np.ndarray
    entries: np.ndarray
    terms: np.ndarray


@kernel
def hash_runs(keys, owners, slots):
    """The open hash table of (key, owner) → its number; -1 where a slot is empty."""
    out, out_owners = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    runs = np.full(slots, -1, np.int64)
    for i in range(keys.size):
        slot = np.int64(mix(np.uint64(keys[i]) ^ np.uint64(owners[i])) & np.uint64(slots - 1))
        while runs[slot] >= 0:
            slot = (slot + 1) & (slots - 1)
        out[slot], out_owners[slot], runs[slot] = keys[i], owners[i], i
    return out, out_owners, runs


@kernel
def count_predicates(begin, end, lists, places, values, stamps, counts, near):
    """(post, query) of those all of whose predicates are satisfied. `stamps` say which post `counts` are of."""
    columns, kinds, codes = values.columns, values.kinds, values.codes
    table, keys, owners, runs, needs = lists.lists, lists.keys, lists.owners, lists.runs, lists.needs
    run_starts, queries = lists.run_starts, lists.queries
    lows, highs, reach, interval_queries = lists.lows, lists.highs, lists.reach, lists.interval_queries
    attributes = columns.size
    found = 0
    for post in range(begin, end):
        for q in range(needs.size):  # those without a predicate
            if needs[q]:
                break
            if 2 * found + 2 > near.size:
                near = grown(near, 2 * near.size)
            near[2 * found], near[2 * found + 1] = post, q
            found += 1
        for at in range(table.shape[0]):
            pivot, attribute, kind, first, last = table[at]
            if pivot < attributes and kinds[post, columns[pivot]] == MISSING:
                continue
            if attribute < attributes:
                value = np.int64(kinds[post, columns[attribute]])
                if value == MISSING:
                    continue
                code = codes[post, columns[attribute]]
            else:
                value, code = np.int64(0), places[post, attribute - attributes]
            if kind == EQUALS:
                owner = at << 3 | (value if value >= TIME else 0)
                slot = np.int64(mix(np.uint64(code) ^ np.uint64(owner)) & np.uint64(keys.size - 1))
                while runs[slot] >= 0 and (keys[slot] != code or owners[slot] != owner):
                    slot = (slot + 1) & (keys.size - 1)
                low, high = (run_starts[runs[slot]], run_starts[runs[slot] + 1]) if runs[slot] >= 0 else (0, 0)
                step = 1
            elif value < TIME:
                low = first + lower_bound(lows[first:last], code + 1) - 1
                high, step = first - 1, -1
            else:
                continue
            while low != high:
                if kind == EQUALS:
                    query = queries[low]
                elif reach[low] < code:
                    break
                else:
                    query = interval_queries[low]
                low += step
                if kind == INTERVALS and highs[low - step] < code:
                    continue
                if stamps[query] != post:
                    stamps[query], counts[query] = post, 0
                counts[query] += 1
                if counts[query] == needs[query]:
                    if 2 * found + 2 > near.size:
                        near = grown(near, 2 * near.size)
                    near[2 * found], near[2 * found + 1] = post, query
                    found += 1
    return found, near


@kernel
def count_posts(lists, places, conditions, posts, values, inactive, begin, out_posts, out_rows):
    """As `ch_tree.walk`."""
    count = posts.lon.size
    stamps, counts = np.full(lists.needs.size, -1, np.int64), np.zeros(lists.needs.size, np.int64)
    near = np.empty(64 * WAVE, np.int64)
    found = looked = np.int64(0)
    while begin < count:
        end = min(begin + WAVE, count)
        candidates, near = count_predicates(begin, end, lists, places, values, stamps, counts, near)
        upto = check(
            candidates, near, lists.entries, lists.terms, conditions, posts, values, inactive,
            found, out_posts, out_rows,
        )  # fmt: skip
        if upto < 0:
            return found, begin, looked
        found, begin, looked = upto, end, looked + candidates
    return found, count, looked
