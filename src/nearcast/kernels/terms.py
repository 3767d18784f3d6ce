"""Vocabularies: distinct terms, how many posts have each, and posts as numbers into them."""

import numpy as np
from numba import njit

from nearcast.kernels.mix import slot_of


@njit(cache=True, nogil=True)
def encode_terms(terms, offsets):
    """(codes, vocabulary, counts): each term as its first-seen number; in how many posts each occurs.

    The boundary term 0 is coded like any other and counts nothing.
    """
    slots = 1 << 12
    slot_terms = np.zeros(slots, np.uint64)
    slot_codes = np.full(slots, -1, np.int32)
    vocabulary = np.empty(slots, np.uint64)
    counts = np.zeros(slots, np.uint32)
    last_post = np.full(slots, -1, np.int64)
    codes = np.empty(terms.size, np.uint32)
    size = 0
    for post in range(offsets.size - 1):
        for i in range(offsets[post], offsets[post + 1]):
            term = terms[i]
            slot = slot_of(term, slots)
            while slot_codes[slot] >= 0 and slot_terms[slot] != term:
                slot += 1
                if slot == slots:
                    slot = 0
            code = slot_codes[slot]
            if code < 0:
                code = np.int32(size)
                slot_terms[slot] = term
                slot_codes[slot] = code
                vocabulary[size] = term
                size += 1
                if 2 * size > slots:  # grow: lay the table out again
                    slots *= 2
                    slot_terms = np.zeros(slots, np.uint64)
                    slot_codes = np.full(slots, -1, np.int32)
                    for j in range(size):
                        at = slot_of(vocabulary[j], slots)
                        while slot_codes[at] >= 0:
                            at += 1
                            if at == slots:
                                at = 0
                        slot_terms[at] = vocabulary[j]
                        slot_codes[at] = j
                    more = np.empty(slots, np.uint64)
                    more[:size] = vocabulary[:size]
                    vocabulary = more
                    more_counts = np.zeros(slots, np.uint32)
                    more_counts[:size] = counts[:size]
                    counts = more_counts
                    more_posts = np.full(slots, -1, np.int64)
                    more_posts[:size] = last_post[:size]
                    last_post = more_posts
            codes[i] = code
            if last_post[code] != post and term != 0:
                last_post[code] = post
                counts[code] += np.uint32(1)
    return codes, vocabulary[:size].copy(), counts[:size].copy()


@njit(cache=True, nogil=True)
def decode_terms(codes, offsets, vocabulary, rows):
    """Terms and offsets of the given posts, from their codes."""
    total = 0
    for i in range(rows.size):
        total += offsets[rows[i] + 1] - offsets[rows[i]]
    terms = np.empty(total, np.uint64)
    out = np.empty(rows.size + 1, np.int64)
    n = 0
    for i in range(rows.size):
        out[i] = n
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            terms[n] = vocabulary[codes[j]]
            n += 1
    out[rows.size] = n
    return terms, out
