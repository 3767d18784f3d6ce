"""Codes of keyword expressions that are words and nothing else, which is what subscriptions in bulk mostly are."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.storage.subscriptions.kernels.register import LAST

SPACE, ZERO, NINE, A, Z = 32, 48, 57, 97, 122
LATIN = 0xC3, 0xC5  # the first of the two bytes of U+00C0 to U+017F
NO_LETTERS = 0xC397, 0xC3B7, 0xC4BF, 0xC580  # of these × and ÷, and Ŀ and ŀ, which fold to a letter and a dot


@kernel
def are_plain(data, offsets):
    """Which texts have words and are small letters, digits, Latin letters with accents and spaces only: every word of
    them is one term, and none is AND, OR or NOT.
    """
    out = np.ones(offsets.size - 1, np.bool_)
    for row in range(out.size):
        at, words = offsets[row], False
        while at < offsets[row + 1]:
            byte = np.int64(data[at])
            words |= byte != SPACE
            if A <= byte <= Z or byte == SPACE or ZERO <= byte <= NINE:
                at += 1
            elif LATIN[0] <= byte <= LATIN[1] and (byte << 8 | data[at + 1]) not in NO_LETTERS:
                at += 2
            else:
                out[row] = False
                break
        out[row] &= words
    return out


@kernel
def plain_codes(terms, offsets, any_word):
    """(code, offsets): all words of a text must be there, or any of them."""
    code = np.empty(2 * terms.size, np.uint64)
    ends = np.empty(offsets.size, np.int32)
    ends[0] = 0
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            last = any_word[row] or at == offsets[row + 1] - 1
            code[2 * at] = np.uint64(1) | (LAST if last else np.uint64(0))
            code[2 * at + 1] = terms[at]
        ends[row + 1] = 2 * offsets[row + 1]
    return code, ends
