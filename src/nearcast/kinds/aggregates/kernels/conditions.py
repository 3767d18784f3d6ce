"""Checking one post against the conditions of a standing aggregate: what every index of such conditions ends with.

Attribute values are a kind and 64 bits, as in `kinds.aggregates.groups`; so are the literals of predicates. What bits
cannot tell (the order of two strings) is answered UNSURE, and the caller asks the strings themselves.
"""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.geometry import in_bbox, in_region
from nearcast.common.kernels.mix import mix
from nearcast.storage.subscriptions.kernels.match import first_true_key
from nearcast.storage.subscriptions.kernels.register import LAST, LENGTH, NEGATIVE

WHOLE, REAL, TIME, STRING, TRUTH, MISSING = range(6)  # kinds of values, as in index.groups
HUGE, MOMENT = 6, 7  # kinds of literals: a number beyond 64 bits; a string that is also a time
EQ, NE, LT, LE, GT, GE, IN, NOT_IN, NULL, NOT_NULL = range(10)
NO, YES, UNSURE, INCOMPARABLE = 0, 1, 2, 3
DOUBT = np.int64(1) << 62  # marks a row of the output that is UNSURE
CHECK_PLACE, CHECK_WORDS, CHECK_TESTS, CHECK_ALL_WORDS = 1 << 32, 1 << 33, 1 << 34, 1 << 35
ROW = np.int64(0xFFFFFFFF)  # an entry is a row and flags that say what is to be checked


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
    """Attribute values, posts (along the curve) × attributes: kinds, bits, numbers as doubles, and codes: numbers by
    value and in order, others their bits. `columns` leads from the numbers of attributes in tests to those here.
    """

    kinds: np.ndarray
    bits: np.ndarray
    reals: np.ndarray
    codes: np.ndarray
    columns: np.ndarray


@inlined
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


@kernel
def compare(op, kind, bits, real, other, other_bits, other_moment, other_real):
    """A value with a literal: NO, YES, UNSURE or, of kinds that do not compare, INCOMPARABLE."""
    if kind == WHOLE and other == WHOLE:
        return YES if ordered(op, bits < other_bits, bits == other_bits) else NO
    if (kind == WHOLE and other == REAL) or (kind == REAL and other in (WHOLE, REAL, HUGE)):
        if real != real or other_real != other_real:
            return YES if op == NE else NO
        return YES if ordered(op, real < other_real, real == other_real) else NO
    if kind == TIME and other == MOMENT:
        return YES if ordered(op, bits < other_moment, bits == other_moment) else NO
    if (kind == STRING and other in (STRING, MOMENT)) or (kind == TRUTH and other == TRUTH):
        if op > NE:
            return UNSURE
        return YES if (bits == other_bits) == (op == EQ) else NO
    return INCOMPARABLE


@kernel
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


@kernel
def true_key(row, post, conditions, posts):
    """(whether a post has the words of a row, the key of the first conjunction that it satisfies)."""
    first, last = posts.firsts[post], posts.firsts[post + 1] - 1
    return first_true_key(
        conditions.code, np.int64(conditions.code_offsets[row]), np.int64(conditions.code_offsets[row + 1]),
        posts.terms, posts.offsets, posts.order[post], posts.words[first:last], last - first,
    )  # fmt: skip


# -- candidates: pairs (post, number of an entry), checked step by step; each moves those it keeps to the front --------


@kernel
def meet_places(count, near, entries, conditions, posts):
    """The candidates that lie in the region of their row. A rectangle is looked at here, others by a call, which takes
    longer.
    """
    kinds, boxes, lon, lat = conditions.kinds, conditions.boxes, posts.lon, posts.lat
    kept = 0
    for i in range(count):
        post, at = near[2 * i], near[2 * i + 1]
        if entries[at] & CHECK_PLACE:
            row = entries[at] & ROW
            if not (boxes[row, 1] <= lat[post] <= boxes[row, 3]):
                continue
            plain = kinds[row] <= 1 and boxes[row, 0] <= lon[post] <= boxes[row, 2]
            if not plain and not in_place(row, post, conditions, posts):
                continue
        near[2 * kept], near[2 * kept + 1] = post, at
        kept += 1
    return kept


@kernel
def meet_tests(count, near, entries, conditions, values):
    """The candidates that satisfy the predicates of their row; with DOUBT where that is UNSURE."""
    _, _, _, _, _, _, predicate, test_starts, tests, literals, literal_reals = conditions
    kinds, bits, reals, _, columns = values
    kept = 0
    for i in range(count):
        post, at, answer = near[2 * i], near[2 * i + 1], YES
        if entries[at] & CHECK_TESTS:
            which = predicate[entries[at] & ROW]
            for t in range(test_starts[which], test_starts[which + 1]):
                column, op = columns[tests[t, 0]], tests[t, 1]
                kind = kinds[post, column]
                if op == NULL or kind == MISSING:
                    got = YES if (kind == MISSING) == (op == NULL) else NO
                elif op == NOT_NULL:
                    got = YES
                else:
                    got, comparable, bit, real = NO, False, bits[post, column], reals[post, column]
                    wanted = EQ if op in (IN, NOT_IN) else op
                    for j in range(tests[t, 2], tests[t, 3]):
                        one = compare(
                            wanted, kind, bit, real, literals[j, 0], literals[j, 1], literals[j, 2], literal_reals[j]
                        )
                        comparable |= one != INCOMPARABLE
                        got = one if one in (YES, UNSURE) else got
                    if op == NOT_IN:
                        got = YES if comparable and got == NO else NO
                if got != YES:
                    answer = got
                    if got == NO:
                        break
        if answer != NO:
            near[2 * kept], near[2 * kept + 1] = post, at | (DOUBT if answer == UNSURE else 0)
            kept += 1
    return kept


@kernel
def meet_words(count, near, entries, terms, conditions, posts):
    """The candidates that have the words of their row; where the entry has a term of its own, only if that is the key
    of the first conjunction that is true. All of some words are looked at here, other expressions by a call.
    """
    code, code_offsets, words, firsts = conditions.code, conditions.code_offsets, posts.words, posts.firsts
    kept = 0
    for i in range(count):
        post, at = near[2 * i], near[2 * i + 1] & (DOUBT - 1)
        row, present = entries[at] & ROW, True
        if entries[at] & CHECK_ALL_WORDS:
            for c in range(code_offsets[row] + 1, code_offsets[row + 1], 2):
                present = False
                for j in range(firsts[post], firsts[post + 1] - 1):
                    if words[j] == code[c]:
                        present = True
                        break
                if not present:
                    break
        elif entries[at] & CHECK_WORDS:
            present, key = true_key(row, post, conditions, posts)
            present = present and (terms[at] == 0 or key == terms[at])
        if present:
            near[2 * kept], near[2 * kept + 1] = post, near[2 * i + 1]
            kept += 1
    return kept


@kernel
def check(count, near, entries, terms, conditions, posts, values, inactive, found, out_posts, out_rows):
    """The candidates that satisfy what their entry leaves open, written from `found` on as (post, row), the row with
    DOUBT where it is. Returns where they end, -1 if there is no room.
    """
    count = meet_places(count, near, entries, conditions, posts)
    count = meet_tests(count, near, entries, conditions, values)
    count = meet_words(count, near, entries, terms, conditions, posts)
    order = posts.order
    for i in range(count):
        row = entries[near[2 * i + 1] & (DOUBT - 1)] & ROW
        if inactive[row]:
            continue
        if found == out_posts.size:
            return -1
        out_posts[found] = order[near[2 * i]]
        out_rows[found] = row | (near[2 * i + 1] & DOUBT)
        found += 1
    return found


@kernel
def word_checks(code, code_offsets):
    """How the words of each row are checked: as all of some words where they are that, else as an expression; or not at
    all.
    """
    out = np.zeros(code_offsets.size - 1, np.int64)
    for row in range(out.size):
        at, end = np.int64(code_offsets[row]), np.int64(code_offsets[row + 1])
        if at < end:
            out[row] = CHECK_ALL_WORDS
        while at < end:
            if code[at] & (LENGTH | NEGATIVE) != 1 or (code[at] & LAST != 0) != (at + 2 == end):
                out[row] = CHECK_WORDS
                break
            at += 2
    return out


@kernel
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
