"""Numbers for rows of several values: equal rows have the same number."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix, slot_of
from nearcast.common.kernels.prefetch import prefetch

AHEAD = 8  # rows, whose slots are asked for beforehand
KIND = np.uint64(0xD6E8FEB86659FD93)


@kernel
def numbered_rows(kinds, values):
    """(the number of each row, the first row of each number): numbers are given as rows are first met. A row is the
    kinds and the values in it. One pass over the rows, whatever their width.
    """
    hashes = np.empty(values.shape[0], np.uint64)
    for i in range(values.shape[0]):
        h = np.uint64(0)
        for j in range(values.shape[1]):
            h = mix((h ^ np.uint64(values[i, j])) + KIND * np.uint64(kinds[i, j]))
        hashes[i] = h
    codes = np.empty(hashes.size, np.int32)
    slots = 1 << 10
    table = np.zeros(2 * slots, np.uint64)
    firsts = np.empty(slots // 2, np.int64)
    at, size = _number_some(kinds, values, hashes, 0, table, firsts, 0, codes)
    while at < hashes.size:
        slots *= 4
        table = _rehashed(hashes, firsts, size, slots)
        more = np.empty(slots // 2, np.int64)
        more[:size] = firsts[:size]
        firsts = more
        at, size = _number_some(kinds, values, hashes, at, table, firsts, size, codes)
    return codes, firsts[:size].copy()


@kernel
def _number_some(kinds, values, hashes, at, table, firsts, size, codes):
    """Number rows from `at` on, until the table is half full; (where it stopped, how many numbers there are). A slot of
    the table is a hash and the number plus one.
    """
    slots, width = np.int64(table.size // 2), values.shape[1]
    for i in range(at, hashes.size):
        if i + AHEAD < hashes.size:
            prefetch(table, 2 * slot_of(hashes[i + AHEAD], slots))
        hashed = hashes[i]
        slot = slot_of(hashed, slots)
        code = np.int64(-1)
        while table[2 * slot + 1]:
            if table[2 * slot] == hashed:
                code = np.int64(table[2 * slot + 1]) - 1
                other = firsts[code]
                for j in range(width):
                    if values[other, j] != values[i, j] or kinds[other, j] != kinds[i, j]:
                        code = np.int64(-1)
                        break
                if code >= 0:
                    break
            slot += 1
            if slot == slots:
                slot = 0
        if code < 0:
            if size == firsts.size:
                return i, size
            code = np.int64(size)
            firsts[size] = i
            size += 1
            table[2 * slot], table[2 * slot + 1] = hashed, np.uint64(size)
        codes[i] = code
    return hashes.size, size


@kernel
def _rehashed(hashes, firsts, size, slots):
    """The table of the rows met so far, with so many slots."""
    table = np.zeros(2 * slots, np.uint64)
    for code in range(size):
        hashed = hashes[firsts[code]]
        slot = slot_of(hashed, slots)
        while table[2 * slot + 1]:
            slot += 1
            if slot == slots:
                slot = 0
        table[2 * slot], table[2 * slot + 1] = hashed, np.uint64(code + 1)
    return table
