"""Checking one post against the conditions of a standing aggregate: what every index of such conditions ends with.

Attribute values are a kind and 64 bits, as in `index.groups`; so are the literals of predicates. What bits cannot tell
(the order of two strings) is answered UNSURE, and the caller asks the strings themselves.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from nearcast.kernels.match import first_true_key
from nearcast.kernels.mix import mix
from nearcast.kernels.regions import in_bbox, in_region
from nearcast.kernels.register import LAST, LENGTH, NEGATIVE

WHOLE, REAL, TIME, STRING, TRUTH, MISSING = range(6)  # kinds of values, as in index.groups
HUGE, MOMENT = 6, 7  # kinds of literals: a number beyond 64 bits; a string that is also a time
EQ, NE, LT, LE, GT, GE, IN, NOT_IN, NULL, NOT_NULL = range(10)
NO, YES, UNSURE, INCOMPARABLE = 0, 1, 2, 3
DOUBT = np.int64(1) << 62  # marks a row of the output that is UNSURE
CHECK_PLACE, CHECK_WORDS, CHECK_TESTS = 1 << 32, 1 << 33, 1 << 34  # flags of an entry, whose low bits are its row
ROW = np.int64(0xFFFFFFFF)


class Conditions(NamedTuple):
    """The conditions of rows. Row r has the tests `test_starts[predicate[r]]` up to the next; a test is the number of
    an attribute, an operator, and a run of literals (kind, bits, moment).
    """

    kinds: np.ndarray
    boxes: np.ndarray
    shape: np.ndarray
    shape_offsets: np.ndarray
    code: np.ndarray
    code_offsets: np.ndarray
    predicate: np.ndarray
    test_starts: np.ndarray
    tests: np.ndarray
    literals: np.ndarray
    reals: np.ndarray


class Posts(NamedTuple):
    """Posts along the Z-order curve, `order` being their numbers: `words[firsts[i]:firsts[i + 1] - 1]` are the distinct
    terms of the i-th. `terms` and `offsets` have all of them, by number.
    """

    order: np.ndarray
    lon: np.ndarray
    lat: np.ndarray
    z: np.ndarray
    words: np.ndarray
    firsts: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray


class Values(NamedTuple):
    """Attribute values, posts (along the curve) × attributes: kinds, bits, numbers as doubles, and codes: numbers by value and in order,
    others their bits. `columns` leads from the numbers of attributes in tests to those here.
    """

    kinds: np.ndarray
    bits: np.ndarray
    reals: np.ndarray
    codes: np.ndarray
    columns: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def ordered(op, before, equal):
    """A comparison, given how its sides lie; a NaN is neither before nor equal nor after: see `compare`."""
    if op == EQ:
        return equal
    if op == NE:
        return not equal
    if op == LT:
        return before
    if op == LE:
        return before or equal
    if op == GT:
        return not before and not equal
    return not before


@njit(cache=True, nogil=True)
def compare(op, kind, bits, real, literal, literal_real):
    """NO, YES, UNSURE or, of kinds that do not compare, INCOMPARABLE."""
    other = literal[0]
    if kind == WHOLE and other == WHOLE:
        return YES if ordered(op, bits < literal[1], bits == literal[1]) else NO
    if (kind == WHOLE and other == REAL) or (kind == REAL and (other == WHOLE or other == REAL or other == HUGE)):
        if real != real or literal_real != literal_real:
            return YES if op == NE else NO
        return YES if ordered(op, real < literal_real, real == literal_real) else NO
    if kind == TIME and other == MOMENT:
        return YES if ordered(op, bits < literal[2], bits == literal[2]) else NO
    if (kind == STRING and (other == STRING or other == MOMENT)) or (kind == TRUTH and other == TRUTH):
        if op > NE:
            return UNSURE
        return YES if (bits == literal[1]) == (op == EQ) else NO
    return INCOMPARABLE


@njit(cache=True, nogil=True)
def passes(row, post, conditions, values):
    """Whether a post satisfies all predicates of a row: NO, YES or UNSURE."""
    answer = YES
    which = conditions.predicate[row]
    for t in range(conditions.test_starts[which], conditions.test_starts[which + 1]):
        test = conditions.tests[t]
        column = values.columns[test[0]]
        kind, op = values.kinds[post, column], test[1]
        if op == NULL or kind == MISSING:
            if (kind == MISSING) != (op == NULL):
                return NO
            continue
        if op == NOT_NULL:
            continue
        bits, real = values.bits[post, column], values.reals[post, column]
        wanted = EQ if op == IN or op == NOT_IN else op
        best, comparable = NO, False
        for i in range(test[2], test[3]):
            got = compare(wanted, kind, bits, real, conditions.literals[i], conditions.reals[i])
            comparable |= got != INCOMPARABLE
            if got == YES or got == UNSURE:
                best = got
        if op == NOT_IN:
            best = YES if comparable and best == NO else NO
        if best == NO:
            return NO
        if best == UNSURE:
            answer = UNSURE
    return answer


@njit(cache=True, nogil=True)
def in_place(row, post, conditions, posts):
    """Whether a post lies in the region of a row."""
    box = conditions.boxes[row]
    lon, lat = posts.lon[post], posts.lat[post]
    if not in_bbox(box[0], box[1], box[2], box[3], lon, lat):
        return False
    kind = conditions.kinds[row]
    return kind <= 1 or in_region(
        kind, box[0], box[1], box[2], box[3], conditions.shape,
        np.int64(conditions.shape_offsets[row]), np.int64(conditions.shape_offsets[row + 1]), lon, lat,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def true_key(row, post, conditions, posts):
    """(whether a post has the words of a row, the key of the first conjunction that it satisfies)."""
    first, last = posts.firsts[post], posts.firsts[post + 1] - 1
    return first_true_key(
        conditions.code, np.int64(conditions.code_offsets[row]), np.int64(conditions.code_offsets[row + 1]),
        posts.terms, posts.offsets, posts.order[post], posts.words[first:last], last - first,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def check(count, near, entries, terms, conditions, posts, values, inactive, found, out_posts, out_rows):
    """The candidates, pairs (post, entry), that satisfy what their entry leaves open, written from `found` on; with a
    term of its own the entry holds only if that is the key of the first conjunction that is true. Returns where they
    end, -1 if there is no room.
    """
    boxes, kinds, order, lon, lat = conditions.boxes, conditions.kinds, posts.order, posts.lon, posts.lat
    for i in range(count):
        post, entry = near[2 * i], entries[near[2 * i + 1]]
        row, answer = entry & ROW, YES
        if inactive[row]:
            continue
        if entry & CHECK_PLACE:
            if not (boxes[row, 1] <= lat[post] <= boxes[row, 3]):
                continue
            plain = kinds[row] <= 1 and boxes[row, 0] <= lon[post] <= boxes[row, 2]  # most are; the rest takes a call
            if not plain and not in_place(row, post, conditions, posts):
                continue
        if entry & CHECK_TESTS:
            answer = passes(row, post, conditions, values)
            if answer == NO:
                continue
        if entry & CHECK_WORDS:
            ok, key = true_key(row, post, conditions, posts)
            if not ok or (terms[near[2 * i + 1]] != 0 and key != terms[near[2 * i + 1]]):
                continue
        if found == out_posts.size:
            return -1
        out_posts[found] = order[post]
        out_rows[found] = row | (DOUBT if answer == UNSURE else 0)
        found += 1
    return found


@njit(cache=True, nogil=True)
def passing(pair_posts, pair_rows, conditions, values):
    """Of each pair whether the post satisfies the predicates of the row: NO, YES or UNSURE."""
    out = np.empty(pair_posts.size, np.uint8)
    for i in range(pair_posts.size):
        out[i] = passes(pair_rows[i], pair_posts[i], conditions, values)
    return out


@njit(cache=True, nogil=True)
def condition_hashes(kinds, boxes, shape, shape_offsets, code, code_offsets, predicates):
    """Two hashes of the conditions of each row; those of words do not depend on the order of words in a conjunction,
    nor on that of conjunctions, nor on which word is the key.
    """
    bits, floats = boxes.view(np.uint64), shape.view(np.uint64)
    out = np.empty((kinds.size, 2), np.uint64)
    for row in range(kinds.size):
        for seed in range(2):
            h = mix(np.uint64(predicates[row]) ^ mix(np.uint64(seed)) ^ np.uint64(kinds[row]))
            for j in range(4):
                h = mix(h ^ bits[row, j])
            for j in range(shape_offsets[row], shape_offsets[row + 1]):
                h = mix(h ^ floats[j])
            at, end = np.int64(code_offsets[row]), np.int64(code_offsets[row + 1])
            every, one = np.uint64(0), np.uint64(0)
            while at < end:
                header = code[at]
                literal = mix(np.uint64(seed + 2) ^ (header & (LENGTH | NEGATIVE)))
                length = np.int64(header & LENGTH)
                for j in range(length):
                    literal = mix(literal ^ code[at + 1 + j])
                one += literal
                if header & LAST:
                    every += mix(one)
                    one = np.uint64(0)
                at += 1 + length
            out[row, seed] = mix(h ^ every)
    return out
