"""Codes of keyword expressions that are words and nothing else, which is what subscriptions in bulk mostly are."""

import numpy as np
from numba import njit

from nearcast.kernels.register import LAST

SPACE, A, Z = 32, 97, 122


@njit(cache=True, nogil=True)
def are_plain(data, offsets):
    """Which texts are small letters and spaces only: every word of them is one term, and none is AND, OR or NOT."""
    out = np.ones(offsets.size - 1, np.bool_)
    for row in range(out.size):
        for at in range(offsets[row], offsets[row + 1]):
            if data[at] != SPACE and (data[at] < A or data[at] > Z):
                out[row] = False
                break
    return out


@njit(cache=True, nogil=True)
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
