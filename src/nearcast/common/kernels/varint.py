"""Small numbers in few bytes: 1 below 192, 2 below 12,480, 3 below 995,520, else 5.

The first byte tells how many follow, so a reader takes one branch where seven-bit groups would take several. Records
are a number that says how many bytes they have, and the bytes; every GROUP-th record's place is written down, and the
others are found from there.
"""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel

PADDING = 4  # bytes behind the last record
GROUP = 16
GROUP_BITS = 4

TWO, THREE, FIVE = 192, 240, 255
FROM_TWO = 192
FROM_THREE = FROM_TWO + ((THREE - TWO) << 8)
FROM_FIVE = FROM_THREE + ((FIVE - THREE) << 16)


@inlined
def size_of(value):
    """How many bytes `put` writes."""
    if value < FROM_TWO:
        return 1
    if value < FROM_THREE:
        return 2
    return 3 if value < FROM_FIVE else 5


@kernel
def put(out, at, value):
    """Write a number (below 2**32); returns where the next one goes."""
    here = np.uint64(at)
    if value < FROM_TWO:
        out[here] = value
        return at + 1
    if value < FROM_THREE:
        value -= FROM_TWO
        out[here] = TWO + (value >> 8)
        out[here + np.uint64(1)] = value & 255
        return at + 2
    if value < FROM_FIVE:
        value -= FROM_THREE
        out[here] = THREE + (value >> 16)
        out[here + np.uint64(1)] = (value >> 8) & 255
        out[here + np.uint64(2)] = value & 255
        return at + 3
    out[here] = FIVE
    for i in range(4):
        out[here + np.uint64(1 + i)] = (value >> (24 - 8 * i)) & 255
    return at + 5


@kernel
def put_size(out, at, end, value):
    """Write a number at `at` in front of the bytes [at + 1, end), which make room where it takes more than one;
    returns where they end then.
    """
    if value < FROM_TWO:
        out[np.uint64(at)] = value
        return end
    more = size_of(value) - 1
    for i in range(end - 1, at, -1):
        out[np.uint64(i + more)] = out[np.uint64(i)]
    put(out, at, value)
    return end + more


@kernel
def get(data, at):
    """(the number there, where the next one is).

    How many bytes a number has cannot be foretold, so there is no branch on it but for the longest: two more bytes are
    read in any case, and data ends with PADDING. Unsigned indexes: Numba asks of signed ones whether they count from
    the end.
    """
    here = np.uint64(at)
    first = np.int64(data[here])
    second = np.int64(data[here + np.uint64(1)])
    third = np.int64(data[here + np.uint64(2)])
    if first == FIVE:
        last = np.int64(data[here + np.uint64(4)])
        return (second << 24) + (third << 16) + (np.int64(data[here + np.uint64(3)]) << 8) + last, at + 5
    two = FROM_TWO + ((first - TWO) << 8) + second
    three = FROM_THREE + ((first - THREE) << 16) + (second << 8) + third
    value = first if first < TWO else (two if first < THREE else three)
    return value, at + 1 + (first >= TWO) + (first >= THREE)


@kernel
def skip_records(data, at, count):
    for _ in range(count):
        size, at = get(data, at)
        at += size
    return at


@kernel
def record_at(data, starts, number):
    """Where the record of this number begins, with its size."""
    return skip_records(data, starts[number >> GROUP_BITS], number & (GROUP - 1))
