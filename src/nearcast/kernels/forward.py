"""The words of each post as codes, in the order of its text.

A post's record is its size in bytes times two, plus one if a word occurs twice, and the codes. The code 0 is the
boundary before tags; the others are numbered by frequency, so the frequent ones take one byte.
"""

import numpy as np
from numba import njit

from nearcast.kernels.growing import grown, put_all
from nearcast.kernels.varint import FROM_THREE, FROM_TWO, GROUP, GROUP_BITS, PADDING, TWO, get, put


@njit(cache=True, nogil=True)
def write_forward(codes, offsets, repeats, ranks):
    """(data, starts) of posts; `ranks` turns a first-seen number into a code."""
    posts = offsets.size - 1
    out = np.empty(3 * codes.size + 3 * posts + 1024, np.uint8)
    starts = np.empty((posts + GROUP - 1) // GROUP + 1, np.int64)
    scratch = np.empty(1024, np.uint8)
    at = np.int64(0)
    for i in range(posts):
        if i & (GROUP - 1) == 0:
            starts[i >> GROUP_BITS] = at
        first, last = offsets[i], offsets[i + 1]
        if 5 * (last - first) > scratch.size:
            scratch = np.empty(10 * (last - first), np.uint8)
        size = 0
        for j in range(first, last):
            code = np.int64(ranks[codes[np.uint64(j)]])
            place = np.uint64(size)
            if code < FROM_TWO:  # `put`, written out: a call for each word takes longer than the writing
                scratch[place] = code
                size += 1
            elif code < FROM_THREE:
                scratch[place] = TWO + ((code - FROM_TWO) >> 8)
                scratch[place + np.uint64(1)] = (code - FROM_TWO) & 255
                size += 2
            else:
                size = put(scratch, size, code)
        if at + size + 5 + PADDING > out.size:
            out = grown(out, 2 * (at + size + 5 + PADDING))
        at = put(out, at, 2 * size + (1 if repeats[i] else 0))
        at = put_all(out, at, scratch, 0, size)
    starts[-1] = at
    return out[: at + PADDING].copy(), starts


@njit(cache=True, nogil=True)
def post_at(data, starts, row):
    """Where the record of a post begins."""
    at = starts[row >> GROUP_BITS]
    for _ in range(row & (GROUP - 1)):
        head, at = get(data, at)
        at += head >> 1
    return at


@njit(cache=True, nogil=True)
def forward_codes(data, starts, rows):
    """(codes, offsets) of some posts."""
    offsets = np.empty(rows.size + 1, np.int64)
    codes = np.empty(16 * rows.size + 16, np.uint32)
    n = 0
    end = np.int64(0)
    for i in range(rows.size):
        offsets[i] = n
        follows = i > 0 and rows[i] == rows[i - 1] + 1
        head, at = get(data, end if follows else post_at(data, starts, rows[i]))
        end = at + (head >> 1)
        if n + (head >> 1) > codes.size:
            codes = grown(codes, 2 * (n + (head >> 1)))
        while at < end:
            code, at = get(data, at)
            codes[n] = code
            n += 1
    offsets[rows.size] = n
    return codes[:n], offsets
