"""SpaceSaving: the frequent values of a stream with m counters (Metwally et al.; STAR §4.1.2), and the greatest
counters of many summaries at once.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.storage.posts.kernels.term_lists import in_groups


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


@kernel
def shortened(group, terms, above, sure, groups, m, distinct):
    """Counters in any order, added up by group and term unless they are `distinct`, and of each group the m greatest
    by `above`, ties by term: (group, term, above, sure), in order of term, and what the next one of each group has.
    """
    order, begins = in_groups(group, groups)
    room = np.int64(0)
    for g in range(groups):
        room += min(m, begins[g + 1] - begins[g])
    out_group, out_terms = np.empty(room, np.int64), np.empty(room, np.uint64)
    out_above, out_sure = np.empty(room, np.int64), np.empty(room, np.int64)
    following = np.zeros(groups, np.int64)
    size = 0
    for g in range(groups):
        rows = order[begins[g] : begins[g + 1]]
        own, over, known = terms[rows], above[rows], sure[rows]
        if not distinct:
            own, over, known = _added_up(own, over, known)
        kept, following[g] = _greatest(own, over, m)
        for at in kept:
            out_group[size], out_terms[size], out_above[size], out_sure[size] = g, own[at], over[at], known[at]
            size += 1
    return out_group[:size], out_terms[:size], out_above[:size], out_sure[:size], following


@kernel
def _greatest(terms, values, m):
    """(places of the m greatest values, ties by term, in order of term; the next value, or 0)."""
    if terms.size <= m:
        return np.argsort(terms), np.int64(0)
    least = np.partition(values, terms.size - m)[terms.size - m]
    likely = np.flatnonzero(values >= least)
    likely = likely[np.argsort(terms[likely])]
    ties, following = m, np.int64(0)
    for value in values:
        ties -= value > least
        if value < least:
            following = max(following, value)
    kept = np.empty(m, np.int64)
    size = 0
    for at in likely:
        if values[at] == least:
            if ties == 0:
                following = least
                continue
            ties -= 1
        kept[size] = at
        size += 1
    return kept, following


@kernel
def _added_up(terms, above, sure):
    """Each term once."""
    order = np.argsort(terms)
    own, over, known = np.empty(terms.size, np.uint64), np.empty(terms.size, np.int64), np.empty(terms.size, np.int64)
    size = 0
    for at in order:
        if size == 0 or own[size - 1] != terms[at]:
            own[size], over[size], known[size] = terms[at], 0, 0
            size += 1
        over[size - 1] += above[at]
        known[size - 1] += sure[at]
    return own[:size], over[:size], known[:size]


@kernel
def leading_rows(begins, terms, counts, groups, k, stop):
    """Of some groups of counters, the k greatest that are no stop words (ascending), and those equal to the last of
    them: (which of the groups, counters), in order; and of each group the count that follows the k greatest, or 0.
    """
    bits = np.zeros(1 << 10, np.uint64)  # of the last 16 bits of stop words: nearly every other word is told by them
    for term in stop:
        bits[(term & np.uint64(0xFFFF)) >> np.uint64(6)] |= np.uint64(1) << (term & np.uint64(63))
    room, longest = np.int64(0), np.int64(0)
    for g in groups:
        room += begins[g + 1] - begins[g]
        longest = max(longest, begins[g + 1] - begins[g])
    of, rows = np.empty(room, np.int64), np.empty(room, np.int64)
    following = np.zeros(groups.size, np.int64)
    size = 0
    for place in range(groups.size):
        first = size
        for row in range(begins[groups[place]], begins[groups[place] + 1]):
            term = terms[row]
            if bits[(term & np.uint64(0xFFFF)) >> np.uint64(6)] >> (term & np.uint64(63)) & np.uint64(1):
                at = np.searchsorted(stop, term)
                if at < stop.size and stop[at] == term:
                    continue
            of[size], rows[size] = place, row
            size += 1
        count = size - first
        if count > k:
            found = counts[rows[first:size]]
            ranked = np.partition(found, count - k - 1)
            following[place] = ranked[count - k - 1]
            least = ranked[count - k :].min() if k else np.int64(0)
            end = first
            for i in range(first, size):
                if k and counts[rows[i]] >= least:
                    rows[end] = rows[i]
                    end += 1
            size = end
    return of[:size], rows[:size], following
