"""A set of terms as an open-addressing table: slot 0 of the array counts, 0 marks an empty slot."""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.mix import slot_of


@inlined
def _find(table, term):
    slots = table.size - 1
    slot = slot_of(term, slots)
    while table[slot + 1] != 0 and table[slot + 1] != term:
        slot += 1
        if slot == slots:
            slot = 0
    return slot + 1


@kernel
def add_terms(table, terms):
    """The table with these terms; a larger one if it was more than half full."""
    needed = 2 * (np.int64(table[0]) + terms.size) + 1
    if needed > table.size:
        larger = np.zeros(2 * needed, np.uint64)
        larger[0] = table[0]
        for i in range(1, table.size):
            if table[i] != 0:
                larger[_find(larger, table[i])] = table[i]
        table = larger
    for i in range(terms.size):
        at = _find(table, terms[i])
        if table[at] == 0 and terms[i] != 0:
            table[at] = terms[i]
            table[0] += np.uint64(1)
    return table


@kernel
def missing_terms(table, terms):
    """Which terms are not in the table."""
    out = np.empty(terms.size, np.bool_)
    for i in range(terms.size):
        out[i] = table[_find(table, terms[i])] == 0
    return out
