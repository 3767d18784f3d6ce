"""Counts of the frequent words of every node above the blocks, in half a byte each.

A table of one node is so small that adding it takes a hundredth of what counting its posts takes: byte j holds the
counts of code j and of code j + half, so plain loops add them, which the processor does many codes at a time. What a
count has beyond 15 is apart: of the HEAD in two bytes each, of the few others in a table as
`storage.posts.kernels.counting` writes them. Of FAN nodes together the counts of the COMMON words lie there as they
are, of WIDE nodes all: one table of those is added in the time of a few of the small ones.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.varint import FROM_THREE, PADDING, get
from nearcast.storage.posts.kernels.blocks import BLOCK, FAN
from nearcast.storage.posts.kernels.counting import add_table, count_run, put_table
from nearcast.storage.posts.kernels.forward import post_at
from nearcast.storage.posts.kernels.head_words import HEAD

FREQUENT = FROM_THREE  # codes of one or two bytes: 50 KB of counts
COMMON = 2048  # codes, a third of a table
MOST = 15  # of a count, in half a byte
MOST_WAITING = 255 // MOST  # tables that bytes can add up
SPAN = BLOCK * FAN  # posts of a node
WIDE_LEVEL = 3
WIDE = FAN ** (WIDE_LEVEL - 1)  # nodes of a wide table
RARE = 1 << 15  # counters that the words beyond the frequent ones share


@kernel
def write_halves(data, starts, rows, words):
    """(halves, tops, beyond, beyond_starts) of the posts [0, SPAN), [SPAN, 2 SPAN) … of a segment, the counts of FAN
    nodes each and those of WIDE nodes, and in how many posts of a node any one word beyond the COMMON and beyond the
    FREQUENT ones occurs at most.
    """
    nodes = (rows + SPAN - 1) // SPAN
    half = (min(words, FREQUENT) + 1) // 2
    halves = np.empty(nodes * half, np.uint8)
    tops = np.zeros(nodes * HEAD, np.uint16)
    beyond = np.empty(1 << 16, np.uint8)
    beyond_starts = np.zeros(nodes + 1, np.int64)
    wide = np.zeros((nodes + WIDE - 1) // WIDE * 2 * half, np.int32)
    common = min(COMMON, 2 * half)
    several = np.zeros((nodes + FAN - 1) // FAN * common, np.uint16)
    counts = np.empty(2 * half + 1, np.int32)
    rare = np.zeros(2 * nodes, np.uint16)
    shared = np.zeros(RARE if words > FREQUENT else 0, np.int32)
    at = np.int64(0)
    for node in range(nodes):
        counts[:] = 0
        begin = node * SPAN
        count_run(data, post_at(data, starts, begin), min(rows - begin, SPAN), counts, np.int32(1))
        _add(counts[: 2 * half], wide[node // WIDE * 2 * half :])
        _add(counts[:common], several[node // FAN * common :])
        _pack(counts[:half], counts[half : 2 * half], halves[node * half : (node + 1) * half])
        for code in range(min(HEAD, counts.size)):
            tops[node * HEAD + code] = counts[code] & ~MOST
            counts[code] = 0
        if at + 12 * half + PADDING > beyond.size:
            more = np.empty(2 * (beyond.size + 12 * half), np.uint8)
            more[:at] = beyond[:at]
            beyond = more
        at = put_table(counts, 2 * half, MOST, beyond, at)
        beyond_starts[node + 1] = at
        if words > FREQUENT:
            rare[2 * node + 1] = min(SPAN, _most_of_rare(data, starts, begin, min(rows, begin + SPAN), shared))
        rare[2 * node] = rare[2 * node + 1]
        for code in range(COMMON, 2 * half):
            rare[2 * node] = max(rare[2 * node], counts[code])
    return halves, tops, beyond[: at + PADDING].copy(), beyond_starts, several, wide, rare


@kernel
def _most_of_rare(data, starts, begin, end, shared):
    """No word beyond the frequent ones occurs more often than this in the posts [begin, end). Words that share one of
    the counters, which are emptied, make it greater.
    """
    shared[:] = 0
    at, stop = post_at(data, starts, begin), post_at(data, starts, end)
    while at < stop:
        head, at = get(data, at)
        last = at + (head >> 1)
        while at < last:
            code, at = get(data, at)
            if code >= FREQUENT:
                shared[np.uint64(code & (RARE - 1))] += 1
    return shared.max()


@kernel
def _pack(low, high, out):
    for j in range(out.size):
        out[j] = (low[j] & MOST) | (high[j] & MOST) << 4


@kernel
def _add(own, counts):
    for j in range(own.size):
        counts[j] += own[j]


@kernel
def add_several(several, half, place, counts):
    """Add the table of FAN nodes, the `place`-th, to counts of the COMMON words or fewer."""
    common = min(COMMON, 2 * half)
    _add(several[place * common : place * common + min(common, counts.size - 1)], counts)


@kernel
def add_wide(wide, half, first, last, counts):
    """Add the tables of the nodes [first, last), which are all the nodes of some wide tables; returns how many."""
    begin, end = first // WIDE, (last + WIDE - 1) // WIDE
    for table in range(begin, end):
        _add(wide[table * 2 * half : table * 2 * half + min(2 * half, counts.size - 1)], counts)
    return end - begin


@kernel
def add_halves(halves, tops, beyond, beyond_starts, first, last, counts, sums, waiting):
    """Add the tables of the nodes [first, last): what is beyond half a byte to `counts`, the rest to `sums`, bytes that
    have had `waiting` tables since they were poured; returns how many they have now.

    Codes from the size of `sums` on are left out. Bytes take a fifth of the time of `counts`, and are full after
    MOST_WAITING tables.
    """
    half = halves.size // (beyond_starts.size - 1)
    low, high = sums[:half], sums[half:]
    for node in range(first, last):
        if waiting == MOST_WAITING:
            waiting = pour(sums, counts)
        own = halves[node * half : (node + 1) * half]
        for j in range(low.size):
            low[j] += own[j] & np.uint8(MOST)
        for j in range(high.size):
            high[j] += own[j] >> np.uint8(4)
        for code in range(min(HEAD, sums.size)):
            counts[code] += np.int32(tops[node * HEAD + code])
        add_table(beyond, beyond_starts[node], beyond_starts[node + 1], counts)
        waiting += 1
    return waiting


@kernel
def pour(sums, counts):
    """Add the bytes to the counts and empty them; returns 0, the tables that wait."""
    for j in range(min(sums.size, counts.size - 1)):
        counts[j] += np.int32(sums[j])
    sums[:] = 0
    return np.int64(0)
