"""Slots of many small lists of (number, score) in two arrays: a list that outgrows its slot takes a larger one, and the
old one goes to the next list of that size.

Slots have 4 places or a multiple of that, up to 256; then 512, 1024 and so on. `free[0]` is where the places never used
begin, `free[c]` the first free slot of class c, or -1: each free slot has the place of the next in its first score.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel

CLASSES = 96
LOW = np.int64(0xFFFFFFFF)  # numbers of posts are kept as their low 32 bits
FINE = 64  # classes of 4, 8, ... 256 places; those above double


@kernel
def class_of(length):
    """The class of the smallest slot for a list of such a length, from 1 on."""
    if length <= 4 * FINE:
        return max(np.int64(1), (np.int64(length) + 3) >> 2)
    kind = np.int64(FINE)
    while room_of(kind) < length:
        kind += 1
    return kind


@kernel
def room_of(kind):
    """How many places a slot of this class has."""
    return np.int64(4) * kind if kind <= FINE else np.int64(4 * FINE) << (kind - FINE)


@kernel
def give(length, scores, free):
    """The place of a slot for a list of such a length. There must be twice that, and 4, never used."""
    kind = class_of(length)
    head = free[kind]
    if head >= 0:
        free[kind] = np.int64(scores[head])
        return head
    head = free[0]
    free[0] += room_of(kind)
    return head


@kernel
def take_back(place, room, scores, free):
    kind = class_of(room)
    scores[place] = np.float64(free[kind])
    free[kind] = place


@kernel
def load(at, length, own, old_numbers, old_scores, numbers, scores, held, held_scores):
    """Copy a list to `held`, from its own slot or from the lists of the file."""
    if own:
        for j in range(length):
            held[j], held_scores[j] = numbers[at + j], scores[at + j]
    else:
        for j in range(length):
            held[j], held_scores[j] = old_numbers[at + j], old_scores[at + j]


@kernel
def put(row, length, usual, places, values, base, begin, room, numbers, scores, free):
    """Write the members of a row to its slot, or to a larger one: where it takes more than half of what it will mostly
    need, which is `usual`, at least so large a one, since slots that are left behind wait for lists of their size.
    """
    if length > room[row]:
        if room[row] > 0:
            take_back(begin[row], np.int64(room[row]), scores, free)
        enough = max(length, usual) if 2 * length > usual else length
        begin[row] = give(enough, scores, free)
        room[row] = room_of(class_of(enough))
    at = begin[row]
    for j in range(length):
        numbers[at + j], scores[at + j] = np.uint32((places[j] + base) & LOW), values[j]


@kernel
def members(rows, most, size, begin, room, old_numbers, old_scores, numbers, scores):
    """(starts, numbers, scores) of the first `most[i]` members of each row."""
    starts = np.zeros(rows.size + 1, np.int64)
    for i in range(rows.size):
        starts[i + 1] = starts[i] + min(np.int64(size[rows[i]]), np.int64(most[i]))
    out, values = np.empty(starts[-1], np.uint32), np.empty(starts[-1])
    for i in range(rows.size):
        at, own = begin[rows[i]], room[rows[i]] > 0
        for j in range(starts[i + 1] - starts[i]):
            to = starts[i] + j
            if own:
                out[to], values[to] = numbers[at + j], scores[at + j]
            else:
                out[to], values[to] = old_numbers[at + j], old_scores[at + j]
    return starts, out, values
