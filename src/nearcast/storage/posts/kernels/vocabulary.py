"""Vocabularies: distinct terms, how many posts have each, and posts as numbers into them."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.mix import slot_of
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.sorting import sort_in_place
from nearcast.storage.subscriptions.kernels.match import FEW

AHEAD = 8  # posts, whose terms are asked for beforehand
GUESSES = 6  # of a place among so many hashes: 2 to 4 mostly do
CODE = np.uint64(0xFFFFFFFF)
ONE = np.uint64(1 << 32)
ZERO = np.uint64(0)


@kernel
def encode_terms(terms, offsets, order):
    """(codes, offsets, repeats, vocabulary, counts) of the posts in the given order: each term as its first-seen
    number; which posts have a term twice; in how many posts each term occurs.

    The boundary term 0 is coded like any other, counts nothing and is no repetition. A slot of the table is two words
    side by side, the term and its code (plus one) with its count, so a term costs one cache line; the lines of a post
    are asked for before the first is needed.
    """
    slots = 1 << 12
    table = np.zeros(2 * slots, np.uint64)
    vocabulary = np.empty(slots, np.uint64)
    bounds = np.empty(order.size + 1, np.int64)
    repeats = np.zeros(order.size, np.bool_)
    total = np.int64(0)
    longest = np.int64(0)
    for post in range(order.size):
        bounds[post] = total
        length = offsets[order[post] + 1] - offsets[order[post]]
        longest = max(longest, length)
        total += length
    bounds[order.size] = total
    codes = np.empty(total, np.uint32)
    places = np.empty(longest, np.int64)
    size = 0
    for post in range(order.size):
        first, last = offsets[order[post]], offsets[order[post] + 1]
        if post + 2 * AHEAD < order.size:
            prefetch(offsets, order[post + 2 * AHEAD])
            prefetch(terms, offsets[order[post + AHEAD]])
            prefetch(terms, offsets[order[post + AHEAD]] + 8)
        if 2 * (size + last - first) > slots:
            while 2 * (size + last - first) > slots:
                slots *= 2
            table = _laid_out(table, slots)
            vocabulary = grown(vocabulary, slots)
        for i in range(first, last):
            slot = slot_of(terms[i], slots)
            places[i - first] = slot
            prefetch(table, 2 * slot)
        at = bounds[post]
        for i in range(first, last):
            term = terms[i]
            slot = places[i - first]
            while True:
                held = table[2 * slot + 1]
                if held == ZERO or table[2 * slot] == term:
                    break
                slot += 1
                if slot == slots:
                    slot = 0
            if held == ZERO:
                vocabulary[size] = term
                size += 1
                table[2 * slot] = term
                held = np.uint64(size)
                table[2 * slot + 1] = held
            places[i - first] = slot
            codes[at + i - first] = np.uint32((held & CODE) - np.uint64(1))
        if last - first > FEW:
            sort_in_place(places, last - first)
        for i in range(last - first):
            slot = places[i]
            if table[2 * slot] == ZERO:
                continue
            known = False
            if last - first > FEW:
                known = i > 0 and places[i - 1] == slot
            else:
                for j in range(i):
                    if places[j] == slot:
                        known = True
                        break
            if known:
                repeats[post] = True
            else:
                table[2 * slot + 1] += ONE
    counts = np.zeros(size, np.uint32)
    for slot in range(slots):
        held = table[2 * slot + 1]
        if held:
            counts[np.int64(held & CODE) - 1] = np.uint32(held >> np.uint64(32))
    return codes, bounds, repeats, vocabulary[:size].copy(), counts


@kernel
def recode_terms(codes, offsets, order, size, boundary):
    """As `encode_terms`, of terms that are numbered already, by numbers below `size`, `boundary` that of the term 0:
    (codes, offsets, repeats, counts). Without a table to search this takes a fraction of the time.
    """
    bounds = np.empty(order.size + 1, np.int64)
    total = np.int64(0)
    for post in range(order.size):
        bounds[post] = total
        total += offsets[order[post] + 1] - offsets[order[post]]
    bounds[order.size] = total
    out = np.empty(total, np.uint32)
    repeats = np.zeros(order.size, np.bool_)
    seen = np.zeros(2 * size, np.uint32)  # of each code the count, and the number of the last post, from 1
    at = np.uint64(0)
    for post in range(order.size):
        if post + 2 * AHEAD < order.size:
            prefetch(offsets, order[post + 2 * AHEAD])
            prefetch(codes, offsets[order[post + AHEAD]])
        number = np.uint32(post + 1)
        for i in range(offsets[order[post]], offsets[order[post] + 1]):
            code = np.uint64(codes[np.uint64(i)])
            out[at] = np.uint32(code)
            at += np.uint64(1)
            place = code << np.uint64(1)
            if seen[place | np.uint64(1)] != number:
                seen[place | np.uint64(1)] = number
                seen[place] += np.uint32(1)
            elif np.int64(code) != boundary:
                repeats[post] = True
    counts = np.empty(size, np.uint32)
    for code in range(size):
        counts[code] = seen[2 * code]
    return out, bounds, repeats, counts


@kernel
def _laid_out(table, slots):
    """The table with so many slots."""
    larger = np.zeros(2 * slots, np.uint64)
    for i in range(table.size // 2):
        if table[2 * i + 1]:
            slot = slot_of(table[2 * i], slots)
            while larger[2 * slot + 1]:
                slot += 1
                if slot == slots:
                    slot = 0
            larger[2 * slot] = table[2 * i]
            larger[2 * slot + 1] = table[2 * i + 1]
    return larger


@kernel
def find_terms(terms, by_term, wanted):
    """The code of each wanted term, -1 where it has none; `by_term` are the codes in the order of their terms."""
    out = np.empty(wanted.size, np.int64)
    for i in range(wanted.size):
        out[i] = find_term(terms, by_term, wanted[i])
    return out


@kernel
def find_term(terms, by_term, wanted):
    """The code of a term, or -1. Terms are hashes, so where one lies among the others is guessed from its value, a few
    times; what is left, which is little unless they are crowded, is halved.
    """
    low, high = np.int64(0), np.int64(by_term.size)
    below, above = 0.0, 2.0**64  # no term of [low, high) is outside
    guesses = 0
    while low < high:
        middle = (low + high) >> 1
        if guesses < GUESSES and high - low > 8:
            guesses += 1
            part = (np.float64(wanted) - below) / (above - below)
            middle = min(high - 1, max(low, low + np.int64(part * (high - low))))
        code = np.int64(by_term[middle])
        found = terms[code]
        if found == wanted:
            return code
        if found < wanted:
            low, below = middle + 1, np.float64(found)
        else:
            high, above = middle, np.float64(found)
    return np.int64(-1)
