"""The directory of a subscription index: cells in Z-order, and in each cell its entries sorted by term.

    cells      sorted codes of the cells that have entries: level, then Z-order within the level
    starts     a cell's words begin here and end where the next cell's begin; their number is a power of two
    signs      a word: one bit for each of 64 classes of terms, set if an entry of the class is there
    bases      where a word's entries begin; they end where the next word's begin
    tags       an entry's term, its top 23 bits, sorted within the cell
    entries    the row of the subscription (low 32 bits) and its box inside the cell in 256ths, which rejects most
               candidates without touching their rows: bytes min x, min y, 255 - max x, 255 - max y

The top bits of a term choose the word of a cell, the next six its bit, so that about eight entries share a word, and
most terms that are not there are known by one bit. Posts are matched in Z-order too, so that a batch walks through
these arrays once from end to end, instead of missing the cache at every probe. (A hash of (cell, term) was tried first,
then one sign of 256 bits and a binary search a cell; both were slower.)
"""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel

TAG_BITS = 23
CELL_BITS = 41  # 5 for the level, 36 for a cell of level 18
TAG_SHIFT = np.uint64(TAG_BITS)
TAG_MASK = np.uint64((1 << TAG_BITS) - 1)
PER_WORD = 8
MOST_WORD_BITS = 16  # with 6 bits for the bit, less than TAG_BITS


@inlined
def with_gaps(value):
    """The low 32 bits of a value with a zero before each bit."""
    v = np.uint64(value) & np.uint64(0xFFFFFFFF)
    v = (v | (v << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    v = (v | (v << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    v = (v | (v << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    v = (v | (v << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (v | (v << np.uint64(1))) & np.uint64(0x5555555555555555)


@inlined
def cell_code(level, z_code):
    """The code of the cell of a level that holds the place with this 64-bit Z-order code."""
    return (np.uint64(level) << np.uint64(36)) | (z_code >> np.uint64(64 - 2 * level) if level else np.uint64(0))


@inlined
def sort_key(cell, term):
    """Cell and tag in one word, by which entries are sorted."""
    return (cell << np.uint64(TAG_BITS)) | (term >> np.uint64(CELL_BITS))


@inlined
def tag_of(term):
    """The part of a term by which an entry is told from others of its cell."""
    return term >> np.uint64(CELL_BITS)


@inlined
def word_bits(entries):
    """The logarithm of the number of words of a cell with so many entries."""
    bits = np.int64(0)
    while bits < MOST_WORD_BITS and (PER_WORD << bits) < entries:
        bits += 1
    return bits


@kernel
def lay_out(keys):
    """Cells, starts, signs, bases and tags from sorted keys."""
    cell_count = word_count = begin = 0
    for i in range(1, keys.size + 1):
        if i == keys.size or keys[i] >> TAG_SHIFT != keys[begin] >> TAG_SHIFT:
            cell_count += 1
            word_count += 1 << word_bits(i - begin)
            begin = i
    cells = np.empty(cell_count, np.uint64)
    starts = np.empty(cell_count + 1, np.uint32)
    signs = np.zeros(word_count, np.uint64)
    bases = np.empty(word_count + 1, np.uint32)
    tags = np.empty(keys.size, np.uint32)
    cell = word = begin = 0
    while begin < keys.size:
        end = begin + 1
        while end < keys.size and keys[end] >> TAG_SHIFT == keys[begin] >> TAG_SHIFT:
            end += 1
        cells[cell] = keys[begin] >> TAG_SHIFT
        starts[cell] = word
        bits = word_bits(end - begin)
        at = begin
        for inside in range(1 << bits):
            bases[word] = at
            while at < end and np.int64((keys[at] & TAG_MASK) >> np.uint64(TAG_BITS - bits)) == inside:
                sign = (keys[at] >> np.uint64(TAG_BITS - 6 - bits)) & np.uint64(63)
                signs[word] |= np.uint64(1) << sign
                tags[at] = keys[at] & TAG_MASK
                at += 1
            word += 1
        cell += 1
        begin = end
    starts[cell_count] = word_count
    bases[word_count] = keys.size
    return cells, starts, signs, bases, tags


@kernel
def laid_keys(cells, starts, bases, tags):
    """The sorted keys again, from which several directories are merged."""
    keys = np.empty(tags.size, np.uint64)
    for at in range(cells.size):
        for i in range(bases[starts[at]], bases[starts[at + 1]]):
            keys[i] = (cells[at] << TAG_SHIFT) | np.uint64(tags[i])
    return keys


@kernel
def merge_sorted(keys, entries, more_keys, more_entries):
    """Two sorted runs of directory pairs as one."""
    size = keys.size + more_keys.size
    out_keys, out_entries = np.empty(size, np.uint64), np.empty(size, np.uint64)
    i = j = 0
    for at in range(size):
        if j == more_keys.size or (i < keys.size and keys[i] <= more_keys[j]):
            out_keys[at], out_entries[at] = keys[i], entries[i]
            i += 1
        else:
            out_keys[at], out_entries[at] = more_keys[j], more_entries[j]
            j += 1
    return out_keys, out_entries


@inlined
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
