"""Matching posts with subscriptions: the hot loop of the system.

Posts are lined up in Z-order and matched a wave at a time, each wave in steps: for each level of the pyramid the cell,
found by moving a cursor on; for each distinct term one bit of one word of the cell; the few entries of that word, whose
tags and small boxes reject most candidates; the exact box, words, region and time of what is left. A step looks at all
posts of the wave before the next begins and asks for the memory that the next will need, so that the processor waits
for little of it.
"""

import numpy as np

from nearcast.common.kernels.compiled import forced_inline, inlined, kernel
from nearcast.common.kernels.geometry import in_bbox, in_region
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.sorting import lower_bound, sort_in_place
from nearcast.storage.subscriptions.kernels.directory import cell_code, seek, tag_of
from nearcast.storage.subscriptions.kernels.register import LAST, LENGTH, NEGATIVE, SIXTEEN, grid_coordinate, z_code

FEW = 40  # up to so many terms a linear scan beats sorting
BEGINNING = np.int64(-(2**63))
NEVER = np.int64(2**63 - 1)
WAVE = 64  # posts
AHEAD = 10  # posts, for which memory is asked beforehand
SEQ, CODE, START, END = 4, 5, 6, 7  # columns of a record; the first four are its box
WAITS = np.int64(1) << 60  # flags of a record
TWICE = np.int64(1) << 61
LANES = np.uint64(0x00FF00FF00FF00FF)
GUARDS = np.uint64(0x0100010001000100)


@forced_inline
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


@inlined
def has_term(term, distinct, n):
    if n > FEW:
        at = lower_bound(distinct[:n], term)
        return at < n and distinct[at] == term
    for j in range(n):  # noqa: SIM110 (any() is slower here)
        if distinct[j] == term:
            return True
    return False


@kernel
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


@forced_inline
def first_true_key(code, begin, end, terms, offsets, post, distinct, n):
    """(found, key): the key of the first conjunction that the post satisfies; an empty code is satisfied under
    ANY_TERM. `distinct` are the post's n distinct terms, sorted if there are more than FEW.
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
                    if not has_term(code[begin + 1 + j], distinct, n):
                        present = False
                        break
                if present and length > 1:
                    present = has_phrase(code, begin + 1, length, terms, offsets[post], offsets[post + 1])
                satisfied = present != ((header & NEGATIVE) != 0)
            begin += 1 + length
            if header & LAST:
                break
        if satisfied:
            return True, key
    return False, np.uint64(0)


@inlined
def ends_at(start, end, life, first_post):
    """When a subscription ends: FOR counts from its start, or from the first post where it began with the stream."""
    if life == NEVER:
        return end
    base = start if start != BEGINNING else first_post
    if base == NEVER or base > NEVER - life:
        return end
    return end if end < base + life else base + life


@kernel
def row_ends(start, end, life, first_post):
    out = np.empty(start.size, np.int64)
    for row in range(start.size):
        out[row] = ends_at(start[row], end[row], life[row], first_post)
    return out


@kernel
def make_records(seq, boxes, start, end, life, kinds, code_offsets, twice):
    """What matching reads of a row, in one cache line: four doubles for the box, seq, code, start, end.

    The word for the code: where it begins (32 bits), its length (24), the kind of region (4), whether FOR waits for
    the first post, and whether a post may meet the row twice.
    """
    out = np.empty((start.size, 8), np.int64)
    bits = boxes.view(np.int64)
    for row in range(start.size):
        for j in range(4):
            out[row, j] = bits[row, j]
        begin = np.int64(code_offsets[row])
        word = begin | (np.int64(code_offsets[row + 1]) - begin) << 32 | np.int64(kinds[row]) << 56
        out[row, SEQ] = seq[row]
        out[row, CODE] = word | (WAITS if life[row] != NEVER else 0) | (TWICE if twice[row] else 0)
        out[row, START] = start[row]
        out[row, END] = end[row]
    return out


@kernel
def line_up(wanted, lon, lat, ts, terms, offsets, extent, places, times, grid, firsts, words):
    """The posts to match, one after the other in memory: place and time, grid coordinates, and distinct terms with
    ANY_TERM, which every post has, as the last. (The caller allocates: NumPy's large arrays lie in huge pages.)
    """
    count = 0
    for w in range(wanted.size):
        if w + 2 * AHEAD < wanted.size:
            prefetch(offsets, wanted[w + 2 * AHEAD])
            soon = wanted[w + AHEAD]
            prefetch(terms, offsets[soon])
            prefetch(lon, soon)
            prefetch(lat, soon)
            prefetch(ts, soon)
        post = wanted[w]
        places[w, 0], places[w, 1], times[w] = lon[post], lat[post], ts[post]
        grid[w, 0] = grid_coordinate(lon[post], extent[0], extent[2])
        grid[w, 1] = grid_coordinate(lat[post], extent[1], extent[3])
        firsts[w] = count
        count += distinct_terms(terms, offsets[post], offsets[post + 1], words[count:])
        words[count] = np.uint64(0)
        count += 1
    firsts[wanted.size] = count


@kernel
def find_cells(begin, end, grid, levels, cells, starts, signs, cursors, hits, boxes):
    """(post, first word, bits of a word's number) for every cell of a post that has entries, and the place inside it as
    four 16-bit lanes.
    """
    found = 0
    for at_level in range(levels.size):
        level = np.int64(levels[at_level])
        at = cursors[at_level]
        for post in range(begin, end):
            x, y = grid[post, 0], grid[post, 1]
            cell = cell_code(level, z_code(x, y))
            at = seek(cells, cell, at)
            if at == cells.size or cells[at] != cell:
                continue
            first = np.int64(starts[at])
            prefetch(signs, first)
            bits = 0
            while first + (np.int64(1) << bits) < np.int64(starts[at + 1]):
                bits += 1
            inside_x = np.uint64((x >> (24 - level)) & 255)
            inside_y = np.uint64((y >> (24 - level)) & 255)
            box = inside_x | inside_y << np.uint64(16)
            box |= (np.uint64(255) - inside_x) << np.uint64(32) | (np.uint64(255) - inside_y) << np.uint64(48)
            hits[found, 0], hits[found, 1], hits[found, 2] = post, first, bits
            boxes[found] = box | GUARDS
            found += 1
        cursors[at_level] = at
    return found


@kernel
def find_words(count, hits, words, firsts, signs, bases, probes):
    """(cell, position of a term, word) wherever the bit of a post's term is set."""
    found = 0
    for hit in range(count):
        post, first, bits = hits[hit, 0], hits[hit, 1], np.uint64(hits[hit, 2])
        for t in range(firsts[post], firsts[post + 1]):
            term = words[t]
            word = first + np.int64((term >> np.uint64(32)) >> (np.uint64(32) - bits))
            if signs[word] >> (term >> (np.uint64(58) - bits) & np.uint64(63)) & np.uint64(1):
                prefetch(bases, word)
                probes[found, 0], probes[found, 1], probes[found, 2] = hit, t, word
                found += 1
    return found


@inlined
def widened(box):
    """Four bytes as four 16-bit lanes."""
    v = (box | (box << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (v | (v << np.uint64(8))) & LANES


@kernel
def find_rows(count, probes, hits, boxes, words, bases, tags, entries, records, near):
    """(post, position of the term, row) of the entries whose tag and small box fit. Returns their number and the array,
    a larger one if need be.
    """
    for probe in range(count):
        first = np.int64(bases[probes[probe, 2]])
        prefetch(tags, first)
        prefetch(entries, first)
    found = 0
    for probe in range(count):
        hit, t, word = probes[probe, 0], probes[probe, 1], probes[probe, 2]
        tag = tag_of(words[t])
        for e in range(bases[word], bases[word + 1]):
            if tags[e] != tag:
                continue
            entry = entries[e]
            if (boxes[hit] - widened(entry >> np.uint64(32))) & GUARDS != GUARDS:
                continue
            row = np.int64(entry & np.uint64(0xFFFFFFFF))
            prefetch(records, row)
            if 3 * found + 3 > near.size:
                near = grown(near, 2 * near.size)
            near[3 * found], near[3 * found + 1], near[3 * found + 2] = hits[hit, 0], t, row
            found += 1
    return found, near


@kernel
def in_boxes(count, near, places, records, bounds, code):
    """Those of the candidates whose exact box holds the post, moved to the front; their number."""
    kept = 0
    for i in range(count):
        post, row = near[3 * i], near[3 * i + 2]
        if in_bbox(bounds[row, 0], bounds[row, 1], bounds[row, 2], bounds[row, 3], places[post, 0], places[post, 1]):
            prefetch(code, records[row, CODE] & 0xFFFFFFFF)
            near[3 * kept], near[3 * kept + 1], near[3 * kept + 2] = post, near[3 * i + 1], row
            kept += 1
    return kept


@forced_inline
def holds(row, term, lon, lat, ts, terms, offsets, post, distinct, first_post, asked, moved_ends):
    """Whether a post in the box of a subscription satisfies it, under this term and no other."""
    records, bounds, code, shape, shape_offsets, life = asked
    changed, changed_rows, changed_ends = moved_ends
    word = records[row, CODE]
    begin = word & 0xFFFFFFFF
    ok, true_key = first_true_key(
        code, begin, begin + ((word >> 32) & 0xFFFFFF), terms, offsets, post, distinct, distinct.size
    )
    if not ok or true_key != term:
        return False
    kind = (word >> 56) & 15
    if kind > 1 and not in_region(
        kind, bounds[row, 0], bounds[row, 1], bounds[row, 2], bounds[row, 3],
        shape, np.int64(shape_offsets[row]), np.int64(shape_offsets[row + 1]), lon, lat,
    ):  # fmt: skip
        return False
    start, stop = records[row, START], records[row, END]
    if word & WAITS:
        stop = ends_at(start, stop, life[row], first_post)
    if changed[row >> 6] >> np.uint64(row & 63) & np.uint64(1):
        moved = changed_ends[lower_bound(changed_rows, row)]
        stop = moved if moved < stop else stop
    return start <= ts and ts < stop


@kernel
def match_posts(line, first_post, directory, asked, moved_ends, begin, cursors, out_posts, out_rows):
    """Match the posts of a line from the `begin`th on with the rows of one segment, until done or until the output is
    full.

    `cursors` are positions in the directory's cells, one a level, kept from call to call. Returns (number of pairs,
    next post to do, candidates whose rows were looked at).
    """
    wanted, places, times, grid, words, firsts, terms, offsets = line
    levels, cells, starts, signs, bases, tags, entries = directory
    records, bounds, code, _, _, _ = asked
    hits, boxes = np.empty((WAVE * levels.size, 3), np.int64), np.empty(WAVE * levels.size, np.uint64)
    probes = np.empty((32 * hits.size, 3), np.int64)
    near = np.empty(3 * 16 * WAVE, np.int64)
    behind = np.empty(levels.size, np.int64)
    found = candidates = 0
    while begin < wanted.size:
        end = begin + WAVE if begin + WAVE < wanted.size else wanted.size
        if probes.shape[0] < levels.size * (firsts[end] - firsts[begin]):
            probes = np.empty((levels.size * (firsts[end] - firsts[begin]), 3), np.int64)
        for i in range(levels.size):
            behind[i] = cursors[i]
        count = find_cells(begin, end, grid, levels, cells, starts, signs, cursors, hits, boxes)
        count = find_words(count, hits, words, firsts, signs, bases, probes)
        count, near = find_rows(count, probes, hits, boxes, words, bases, tags, entries, records, near)
        looked = candidates + count
        count = in_boxes(count, near, places, records, bounds, code)
        before = found
        for i in range(count):
            at, row = near[3 * i], near[3 * i + 2]
            post = wanted[at]
            if not holds(
                row, words[near[3 * i + 1]], places[at, 0], places[at, 1], times[at],
                terms, offsets, post, words[firsts[at] : firsts[at + 1] - 1], first_post, asked, moved_ends,
            ):  # fmt: skip
                continue
            if records[row, CODE] & TWICE and is_known(out_posts, out_rows, before, found, post, row):
                continue
            if found == out_posts.size:  # the wave will be matched again
                for j in range(levels.size):
                    cursors[j] = behind[j]
                return before, begin, candidates
            out_posts[found] = post
            out_rows[found] = row
            found += 1
        candidates = looked
        begin = end
    return found, wanted.size, candidates


@kernel
def is_known(posts, rows, begin, end, post, row):
    for i in range(begin, end):  # noqa: SIM110 (any() is slower here)
        if rows[i] == row and posts[i] == post:
            return True
    return False
