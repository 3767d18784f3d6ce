"""Counting for the statistics quadtree J of SSTD §4.1, and the textual split of its QT-tree.

A cell of level l is `first_cell(l) + y * 2**l + x`: the levels of a quadtree one after the other. Rectangles of grid
cells are half open, as in `partitioning.kernels.cell_sums`, and the (at most two) of one query follow each other.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix
from nearcast.common.kernels.sorting import hashed_bound
from nearcast.storage.subscriptions.kernels.register import LAST, LENGTH, NEGATIVE

PARTS = 4  # children of a node, whichever way it is split
SPREAD = 16  # a query that touches more cells of a level than this is counted above it


@kernel
def first_cell(level):
    return ((np.int64(1) << (2 * np.int64(level))) - 1) // 3


@kernel
def _columns(rows, rectangles, at, shift, side):
    """(first, last, first, last, step): the columns that the query at `at` touches, as one or two runs, and how many
    rectangles it has. Two runs that meet on a coarser level are all columns.
    """
    x0, x1 = np.int64(rectangles[at, 0]) >> shift, (np.int64(rectangles[at, 2]) - 1) >> shift
    if at + 1 == rows.size or rows[at + 1] != rows[at]:
        return x0, x1, np.int64(0), np.int64(-1), 1
    last = (np.int64(rectangles[at + 1, 2]) - 1) >> shift
    if last >= x0:
        return np.int64(0), np.int64(side - 1), np.int64(0), np.int64(-1), 2
    return x0, x1, np.int64(0), last, 2


@kernel
def touched(rows, rectangles, types, kinds, shift, side):
    """How many queries of each type touch each cell of one level, as (kinds, side, side)."""
    marks = np.zeros((kinds, side + 1, side + 1), np.float64)
    at = 0
    while at < rows.size:
        a0, a1, b0, b1, step = _columns(rows, rectangles, at, shift, side)
        y0, y1 = np.int64(rectangles[at, 1]) >> shift, (np.int64(rectangles[at, 3]) - 1) >> shift
        kind = types[rows[at]]
        for run in range(2):
            x0, x1 = (a0, a1) if run == 0 else (b0, b1)
            if x0 <= x1 and y0 <= y1:
                marks[kind, y0, x0] += 1
                marks[kind, y0, x1 + 1] -= 1
                marks[kind, y1 + 1, x0] -= 1
                marks[kind, y1 + 1, x1 + 1] += 1
        at += step
    out = np.empty((kinds, side, side), np.float64)
    for kind in range(kinds):
        for y in range(side):
            row = 0.0
            for x in range(side):
                row += marks[kind, y, x]
                out[kind, y, x] = row + (out[kind, y - 1, x] if y > 0 else 0.0)
    return out


@kernel
def _add(keys, sums, key, weight):
    """Add to the sum of a key in an open table; true if the key is new."""
    mask = keys.size - 1
    slot = np.int64(mix(np.uint64(key)) & np.uint64(mask))
    while keys[slot] != key:
        if keys[slot] < 0:
            keys[slot] = key
            sums[slot] = weight
            return True
        slot = (slot + 1) & mask
    sums[slot] += weight
    return False


@kernel
def spread_values(rows, rectangles, bits, depth, offsets, values, weights, kinds, kind_count, value_count):
    """(key, weight): what queries have, summed up by the cells they touch, in no order.

    The query of row r has values[offsets[r]:offsets[r + 1]] with their weights, and kind kinds[r] (below 0: it is left
    out). They count for each cell of level 0 to s, s being the finest level up to `depth` at which it touches at most
    SPREAD cells (at least 0), and are marked as ending there in those of level s. The key of a value is
    ((cell * 2 + ends) * kind_count + kind) * value_count + value. The grid has 2**bits cells a side.
    """
    keys = np.full(1 << 16, np.int64(-1))
    sums = np.zeros(1 << 16)
    used = 0
    at = 0
    while at < rows.size:
        row = rows[at]
        step = 2 if at + 1 < rows.size and rows[at + 1] == row else 1
        level = -1
        ends = kinds[row] < 0
        while not ends:
            level += 1
            shift, side = np.int64(bits - level), np.int64(1) << np.int64(level)
            a0, a1, b0, b1, _ = _columns(rows, rectangles, at, shift, side)
            y0, y1 = np.int64(rectangles[at, 1]) >> shift, (np.int64(rectangles[at, 3]) - 1) >> shift
            ends = level == depth
            if not ends:
                below = shift - 1
                c0, c1, d0, d1, _ = _columns(rows, rectangles, at, below, 2 * side)
                height = ((np.int64(rectangles[at, 3]) - 1) >> below) - (np.int64(rectangles[at, 1]) >> below) + 1
                ends = (c1 - c0 + 1 + d1 - d0 + 1) * height > SPREAD
            for run in range(2):
                x0, x1 = (a0, a1) if run == 0 else (b0, b1)
                for y in range(y0, y1 + 1):
                    for x in range(x0, x1 + 1):
                        cell = first_cell(level) + y * side + x
                        base = ((cell * 2 + (1 if ends else 0)) * kind_count + kinds[row]) * value_count
                        for j in range(offsets[row], offsets[row + 1]):
                            if _add(keys, sums, base + values[j], weights[j]):
                                used += 1
                                if 2 * used > keys.size:
                                    old, old_sums = keys, sums
                                    keys = np.full(4 * old.size, np.int64(-1))
                                    sums = np.zeros(4 * old.size)
                                    for i in range(old.size):
                                        if old[i] >= 0:
                                            _add(keys, sums, old[i], old_sums[i])
        at += step
    out = np.empty(used, np.int64)
    out_sums = np.empty(used)
    n = 0
    for i in range(keys.size):
        if keys[i] >= 0:
            out[n], out_sums[n] = keys[i], sums[i]
            n += 1
    return out, out_sums


@kernel
def keyword_sets(codes, offsets):
    """(row, offsets, terms): for each conjunction of each row the terms that a post must have, in order; none where it
    has no positive word. A row without a code has one empty set.
    """
    rows = np.empty(codes.size + offsets.size, np.int64)
    starts = np.zeros(codes.size + offsets.size + 1, np.int64)
    terms = np.empty(codes.size, np.uint64)
    sets = n = 0
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        empty = at == offsets[row + 1]
        while empty or at < offsets[row + 1]:
            last = empty
            while not last:
                header = codes[at]
                length = np.int64(header & LENGTH)
                if not header & NEGATIVE:
                    for j in range(length):
                        terms[n] = codes[at + 1 + j]
                        n += 1
                at += 1 + length
                last = header & LAST != 0
            empty = False
            rows[sets] = row
            sets += 1
            starts[sets] = n
    return rows[:sets].copy(), starts[: sets + 1].copy(), terms[:n].copy()


@kernel
def known_words(terms, offsets, vocabulary):
    """(words, offsets): the positions in the sorted vocabulary of each post's terms that are in it, each once."""
    out = np.empty(terms.size, np.int32)
    starts = np.zeros(offsets.size, np.int64)
    n = 0
    for i in range(offsets.size - 1):
        first = n
        for j in range(offsets[i], offsets[i + 1]):
            at = hashed_bound(vocabulary, terms[j])
            if at == vocabulary.size or vocabulary[at] != terms[j]:
                continue
            seen = False
            for other in range(first, n):
                seen |= out[other] == at
            if not seen:
                out[n] = at
                n += 1
        starts[i + 1] = n
    return out[:n].copy(), starts


@kernel
def heard(posts, words, offsets, chances):
    """H of eq. 1 for each row of `chances`: the sum over the words that these posts have."""
    seen = np.zeros(chances.shape[1], np.bool_)
    out = np.zeros(chances.shape[0])
    for i in range(posts.size):
        for j in range(offsets[posts[i]], offsets[posts[i] + 1]):
            if not seen[words[j]]:
                seen[words[j]] = True
                for kind in range(chances.shape[0]):
                    out[kind] += chances[kind, words[j]]
    return out


@kernel
def price(hits, coefficients, flat):
    """The work of one post: flat + the sum over kinds of coefficients[kind, l] * hits[kind]**l (eq. 1)."""
    total = flat
    for kind in range(coefficients.shape[0]):
        hit = min(hits[kind], 1.0)
        power = 1.0
        for length in range(coefficients.shape[1]):
            total += coefficients[kind, length] * power
            power *= hit
    return total


@kernel
def split_by_increment(posts, words, offsets, chances, coefficients, flat):
    """Textual partitioning (SSTD §4.1.2): the child, of PARTS, of each post in turn, the one whose workload grows
    least; among equals the first.
    """
    kinds = chances.shape[0]
    everywhere = np.uint8((1 << PARTS) - 1)
    lists = np.zeros(chances.shape[1], np.uint8)  # bit c: child c has the word
    size = np.zeros(PARTS, np.int64)
    hits = np.zeros((PARTS, kinds))
    prices = np.full(PARTS, price(np.zeros(kinds), coefficients, flat))
    trial = np.empty((PARTS, kinds))
    out = np.empty(posts.size, np.uint8)
    for i in range(posts.size):
        begin, end = offsets[posts[i]], offsets[posts[i] + 1]
        grown = np.uint8(0)  # bit c: the post brings a word that child c has not
        for j in range(begin, end):
            missing = ~lists[words[j]] & everywhere
            if missing == 0:
                continue
            for child in range(PARTS):
                if missing >> child & 1:
                    for kind in range(kinds):
                        before = trial[child, kind] if grown >> child & 1 else hits[child, kind]
                        trial[child, kind] = before + chances[kind, words[j]]
            grown |= missing
        best, best_increment, best_price = 0, np.inf, 0.0
        for child in range(PARTS):
            now = price(trial[child], coefficients, flat) if grown >> child & 1 else prices[child]
            increment = (size[child] + 1) * now - size[child] * prices[child]
            if increment < best_increment:
                best, best_increment, best_price = child, increment, now
        out[i] = best
        size[best] += 1
        prices[best] = best_price
        if grown >> best & 1:
            hits[best] = trial[best]
            for j in range(begin, end):
                lists[words[j]] |= np.uint8(1 << best)
    return out
