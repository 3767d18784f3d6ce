"""Matching posts with subscriptions: the hot loop of the system.

For each post, in Z-order, and each level of the pyramid: its cell, found by moving a cursor on; for each of its
distinct terms one bit of the cell's sign, then the entries of that term, whose small boxes reject most candidates;
what is left is decided exactly.
"""

import numpy as np
from numba import njit

from nearcast.kernels.directory import CELL_BITS, cell_code, seek, seek_tag
from nearcast.kernels.regions import in_bbox, in_region
from nearcast.kernels.register import LAST, LENGTH, NEGATIVE, SIXTEEN, grid_coordinate, z_code
from nearcast.kernels.sorting import lower_bound, sort_in_place

FEW = 40  # up to so many terms a linear scan beats sorting
BEGINNING = np.int64(-(2**63))
NEVER = np.int64(2**63 - 1)


@njit(cache=True, nogil=True)
def distinct_terms(terms, begin, end, scratch):
    """The distinct terms of a post into `scratch`, sorted if there are more than FEW; boundaries (0) left out."""
    n = 0
    if end - begin <= FEW:
        for i in range(begin, end):
            term = terms[i]
            if term == 0:
                continue
            known = False
            for j in range(n):
                if scratch[j] == term:
                    known = True
                    break
            if not known:
                scratch[n] = term
                n += 1
        return n
    for i in range(begin, end):
        scratch[i - begin] = terms[i]
    sort_in_place(scratch, end - begin)
    for i in range(end - begin):
        if scratch[i] != 0 and (n == 0 or scratch[i] != scratch[n - 1]):
            scratch[n] = scratch[i]
            n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def has_term(term, distinct, n, is_sorted):
    if is_sorted:
        at = lower_bound(distinct[:n], term)
        return at < n and distinct[at] == term
    for j in range(n):  # noqa: SIM110 (any() is slower here)
        if distinct[j] == term:
            return True
    return False


@njit(cache=True, nogil=True)
def has_phrase(code, begin, length, terms, first, last):
    """Whether `length` terms of the code follow each other in the post's terms."""
    for i in range(first, last - length + 1):
        hit = True
        for j in range(length):
            if terms[i + j] != code[begin + j]:
                hit = False
                break
        if hit:
            return True
    return False


@njit(cache=True, nogil=True)
def first_true_key(code, begin, end, terms, first, last, distinct, n, is_sorted):
    """(found, key): the key of the first conjunction that the post satisfies; an empty code is satisfied under
    ANY_TERM.
    """
    if begin == end:
        return True, np.uint64(0)
    while begin < end:
        key = np.uint64(0)
        header = code[begin]
        if not header & NEGATIVE:
            key = code[begin + 1 + np.int64((header >> SIXTEEN) & LENGTH)]
        satisfied = True
        while True:
            header = code[begin]
            length = np.int64(header & LENGTH)
            if satisfied:
                present = True
                for j in range(length):
                    if not has_term(code[begin + 1 + j], distinct, n, is_sorted):
                        present = False
                        break
                if present and length > 1:
                    present = has_phrase(code, begin + 1, length, terms, first, last)
                satisfied = present != ((header & NEGATIVE) != 0)
            begin += 1 + length
            if header & LAST:
                break
        if satisfied:
            return True, key
    return False, np.uint64(0)


@njit(cache=True, nogil=True, inline="always")
def ends_at(start, end, life, first_post):
    """When a subscription ends: FOR counts from its start, or from the first post where it began with the stream."""
    if life == NEVER:
        return end
    base = start if start != BEGINNING else first_post
    if base == NEVER or base > NEVER - life:
        return end
    return end if end < base + life else base + life


@njit(cache=True, nogil=True)
def row_ends(start, end, life, first_post):
    out = np.empty(start.size, np.int64)
    for row in range(start.size):
        out[row] = ends_at(start[row], end[row], life[row], first_post)
    return out


@njit(cache=True, nogil=True)
def match_posts(
    wanted, lon, lat, ts, terms, offsets, first_post,
    extent, levels, cells, starts, signs, tags, entries,
    boxes, kinds, shape, shape_offsets, code, code_offsets, start, end, life, changed, changed_rows, changed_ends,
    begin, cursors, out_posts, out_rows,
):  # fmt: skip
    """Match posts `wanted[begin:]`, which are in Z-order, with one segment, until done or until the output is full.

    `levels` are the levels that have entries, `cursors` a position in `cells` for each, kept from call to call.
    `changed` has one bit per row whose end was moved by a later op; the sorted `changed_rows` hold the new ends.
    Returns (number of pairs, next post to do, candidates whose rows were looked at).
    """
    scratch = np.empty(FEW + 2, np.uint64)
    found = 0
    candidates = 0
    limit = out_posts.size
    for w in range(begin, wanted.size):
        post = wanted[w]
        first, last = offsets[post], offsets[post + 1]
        if last - first + 2 > scratch.size:
            scratch = np.empty(2 * (last - first), np.uint64)
        is_sorted = last - first > FEW
        n = distinct_terms(terms, first, last, scratch)
        scratch[n] = np.uint64(0)  # every post has ANY_TERM
        x = grid_coordinate(lon[post], extent[0], extent[2])
        y = grid_coordinate(lat[post], extent[1], extent[3])
        z = z_code(x, y)
        before = found
        for at_level in range(levels.size):
            level = np.int64(levels[at_level])
            cell = cell_code(level, z)
            at = seek(cells, cell, cursors[at_level])
            cursors[at_level] = at
            if at == cells.size or cells[at] != cell:
                continue
            inside_x = np.uint64((x >> (24 - level)) & 255)
            inside_y = np.uint64((y >> (24 - level)) & 255)
            for t in range(n + 1):
                term = scratch[t]
                sign_class = np.int64(term >> np.uint64(56))
                if not signs[4 * at + (sign_class >> 6)] >> np.uint64(sign_class & 63) & np.uint64(1):
                    continue
                tag = term >> np.uint64(CELL_BITS)
                e = seek_tag(tags, np.int64(starts[at]), np.int64(starts[at + 1]), tag)
                while e < starts[at + 1] and tags[e] == tag:
                    entry = entries[e]
                    e += 1
                    if inside_x < (entry >> np.uint64(32)) & np.uint64(255):
                        continue
                    if inside_y < (entry >> np.uint64(40)) & np.uint64(255):
                        continue
                    if inside_x > (entry >> np.uint64(48)) & np.uint64(255):
                        continue
                    if inside_y > (entry >> np.uint64(56)):
                        continue
                    candidates += 1
                    row = np.int64(entry & np.uint64(0xFFFFFFFF))
                    west, south, east, north = boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3]
                    if not in_bbox(west, south, east, north, lon[post], lat[post]):
                        continue
                    ok, true_key = first_true_key(
                        code, np.int64(code_offsets[row]), np.int64(code_offsets[row + 1]),
                        terms, first, last, scratch, n, is_sorted,
                    )  # fmt: skip
                    if not ok or true_key != term:
                        continue
                    if kinds[row] > 1 and not in_region(
                        kinds[row], west, south, east, north,
                        shape, np.int64(shape_offsets[row]), np.int64(shape_offsets[row + 1]), lon[post], lat[post],
                    ):  # fmt: skip
                        continue
                    stop = ends_at(start[row], end[row], life[row], first_post)
                    if changed[row >> 6] >> np.uint64(row & 63) & np.uint64(1):
                        moved = changed_ends[lower_bound(changed_rows, row)]
                        stop = moved if moved < stop else stop
                    if ts[post] < start[row] or ts[post] >= stop:
                        continue
                    if west > east:  # a box over the antimeridian is filed twice and may be met twice
                        met = False
                        for o in range(before, found):
                            if out_rows[o] == row:
                                met = True
                                break
                        if met:
                            continue
                    if found == limit:
                        return before, w, candidates
                    out_posts[found] = post
                    out_rows[found] = row
                    found += 1
    return found, wanted.size, candidates
