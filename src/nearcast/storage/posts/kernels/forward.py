"""The words of each post as codes, in the order of its text.

A post's record is its size in bytes times two, plus one if a word occurs twice, and the codes. The code 0 is the
boundary before tags; the others are numbered by frequency, so the frequent ones take one byte.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.varint import FROM_THREE, FROM_TWO, GROUP, GROUP_BITS, PADDING, TWO, get, put, put_size


@kernel
def write_forward(codes, offsets, repeats, ranks):
    """(data, starts) of posts; `ranks` turns a first-seen number into a code."""
    posts = offsets.size - 1
    # Room for the most there can be, of which what is not written takes no memory.
    out = np.empty(5 * codes.size + 5 * posts + PADDING, np.uint8)
    starts = np.empty((posts + GROUP - 1) // GROUP + 1, np.int64)
    at = np.int64(0)
    for i in range(posts):
        if i & (GROUP - 1) == 0:
            starts[i >> GROUP_BITS] = at
        end = at + 1
        for j in range(offsets[i], offsets[i + 1]):
            code = np.int64(ranks[codes[np.uint64(j)]])
            place = np.uint64(end)
            if code < FROM_TWO:  # `put`, written out: a call for each word takes longer than the writing
                out[place] = code
                end += 1
            elif code < FROM_THREE:
                out[place] = TWO + ((code - FROM_TWO) >> 8)
                out[place + np.uint64(1)] = (code - FROM_TWO) & 255
                end += 2
            else:
                end = put(out, end, code)
        at = put_size(out, at, end, 2 * (end - at - 1) + (1 if repeats[i] else 0))
    starts[-1] = at
    return out[: at + PADDING], starts


@kernel
def post_at(data, starts, row):
    """Where the record of a post begins."""
    at = starts[row >> GROUP_BITS]
    for _ in range(row & (GROUP - 1)):
        head, at = get(data, at)
        at += head >> 1
    return at


@kernel
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
