"""Counting in how many posts each word occurs: post by post, and by term tables made beforehand.

Nodes of the tree from TABLE_LEVEL on have a table: the codes that occur in their posts, as gaps, and the counts.

`counts` has one place more than codes are counted: all codes from there on are thrown together in the last. Codes are
in order of frequency, so a short array holds all that can be frequent, and stays in the processor's cache.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.sorting import sort_in_place
from nearcast.common.kernels.varint import FROM_TWO, PADDING, get, put
from nearcast.storage.posts.kernels.blocks import BLOCK, FAN
from nearcast.storage.posts.kernels.forward import post_at
from nearcast.storage.subscriptions.kernels.match import FEW

TABLE_LEVEL = 3  # nodes of BLOCK · FAN³ = 65,536 posts


@kernel
def count_repeating(data, at, end, counts, weight):
    """Add the words of a post that has one twice, each once. The code 0 counts nothing that matters."""
    codes = np.empty(end - at, np.int64)
    n = 0
    rest = np.int64(counts.size) - 1
    while at < end:
        code, at = get(data, at)
        codes[n] = code if code < rest else rest
        n += 1
    if n > FEW:
        sort_in_place(codes, n)
        for i in range(n):
            if i == 0 or codes[i] != codes[i - 1]:
                counts[codes[i]] += weight
        return
    for i in range(n):
        known = False
        for j in range(i):
            if codes[j] == codes[i]:
                known = True
                break
        if not known:
            counts[codes[i]] += weight


@kernel
def count_run(data, at, posts, counts, weight):
    """Add the words of `posts` posts whose records begin at `at`, each so often; returns where the next record is.

    A call for each post would take longer than the counting.
    """
    rest = np.int64(counts.size) - 1
    for _ in range(posts):
        head, at = get(data, at)
        end = at + (head >> 1)
        if head & 1:
            count_repeating(data, at, end, counts, weight)
            at = end
        while at < end:
            code, at = get(data, at)
            counts[np.uint64(code if code < rest else rest)] += weight
    return at


@kernel
def count_single(data, starts, row, counts, weight):
    """Add the words of one post."""
    head, at = get(data, post_at(data, starts, row))
    end = at + (head >> 1)
    rest = np.int64(counts.size) - 1
    if head & 1:
        count_repeating(data, at, end, counts, weight)
        return
    while at < end:
        code, at = get(data, at)
        counts[np.uint64(code if code < rest else rest)] += weight


@kernel
def add_table(tables, begin, end, counts):
    at = begin
    code = np.int64(0)
    rest = np.int64(counts.size) - 1
    while at < end:
        gap, at = get(tables, at)
        code += gap + 1
        if code >= rest:
            break
        count, at = get(tables, at)
        counts[np.uint64(code)] += np.int32(count)


@kernel
def put_table(counts, words, least, out, at):
    """Write the counts above `least`, which is 0 or 2ⁿ - 1, of the codes from 1 to `words`, each without its last n
    bits; returns where the next table goes. A loop of its own: where `out` may be replaced it takes ten times as long.
    """
    last = np.int64(0)
    for code in range(1, words):
        count = np.int64(counts[np.uint64(code)])
        if count > least:
            count &= ~least
            gap = code - last - 1
            if gap < FROM_TWO and count < FROM_TWO:  # mostly; two calls take longer
                out[np.uint64(at)] = gap
                out[np.uint64(at + 1)] = count
                at += 2
            else:
                at = put(out, put(out, at, gap), count)
            last = np.int64(code)
    return at


@kernel
def write_tables(data, starts, rows, words, levels):
    """(tables, table_starts): of the nodes of level TABLE_LEVEL and above but the root, in the order of nodes.

    Posts are counted for the lowest tables only; the others are sums of those below.
    """
    top = levels.size - 2
    first = min(TABLE_LEVEL, top)
    table_starts = np.zeros(max(levels[top] - levels[first], 0) + 1, np.int64)
    out = np.empty(1 << 16, np.uint8)
    at = np.int64(0)
    number = 0
    for level in range(first, top):
        span = np.int64(BLOCK) << (3 * level)
        for node in range(levels[level + 1] - levels[level]):
            counts = np.zeros(words + 1, np.int32)
            if level == first:
                begin, end = node * span, min(rows, (node + 1) * span)
                count_run(data, post_at(data, starts, begin), end - begin, counts, np.int32(1))
            else:
                child = levels[level - 1] - levels[first] + node * FAN
                for i in range(child, min(child + FAN, levels[level] - levels[first])):
                    add_table(out, table_starts[i], table_starts[i + 1], counts)
            if at + 10 * words + PADDING > out.size:
                more = np.empty(2 * (out.size + 5 * words), np.uint8)
                more[:at] = out[:at]
                out = more
            at = put_table(counts, words, np.int64(0), out, at)
            number += 1
            table_starts[number] = at
    return out[: at + PADDING].copy(), table_starts


@kernel
def count_rows(data, starts, rows, counts):
    """Add the words of some posts."""
    for i in range(rows.size):
        count_single(data, starts, rows[i], counts, np.int32(1))


@kernel
def nth_largest(counts, totals, n):
    """The n-th largest of the counts, 0 if fewer than n are above 0; code 0 is none.

    `totals` are those of the whole segment, which do not grow from code to code: where they are less than what n codes
    have, the rest need not be looked at.
    """
    size = counts.size - 1
    histogram = np.zeros(1024, np.int64)
    beyond = np.empty(max(size, 0), np.int64)  # counts that the histogram has no room for
    large = 0
    code = 1
    stop = 4096
    while True:
        stop = min(stop, size)
        while code < stop:
            count = np.int64(counts[np.uint64(code)])
            code += 1
            if count < 1024:
                histogram[np.uint64(count)] += 1
                continue
            beyond[large] = count
            large += 1
        found = np.int64(0)
        if large >= n:
            sort_in_place(beyond, large)
            found = beyond[large - n]
        else:
            seen = large
            for count in range(1023, 0, -1):
                seen += histogram[count]
                if seen >= n:
                    found = np.int64(count)
                    break
        if code >= size or np.int64(totals[code]) < found:
            return found
        stop *= 4


@kernel
def codes_from(counts, totals, least):
    """The codes, but 0, whose count is at least this."""
    n = np.int64(0)
    last = np.int64(1)
    while last < counts.size - 1 and np.int64(totals[np.uint64(last)]) >= least:
        n += counts[np.uint64(last)] >= least
        last += 1
    out = np.empty(n, np.int64)
    n = np.int64(0)
    for code in range(1, last):
        if counts[np.uint64(code)] >= least:
            out[n] = code
            n += 1
    return out
