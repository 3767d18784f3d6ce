"""Counts of the frequent words of every node above the blocks, in half a byte each.

A table of one node is so small that adding it takes a fiftieth of what counting its posts takes: byte j holds the
counts of code j and of code j + half, so plain loops add them, which the processor does many codes at a time. What a
count has beyond 15 is in a table of its own, as `kernels.counting` writes them. Of WIDE nodes together the counts lie
there as they are: one table of those is added in the time of a few of the small ones.
"""

import numpy as np
from numba import njit

from nearcast.kernels.blocks import BLOCK, FAN
from nearcast.kernels.counting import add_table, count_run, put_table
from nearcast.kernels.forward import post_at
from nearcast.kernels.varint import FROM_THREE, PADDING

FREQUENT = FROM_THREE  # codes of one or two bytes: 50 KB of counts
MOST = 15  # of a count, in half a byte
MOST_WAITING = 255 // MOST  # tables that bytes can add up
SPAN = BLOCK * FAN  # posts of a node
WIDE_LEVEL = 3
WIDE = FAN ** (WIDE_LEVEL - 1)  # nodes of a wide table


@njit(cache=True, nogil=True)
def write_halves(data, starts, rows, words):
    """(halves, beyond, beyond_starts) of the posts [0, SPAN), [SPAN, 2 SPAN) … of a segment, and the counts of WIDE
    nodes each.
    """
    nodes = (rows + SPAN - 1) // SPAN
    half = (min(words, FREQUENT) + 1) // 2
    halves = np.empty(nodes * half, np.uint8)
    beyond = np.empty(1 << 16, np.uint8)
    beyond_starts = np.zeros(nodes + 1, np.int64)
    wide = np.zeros((nodes + WIDE - 1) // WIDE * 2 * half, np.int32)
    counts = np.empty(2 * half + 1, np.int32)
    at = np.int64(0)
    for node in range(nodes):
        counts[:] = 0
        begin = node * SPAN
        count_run(data, post_at(data, starts, begin), min(rows - begin, SPAN), counts, np.int32(1))
        _add(counts[: 2 * half], wide[node // WIDE * 2 * half :])
        _pack(counts[:half], counts[half : 2 * half], halves[node * half : (node + 1) * half])
        if at + 12 * half + PADDING > beyond.size:
            more = np.empty(2 * (beyond.size + 12 * half), np.uint8)
            more[:at] = beyond[:at]
            beyond = more
        at = put_table(counts, 2 * half, MOST, beyond, at)
        beyond_starts[node + 1] = at
    return halves, beyond[: at + PADDING].copy(), beyond_starts, wide


@njit(cache=True, nogil=True)
def _pack(low, high, out):
    for j in range(out.size):
        out[j] = (low[j] & MOST) | (high[j] & MOST) << 4


@njit(cache=True, nogil=True)
def _add(own, counts):
    for j in range(own.size):
        counts[j] += own[j]


@njit(cache=True, nogil=True)
def add_wide(wide, half, first, last, counts):
    """Add the tables of the nodes [first, last), which are all the nodes of some wide tables; returns how many."""
    begin, end = first // WIDE, (last + WIDE - 1) // WIDE
    for table in range(begin, end):
        _add(wide[table * 2 * half : table * 2 * half + min(2 * half, counts.size - 1)], counts)
    return end - begin


@njit(cache=True, nogil=True)
def add_halves(halves, beyond, beyond_starts, first, last, counts, sums, waiting):
    """Add the tables of the nodes [first, last): what is beyond half a byte to `counts`, the rest to `sums`, bytes that
    have had `waiting` tables since they were poured; returns how many they have now.

    Bytes take a fifth of the time of `counts`, and are full after MOST_WAITING tables.
    """
    half = halves.size // (beyond_starts.size - 1)
    low, high = sums[:half], sums[half:]
    for node in range(first, last):
        if waiting == MOST_WAITING:
            waiting = pour(sums, counts)
        own = halves[node * half : (node + 1) * half]
        for j in range(half):
            low[j] += own[j] & np.uint8(MOST)
            high[j] += own[j] >> np.uint8(4)
        add_table(beyond, beyond_starts[node], beyond_starts[node + 1], counts)
        waiting += 1
    return waiting


@njit(cache=True, nogil=True)
def pour(sums, counts):
    """Add the bytes to the counts and empty them; returns 0, the tables that wait."""
    for j in range(min(sums.size, counts.size - 1)):
        counts[j] += np.int32(sums[j])
    sums[:] = 0
    return np.int64(0)
