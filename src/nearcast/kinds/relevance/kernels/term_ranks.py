"""Terms of a subscription index, numbered from the rarest to the commonest; and the words of subscribers in that order.

A table is a pair of arrays, keys and numbers, of a length that is a power of 2; a number below 0 marks a free slot.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.mix import mix


@kernel
def slot_of(keys, numbers, term):
    """Where a term is in a table, or the free slot where it would be."""
    mask = keys.size - 1
    at = np.int64(mix(term) & np.uint64(mask))
    while numbers[at] >= 0 and keys[at] != term:
        at = (at + 1) & mask
    return at


@kernel
def number_words(rows, words, offsets, keys, numbers, counts, out, begin, filled, known):
    """Number the words of `rows[begin:]` as they first appear, into `out[filled:]`, and count them.

    Returns (rows done, words done, terms known). It stops where the table is half full, to be called again with a
    larger one.
    """
    for at in range(begin, rows.size):
        first, last = offsets[rows[at]], offsets[rows[at] + 1]
        if 2 * (known + last - first) > keys.size:
            return at, filled, known
        for i in range(first, last):
            slot = slot_of(keys, numbers, words[i])
            if numbers[slot] < 0:
                keys[slot], numbers[slot] = words[i], np.int32(known)
                counts[known] = 0
                known += 1
            counts[numbers[slot]] += 1
            out[filled] = numbers[slot]
            filled += 1
    return rows.size, filled, known


@kernel
def refile(old_keys, old_numbers, keys, numbers):
    """Every entry of a table into a larger one."""
    for i in range(old_keys.size):
        if old_numbers[i] >= 0:
            slot = slot_of(keys, numbers, old_keys[i])
            keys[slot], numbers[slot] = old_keys[i], old_numbers[i]


@kernel
def look_up(terms, keys, numbers):
    """The number of each term, below 0 where no subscriber has it."""
    out = np.empty(terms.size, np.int32)
    for i in range(terms.size):
        out[i] = numbers[slot_of(keys, numbers, terms[i])]
    return out


@kernel
def by_rarity(numbers, begin, end, order):
    """Into `order` the places begin..end-1 of a text, rarer terms first, without unknown terms; returns how many."""
    n = 0
    for i in range(begin, end):
        if numbers[i] < 0:
            continue
        place = n
        while place > 0 and numbers[order[place - 1]] > numbers[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
        n += 1
    return n
