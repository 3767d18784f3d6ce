"""Inverted lists: for each word the rows of the posts that have it, as gaps, ascending.

Words are numbered by frequency, so those with long lists come first. A long list has a skip every STRIDE rows (the row
before, and where the next gap is), by which its part inside a run of rows is found without reading what lies before.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.varint import GROUP, GROUP_BITS, PADDING, get, put, record_at, size_of

STRIDE = 128


@kernel
def write_postings(data, starts, rows, counts):
    """(lists, list_starts, skip_first, skip_rows, skip_at) of the posts [0, rows), whose words `data` holds.

    `counts` says in how many posts each code occurs and does not grow from code 1 on; code 0 has no list.
    """
    begin = np.zeros(counts.size + 1, np.int64)
    for code in range(counts.size):
        begin[code + 1] = begin[code] + np.int64(counts[code])
    flat = np.empty(begin[-1], np.uint32)
    ends = begin[:-1].copy()
    at = np.int64(0)
    for row in range(rows):
        head, at = get(data, at)
        stop = at + (head >> 1)
        while at < stop:
            code, at = get(data, at)
            if code == 0:
                continue
            n = ends[np.uint64(code)]
            if head & 1 and n > begin[code] and flat[n - 1] == row:
                continue
            flat[np.uint64(n)] = row
            ends[np.uint64(code)] = n + 1
    long = 0
    while long + 1 < counts.size and counts[long + 1] > STRIDE:
        long += 1
    skip_first = np.zeros(long + 2, np.int64)
    for code in range(1, long + 1):
        skip_first[code + 1] = skip_first[code] + (np.int64(counts[code]) + STRIDE - 1) // STRIDE
    skip_rows = np.empty(skip_first[-1], np.int32)
    skip_at = np.empty(skip_first[-1], np.uint32)
    sizes = np.empty(counts.size, np.int64)
    total = np.int64(0)
    for code in range(counts.size):
        size = np.int64(0)
        last = np.int64(-1)
        for i in range(begin[code], begin[code + 1]):
            size += size_of(np.int64(flat[i]) - last - 1)
            last = np.int64(flat[i])
        sizes[code] = size
        total += size + size_of(size)
    out = np.zeros(total + PADDING, np.uint8)
    list_starts = np.empty((counts.size + GROUP - 1) // GROUP + 1, np.int64)
    at = np.int64(0)
    for code in range(counts.size):
        if code & (GROUP - 1) == 0:
            list_starts[code >> GROUP_BITS] = at
        at = put(out, at, sizes[code])
        base = at
        last = np.int64(-1)
        for i in range(begin[code], begin[code + 1]):
            if 0 < code <= long and (i - begin[code]) % STRIDE == 0:
                skip = skip_first[code] + (i - begin[code]) // STRIDE
                skip_rows[skip] = last
                skip_at[skip] = at - base
            at = put(out, at, np.int64(flat[i]) - last - 1)
            last = np.int64(flat[i])
    list_starts[-1] = at
    return out, list_starts, skip_first, skip_rows, skip_at


@kernel
def rows_in_runs(code, inverted, begins, ends):
    """The rows of a word's list inside runs of rows (ascending, apart), and how many gaps were read."""
    counts, lists, list_starts, skip_first, skip_rows, skip_at = inverted
    count = counts[code]
    most = np.int64(0)
    for run in range(begins.size):
        most += ends[run] - begins[run]
    # Room for all at once: a loop in which `out` may be replaced takes several times as long.
    out = np.empty(min(most, np.int64(count)), np.int64)
    found = 0
    looked = 0
    at = record_at(lists, list_starts, code)
    _, base = get(lists, at)
    at = base
    row = np.int64(-1)  # the last row read
    left = np.int64(count)  # rows not read yet
    low, high = np.int64(0), np.int64(0)
    if code + 1 < skip_first.size:
        low, high = skip_first[code], skip_first[code + 1]
    first_skip = low
    held = False  # `row` was read and not yet passed
    for run in range(begins.size):
        begin, end = begins[run], ends[run]
        if high > low and row < begin:  # the last skip whose row is before the run
            a, b = low, high
            while b - a > 1:
                middle = (a + b) >> 1
                if skip_rows[middle] < begin:
                    a = middle
                else:
                    b = middle
            if skip_rows[a] > row:
                row = np.int64(skip_rows[a])
                at = base + np.int64(skip_at[a])
                left = np.int64(count) - (a - first_skip) * STRIDE
                held = False
            low = a
        while True:
            if held:
                if row >= end:
                    break
                if row >= begin:
                    out[found] = row
                    found += 1
                held = False
            if left == 0:
                return out[:found], looked
            gap, at = get(lists, at)
            row += gap + 1
            left -= 1
            looked += 1
            held = True
    return out[:found], looked
