"""SpaceSaving: the frequent values of a stream with m counters (Metwally et al.; seed 003 §4.1.2)."""

import numpy as np

from nearcast.kernels.compiled import kernel


@kernel
def _home(value, mask):
    mixed = value * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@kernel
def _find(table, values, value, mask):
    """The slot of a value, or the empty one where it belongs."""
    at = _home(value, mask)
    while table[at] >= 0 and values[table[at]] != value:
        at = (at + 1) & mask
    return at


@kernel
def _remove(table, values, value, mask):
    """Empty a value's slot and move up those that had to go past it."""
    hole = _find(table, values, value, mask)
    at = (hole + 1) & mask
    while table[at] >= 0:
        home = _home(values[table[at]], mask)
        if ((at - home) & mask) >= ((at - hole) & mask):
            table[hole] = table[at]
            hole = at
        at = (at + 1) & mask
    table[hole] = -1


@kernel
def _sink(heap, places, counts, at, size):
    """Restore a heap of counters, the least on top, below a counter that has grown."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and counts[heap[child + 1]] < counts[heap[child]]:
            child += 1
        if counts[heap[at]] <= counts[heap[child]]:
            return
        heap[at], heap[child] = heap[child], heap[at]
        places[heap[at]], places[heap[child]] = at, child
        at = child


@kernel
def space_saving(stream, m):
    """(values, counts, errors, how many counters are in use). A new value takes the least counter and goes on from it;
    where it began is its error.
    """
    values = np.zeros(m, np.uint64)
    counts, errors = np.zeros(m, np.int64), np.zeros(m, np.int64)
    heap, places = np.empty(m, np.int64), np.empty(m, np.int64)
    slots = 4
    while slots < 2 * m:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    mask = slots - 1
    size = 0
    for i in range(stream.size):
        slot = _find(table, values, stream[i], mask)
        counter = table[slot]
        if counter < 0:
            if size < m:
                counter = size
                heap[size], places[size] = counter, size
                at = size
                size += 1
                while at and counts[heap[(at - 1) // 2]] > 0:  # a new counter begins at 0, on top
                    above = (at - 1) // 2
                    heap[at], heap[above] = heap[above], heap[at]
                    places[heap[at]], places[heap[above]] = at, above
                    at = above
            else:
                counter = heap[0]
                _remove(table, values, values[counter], mask)
                errors[counter] = counts[counter]
                slot = _find(table, values, stream[i], mask)
            values[counter] = stream[i]
            table[slot] = counter
        counts[counter] += 1
        _sink(heap, places, counts, places[counter], size)
    return values, counts, errors, size
