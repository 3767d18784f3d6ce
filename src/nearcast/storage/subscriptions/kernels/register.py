"""Filing subscriptions: which conjunction goes under which term, in which cells.

Coordinates become 32-bit integers over an extent (`grid_x`, `grid_y`); the cell of level l is their top l bits, and the
next 8 bits place a point inside its cell. Both are monotone in the coordinate, so a box's corners bound its points
exactly.
"""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.sorting import hashed_bound
from nearcast.storage.subscriptions.kernels.directory import cell_code, sort_key, tag_of, with_gaps

TOP = np.int64(0xFFFFFFFF)
LENGTH = np.uint64(0xFFFF)
SIXTEEN = np.uint64(16)
LAST = np.uint64(1 << 62)
NEGATIVE = np.uint64(1 << 63)


@inlined
def grid_coordinate(value, origin, span):
    """A coordinate as a 32-bit integer over [origin, origin + span], clipped at both ends."""
    scaled = (value - origin) / span * 4294967296.0
    if scaled <= 0.0:
        return np.int64(0)
    if scaled >= 4294967295.0:
        return TOP
    return np.int64(scaled)


@inlined
def z_code(x, y):
    """The 64-bit Z-order code of a place given as two 32-bit grid coordinates."""
    return with_gaps(x) | (with_gaps(y) << np.uint64(1))


@kernel
def z_codes(lon, lat, extent):
    out = np.empty(lon.size, np.uint64)
    for i in range(lon.size):
        x = grid_coordinate(lon[i], extent[0], extent[2])
        out[i] = z_code(x, grid_coordinate(lat[i], extent[1], extent[3]))
    return out


@kernel
def file_codes(codes, offsets, frequency_terms, frequency_counts):
    """Reorder each conjunction so that its rarest positive term's literal comes first, and mark that term as the key.

    Terms absent from the (sorted) frequency table count as never seen; ties go to the smaller term id.
    """
    out = codes.copy()
    longest = np.int64(0)
    for row in range(offsets.size - 1):
        longest = max(longest, np.int64(offsets[row + 1]) - np.int64(offsets[row]))
    scratch = np.empty(longest, np.uint64)
    for row in range(offsets.size - 1):
        begin = offsets[row]
        while begin < offsets[row + 1]:
            if codes[begin] & LAST and codes[begin] & LENGTH == 1:  # one word: nothing to choose
                begin += 2
                continue
            end = begin
            best, best_end, best_key = np.int64(-1), np.int64(-1), np.int64(0)
            best_count, best_term = np.int64(1) << 62, np.uint64(0)
            while True:  # the literals of one conjunction
                header = codes[end]
                length = np.int64(header & LENGTH)
                if not header & NEGATIVE:
                    for j in range(length):
                        term = codes[end + 1 + j]
                        at = hashed_bound(frequency_terms, term)
                        count = np.int64(0)
                        if at < frequency_terms.size and frequency_terms[at] == term:
                            count = np.int64(frequency_counts[at])
                        if count < best_count or (count == best_count and term < best_term):
                            best, best_end, best_key = end, end + 1 + length, j
                            best_count, best_term = count, term
                end += 1 + length
                if header & LAST:
                    break
            if best == begin:
                out[begin] = (codes[begin] & ~(LENGTH << SIXTEEN)) | (np.uint64(best_key) << SIXTEEN)
            elif best > begin:
                size = best_end - best
                for j in range(size):
                    scratch[j] = codes[best + j]
                for j in range(best - begin):  # the literals before it move up
                    out[begin + size + j] = codes[begin + j]
                scratch[0] = (scratch[0] & ~(LENGTH << SIXTEEN) & ~LAST) | (np.uint64(best_key) << SIXTEEN)
                for j in range(size):
                    out[begin + j] = scratch[j]
                at, last = begin, begin
                while at < end:  # only the literal that is now last carries the mark
                    out[at] &= ~LAST
                    last = at
                    at += 1 + np.int64(out[at] & LENGTH)
                out[last] |= LAST
            begin = end
    return out


@kernel
def key_terms(codes, offsets):
    """(row, term) for every distinct term a row is filed under; ANY_TERM for a conjunction with no positive word."""
    most = offsets.size + codes.size // 2  # a conjunction is a header and a term at least, or there is none
    rows = np.empty(most, np.uint32)
    terms = np.empty(most, np.uint64)
    n = 0
    for row in range(offsets.size - 1):
        first = n
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        while True:
            term = np.uint64(0)
            if at < end:
                header = codes[at]
                if not header & NEGATIVE:
                    term = codes[at + 1 + np.int64((header >> SIXTEEN) & LENGTH)]
                at += 1 + np.int64(header & LENGTH)
                while not header & LAST:
                    header = codes[at]
                    at += 1 + np.int64(header & LENGTH)
            known = False
            for i in range(first, n):
                known = known or terms[i] == term
            if not known:
                rows[n] = row
                terms[n] = term
                n += 1
            if at >= end:
                break
    return rows[:n], terms[:n]


@inlined
def level_for(x0, y0, x1, y1, coarsest, finest, step, most_cells):
    """The finest level at which a box touches at most `most_cells` cells, but no coarser than `coarsest`."""
    level = finest
    while level > coarsest:
        shift = 32 - level
        cells = ((x1 >> shift) - (x0 >> shift) + 1) * ((y1 >> shift) - (y0 >> shift) + 1)
        if cells <= most_cells:
            break
        level = level - step if level - step > coarsest else coarsest
    return level


@kernel
def met_twice(rows, terms, boxes):
    """Which rows a post may meet twice: those over the antimeridian, and those with two keys that share a tag."""
    out = np.zeros(boxes.shape[0], np.bool_)
    for i in range(rows.size):
        row = rows[i]
        if boxes[row, 0] > boxes[row, 2]:
            out[row] = True
        j = i - 1
        while j >= 0 and rows[j] == row and not out[row]:
            out[row] = tag_of(terms[j]) == tag_of(terms[i])
            j -= 1
    return out


@kernel
def cover(rows, terms, boxes, extent, coarsest, finest, step, most_cells):
    """Directory pairs (sort key, entry) for every filed (row, term), unsorted.

    `boxes` are min_lon, min_lat, max_lon, max_lat by row; one that crosses the antimeridian is covered as two. With
    `coarsest == finest` every box goes to that one level, whatever the number of its cells (GI2's grid).
    """
    keys = np.empty(rows.size * 4 + 64, np.uint64)
    entries = np.empty(keys.size, np.uint64)
    done, n = np.int64(0), np.int64(0)
    while True:
        done, n, room = _cover_some(
            rows, terms, boxes, extent, coarsest, finest, step, most_cells, done, keys, entries, n
        )
        if done == rows.size:
            return keys[:n], entries[:n]
        size = 2 * keys.size + room
        keys, entries = grown(keys, size), grown(entries, size)


@kernel
def _cover_some(rows, terms, boxes, extent, coarsest, finest, step, most_cells, first, keys, entries, n):
    """`cover` from the pair `first` on, for as long as there is room: (pairs done, how many keys, room that the next
    one needs). A loop of its own: one in which arrays may be replaced takes several times as long.
    """
    for i in range(first, rows.size):
        row = rows[i]
        y0 = grid_coordinate(boxes[row, 1], extent[1], extent[3])
        y1 = grid_coordinate(boxes[row, 3], extent[1], extent[3])
        wraps = boxes[row, 0] > boxes[row, 2]
        before = n
        for part in range(2 if wraps else 1):
            west, east = boxes[row, 0], boxes[row, 2]
            if wraps and part == 0:
                east = 180.0
            elif wraps:
                west = -180.0
            x0 = grid_coordinate(west, extent[0], extent[2])
            x1 = grid_coordinate(east, extent[0], extent[2])
            level = finest
            if coarsest < finest:
                level = level_for(x0, y0, x1, y1, coarsest, finest, step, most_cells)
            shift = 32 - level
            fine = 24 - level
            cells = ((x1 >> shift) - (x0 >> shift) + 1) * ((y1 >> shift) - (y0 >> shift) + 1)
            if n + cells > keys.size:
                return i, before, 2 * cells
            for cell_x in range(x0 >> shift, (x1 >> shift) + 1):
                min_x = (x0 >> fine) & 255 if x0 >> shift == cell_x else 0
                max_x = (x1 >> fine) & 255 if x1 >> shift == cell_x else 255
                for cell_y in range(y0 >> shift, (y1 >> shift) + 1):
                    min_y = (y0 >> fine) & 255 if y0 >> shift == cell_y else 0
                    max_y = (y1 >> fine) & 255 if y1 >> shift == cell_y else 255
                    keys[n] = sort_key(cell_code(level, z_code(cell_x << shift, cell_y << shift)), terms[i])
                    box = (np.uint64(min_x) << np.uint64(32)) | (np.uint64(min_y) << np.uint64(40))
                    box |= (np.uint64(255 - max_x) << np.uint64(48)) | (np.uint64(255 - max_y) << np.uint64(56))
                    entries[n] = np.uint64(row) | box
                    n += 1
    return rows.size, n, np.int64(0)
