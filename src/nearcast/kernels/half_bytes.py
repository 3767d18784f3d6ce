"""Counts of the frequent words of every node above the blocks, in half a byte each.

A table of one node is so small that adding it takes a fiftieth of what counting its posts takes: byte j holds the
counts of code j and of code j + half, so two plain loops add them, which the processor does many codes at a time. What
a count has beyond 15 is in a table of its own, as `kernels.counting` writes them.
"""

import numpy as np
from numba import njit

from nearcast.kernels.blocks import BLOCK, FAN
from nearcast.kernels.counting import add_table, count_run, put_table
from nearcast.kernels.forward import post_at
from nearcast.kernels.varint import FROM_THREE, PADDING

FREQUENT = FROM_THREE  # codes of one or two bytes: 50 KB of counts
MOST = 15  # of a count, in half a byte
SPAN = BLOCK * FAN  # posts of a node


@njit(cache=True, nogil=True)
def write_halves(data, starts, rows, words):
    """(halves, beyond, beyond_starts): of the posts [0, SPAN), [SPAN, 2 SPAN) … of a segment."""
    nodes = (rows + SPAN - 1) // SPAN
    half = (min(words, FREQUENT) + 1) // 2
    halves = np.empty(nodes * half, np.uint8)
    beyond = np.empty(1 << 16, np.uint8)
    beyond_starts = np.zeros(nodes + 1, np.int64)
    counts = np.empty(2 * half + 1, np.int32)
    at = np.int64(0)
    for node in range(nodes):
        counts[:] = 0
        begin = node * SPAN
        count_run(data, post_at(data, starts, begin), min(rows - begin, SPAN), counts)
        _pack(counts[:half], counts[half : 2 * half], halves[node * half : (node + 1) * half])
        if at + 12 * half + PADDING > beyond.size:
            more = np.empty(2 * (beyond.size + 12 * half), np.uint8)
            more[:at] = beyond[:at]
            beyond = more
        at = put_table(counts, 2 * half, MOST, beyond, at)
        beyond_starts[node + 1] = at
    return halves, beyond[: at + PADDING].copy(), beyond_starts


@njit(cache=True, nogil=True)
def _pack(low, high, out):
    for j in range(out.size):
        out[j] = (low[j] & MOST) | (high[j] & MOST) << 4


@njit(cache=True, nogil=True)
def add_halves(halves, beyond, beyond_starts, first, last, counts):
    """Add the tables of the nodes [first, last)."""
    half = halves.size // (beyond_starts.size - 1)
    rest = counts.size - 1
    low, high = counts[: min(half, rest)], counts[min(half, rest) : rest]
    for node in range(first, last):
        own = halves[node * half : (node + 1) * half]
        for j in range(low.size):
            low[j] += np.int32(own[j] & MOST)
        for j in range(high.size):
            high[j] += np.int32(own[j] >> 4)
        add_table(beyond, beyond_starts[node], beyond_starts[node + 1], counts)
