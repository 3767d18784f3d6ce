"""The directory of a subscription index: cells in Z-order, and in each cell its entries sorted by term.

    cells      sorted codes of the cells that have entries: level, then Z-order within the level
    starts     where a cell's entries begin; they end where the next cell's begin
    signs      256 bits a cell: which of 256 classes of terms occur in it
    tags       an entry's term, its top 23 bits, sorted within the cell
    entries    the row of the subscription (low 32 bits) and its box inside the cell in 256ths (min x, min y, max x,
               max y: 8 bits each), which rejects most candidates without touching their rows

Posts are matched in Z-order too, so that a batch walks through these arrays once from end to end, instead of missing
the cache at every probe. (A hash of (cell, term) was tried first and was slower.)
"""

import numpy as np
from numba import njit

TAG_BITS = 23
CELL_BITS = 41  # 5 for the level, 36 for a cell of level 18


@njit(cache=True, nogil=True, inline="always")
def spread(value):
    """The low 32 bits of a value with a zero before each bit."""
    v = np.uint64(value) & np.uint64(0xFFFFFFFF)
    v = (v | (v << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    v = (v | (v << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    v = (v | (v << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    v = (v | (v << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (v | (v << np.uint64(1))) & np.uint64(0x5555555555555555)


@njit(cache=True, nogil=True, inline="always")
def cell_code(level, z_code):
    """The code of the cell of a level that holds the place with this 64-bit Z-order code."""
    return (np.uint64(level) << np.uint64(36)) | (z_code >> np.uint64(64 - 2 * level) if level else np.uint64(0))


@njit(cache=True, nogil=True, inline="always")
def sort_key(cell, term):
    """Cell and tag in one word, by which entries are sorted."""
    return (cell << np.uint64(TAG_BITS)) | (term >> np.uint64(CELL_BITS))


@njit(cache=True, nogil=True)
def lay_out(keys):
    """Cells, starts, signs and tags from sorted keys."""
    mask = np.uint64((1 << TAG_BITS) - 1)
    distinct = 0
    for i in range(keys.size):
        if i == 0 or keys[i] >> np.uint64(TAG_BITS) != keys[i - 1] >> np.uint64(TAG_BITS):
            distinct += 1
    cells = np.empty(distinct, np.uint64)
    starts = np.empty(distinct + 1, np.uint32)
    signs = np.zeros(4 * distinct, np.uint64)
    tags = np.empty(keys.size, np.uint32)
    at = -1
    for i in range(keys.size):
        cell = keys[i] >> np.uint64(TAG_BITS)
        if at < 0 or cells[at] != cell:
            at += 1
            cells[at] = cell
            starts[at] = i
        tag = keys[i] & mask
        tags[i] = tag
        sign_class = np.int64(tag >> np.uint64(TAG_BITS - 8))
        signs[4 * at + (sign_class >> 6)] |= np.uint64(1) << np.uint64(sign_class & 63)
    starts[distinct] = keys.size
    return cells, starts, signs, tags


@njit(cache=True, nogil=True)
def laid_keys(cells, starts, tags):
    """The sorted keys again, from which several directories are merged."""
    keys = np.empty(tags.size, np.uint64)
    for at in range(cells.size):
        for i in range(starts[at], starts[at + 1]):
            keys[i] = (cells[at] << np.uint64(TAG_BITS)) | np.uint64(tags[i])
    return keys


@njit(cache=True, nogil=True, inline="always")
def seek(cells, cell, cursor):
    """The first position from `cursor` on whose cell is not before `cell`: a gallop, since posts come in Z-order."""
    n = cells.size
    if cursor >= n or cells[cursor] >= cell:
        return cursor
    step = 1
    low = cursor
    while low + step < n and cells[low + step] < cell:
        low += step
        step *= 2
    high = low + step if low + step < n else n
    while high - low > 1:
        middle = (low + high) >> 1
        if cells[middle] < cell:
            low = middle
        else:
            high = middle
    return high


@njit(cache=True, nogil=True, inline="always")
def seek_tag(tags, low, high, tag):
    """The first entry in [low, high) whose tag is not before `tag`."""
    while low < high:
        middle = (low + high) >> 1
        if tags[middle] < tag:
            low = middle + 1
        else:
            high = middle
    return low
