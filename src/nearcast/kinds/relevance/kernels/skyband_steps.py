"""The k-skyband buffers of subscribers (Skype §6), moved on by a batch.

Members are in answer order: score descending, then later, then lower id. One dominates another (Definition 10) iff it
comes before it in that order and outlives it, which is to have a greater `order` in the ledger: of equal scores and
times the lower id comes first and has the lower order, so neither dominates. A member is therefore in the skyband iff
fewer than k members before it have a greater order.
"""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.kinds.relevance.kernels.buffer_slots import LOW, load, put

STALE = -1  # the version of a buffer that must be filled from the posts of the window
NEVER = np.int64(2**63 - 1)  # the time of the oldest member where there is none
KEPT, SHORT, MOVED = 0, 1, 2  # what became of a row: nothing to tell, must be refilled, has another theta


class BufferBatch(NamedTuple):
    """What a batch brings to buffers."""

    rows: np.ndarray
    starts: np.ndarray  # the first of the posts that came for each row, and an end
    numbers: np.ndarray  # of those posts
    scores: np.ndarray
    thetas: np.ndarray  # of a refill the theta; of others that to rise to, or less than the one it has
    capacity: np.ndarray  # the most members that each row may have
    target: np.ndarray  # and how many to keep where it has more


class BufferArrays(NamedTuple):
    """The buffers of all subscribers (`kinds.relevance.skyband.Buffers`)."""

    theta: np.ndarray
    version: np.ndarray
    k: np.ndarray
    size: np.ndarray
    window: np.ndarray  # which of the ledger's bounds
    oldest: np.ndarray
    begin: np.ndarray  # where the members of a row begin,
    room: np.ndarray  # and the size of its slot; 0 where they are still among those of the file
    old_numbers: np.ndarray  # members as in the file
    old_scores: np.ndarray
    numbers: np.ndarray  # members in slots (`kinds.relevance.kernels.buffer_slots`)
    scores: np.ndarray
    free: np.ndarray


class LedgerArrays(NamedTuple):
    """The ledger of posts, by place, and what of it is inside windows."""

    bounds: np.ndarray  # the least order inside each window
    base: np.int64  # the number of the first post, its low 32 bits
    ts: np.ndarray
    order: np.ndarray
    hidden: np.ndarray  # deleted posts; empty where there are none


class AnswerEvents(NamedTuple):
    """Who entered (+1) or left (-1) an answer, and at which rank; to be filled."""

    row: np.ndarray
    number: np.ndarray
    score: np.ndarray
    rank: np.ndarray
    sign: np.ndarray


class MemberList(NamedTuple):
    """Posts in answer order: places in the ledger, scores, which of the members before (or -1), orders."""

    place: np.ndarray
    score: np.ndarray
    was: np.ndarray
    order: np.ndarray


@kernel
def touched(came, oldest, window, marked, since):
    """Rows that a batch touches, and where the arrivals of each begin, and an end.

    `came` are the sorted rows of the arrivals. A row is touched that has any, that is marked (`marked` is empty where
    none is), or whose oldest member is not later than `since`, the time of the first post inside its window.
    """
    rows = np.empty(oldest.size, np.int64)
    starts = np.empty(oldest.size + 1, np.int64)
    found, at = 0, 0
    for row in range(oldest.size):
        begin = at
        while at < came.size and came[at] == row:
            at += 1
        if at > begin or oldest[row] <= since[window[row]] or (marked.size > 0 and marked[row]):
            rows[found], starts[found] = row, begin
            found += 1
    starts[found] = at
    return rows[:found].copy(), starts[: found + 1].copy()


@kernel
def holders(size, begin, room, old_numbers, numbers, base, hidden):
    """Which rows have a member that is `hidden` (by place in the ledger)."""
    out = np.zeros(size.size, np.bool_)
    for row in range(size.size):
        own = room[row] > 0
        for at in range(begin[row], begin[row] + size[row]):
            number = numbers[at] if own else old_numbers[at]
            place = (np.int64(number) - base) & LOW
            if place < hidden.size and hidden[place]:
                out[row] = True
                break
    return out


@kernel
def advance_buffers(batch, refilled, judged, dominance, buffers, ledger, status, happened, first, most):
    """Bring the rows of a batch up to date from the `first` on, as far as there is room for events and members; the
    next row, and how many events. `status` is filled with what became of each row, `happened` with the events. No row
    has to look at more than `most` posts.

    A row that turns out SHORT (none does where that is not `judged`) is left as it is, but STALE. A row that was STALE
    before is left, too, unless it is refilled.
    """
    rows, starts, came, came_scores, given, capacity, target = batch
    theta, version, k, size, window, oldest, begin, room, old_numbers, old_scores, numbers, scores, free = buffers
    bounds, base, ts, order, hidden = ledger
    event_row, event_number, event_score, event_rank, event_sign = happened
    n = order.size
    place_a, score_a, was_a = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64)
    place_b, score_b = np.empty(most, np.int64), np.empty(most)
    place_c, score_c, was_c = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64)
    order_a, order_c = np.empty(most, np.int64), np.empty(most, np.int64)
    left, made = MemberList(place_a, score_a, was_a, order_a), MemberList(place_c, score_c, was_c, order_c)
    held, held_scores = np.empty(most, np.uint32), np.empty(most)
    stays = np.empty(most, np.bool_)
    events = 0
    for i in range(first, rows.size):
        row = rows[i]
        want = np.int64(k[row])
        if want == 0 or (version[row] == STALE and not refilled):
            continue
        length = np.int64(size[row])
        came_n = starts[i + 1] - starts[i]
        answer = min(want, length) + min(want, length + came_n)
        if events + answer > event_row.size or free[0] + 2 * (length + came_n + want) + 8 > numbers.size:
            return i, events
        bound = bounds[window[row]]
        limit = given[i] if refilled else theta[row]
        load(begin[row], length, room[row] > 0, old_numbers, old_scores, numbers, scores, held, held_scores)

        n_a = np.int64(0)
        lost = 0
        for j in range(length):
            place = (np.int64(held[j]) - base) & LOW
            if place >= n:
                continue
            rank = order[place]
            if rank < bound:
                continue
            if hidden.size > 0 and hidden[place]:
                lost += 1
                continue
            place_a[n_a], score_a[n_a], was_a[n_a], order_a[n_a] = place, held_scores[j], j, rank
            n_a += 1
        if refilled:
            n_a = np.int64(0)
        elif judged and lost > 0 and (limit > 0.0 or n_a + lost >= want):
            # what the deleted post dominated may have been evicted on its account, and is not here to come back
            version[row], status[i] = STALE, SHORT
            continue

        n_b = np.int64(0)
        sorted_b = True
        for j in range(starts[i], starts[i + 1]):
            place = (np.int64(came[j]) - base) & LOW
            if place >= n or order[place] < bound or came_scores[j] < limit or (hidden.size > 0 and hidden[place]):
                continue
            place_b[n_b], score_b[n_b] = place, came_scores[j]
            if n_b > 0 and before(score_b[n_b], place, score_b[n_b - 1], place_b[n_b - 1], ts, order):
                sorted_b = False
            n_b += 1
        if not refilled and n_b == 0 and n_a == length and given[i] <= limit:
            continue
        if not sorted_b:
            sort_answer(place_b, score_b, n_b, ts, order)

        n_c = merged(left, n_a, place_b, score_b, n_b, made, want, dominance, ts, order)
        rise = limit if refilled else max(limit, given[i])
        if n_c > capacity[i]:
            rise = max(rise, score_c[max(target[i], want) - 1])
        while n_c > 0 and score_c[n_c - 1] < rise:
            n_c -= 1
        if judged and n_c < want and rise > 0.0:
            version[row], status[i] = STALE, SHORT
            continue

        if refilled:
            recognise(place_c, was_c, min(n_c, want), held, min(length, want), base)
        for j in range(min(length, want)):
            stays[j] = False
        for j in range(min(n_c, want)):
            if 0 <= was_c[j] < want:
                stays[was_c[j]] = True
            else:
                number = np.uint32((place_c[j] + base) & LOW)
                event_row[events], event_number[events], event_score[events] = row, number, score_c[j]
                event_rank[events], event_sign[events] = j, 1
                events += 1
        for j in range(min(length, want)):
            if not stays[j]:
                event_row[events], event_number[events], event_score[events] = row, held[j], held_scores[j]
                event_rank[events], event_sign[events] = j, -1
                events += 1

        put(row, n_c, 9 * want // 5, place_c, score_c, base, begin, room, numbers, scores, free)
        size[row] = n_c
        least = np.int64(0)
        for j in range(1, n_c):
            least = j if order_c[j] < order_c[least] else least
        oldest[row] = ts[place_c[least]] if n_c > 0 else NEVER
        if rise != theta[row]:
            theta[row], status[i] = rise, MOVED
    return rows.size, events


@kernel
def before(score1, place1, score2, place2, ts, order):
    """Whether one comes before another in an answer."""
    if score1 != score2:
        return score1 > score2
    if ts[place1] != ts[place2]:
        return ts[place1] > ts[place2]
    return order[place1] < order[place2]


@kernel
def merged(held, n_a, place_b, score_b, n_b, out, want, dominance, ts, order):
    """Two lists in answer order, members and those that came, as one: each post once, without those that `want` others
    dominate; its length.

    Those left out need not be counted: `want` of those kept outlive each, and so dominate all that it dominates.
    """
    place_a, score_a, was_a, order_a = held
    place_c, score_c, was_c, order_c = out
    a, b, c = 0, 0, 0
    while a < n_a or b < n_b:
        if b == n_b or (a < n_a and not before(score_b[b], place_b[b], score_a[a], place_a[a], ts, order)):
            place, score, was, rank = place_a[a], score_a[a], was_a[a], order_a[a]
            a += 1
        else:
            place, score, was, rank = place_b[b], score_b[b], np.int64(-1), order[place_b[b]]
            b += 1
        if c > 0 and place_c[c - 1] == place:
            continue
        if dominance and c >= want and dominators(order_c, c, rank) >= want:
            continue
        place_c[c], score_c[c], was_c[c], order_c[c] = place, score, was, rank
        c += 1
    return c


@kernel
def dominators(orders, n, order):
    """How many of the first n outlive a post."""
    count = 0
    for i in range(n):
        count += orders[i] > order
    return count


@kernel
def sort_answer(places, scores, n, ts, order):
    """Heapsort into answer order."""
    for root in range(n // 2 - 1, -1, -1):
        sift_answer(places, scores, root, n, ts, order)
    for end in range(n - 1, 0, -1):
        places[0], places[end] = places[end], places[0]
        scores[0], scores[end] = scores[end], scores[0]
        sift_answer(places, scores, np.int64(0), end, ts, order)


@kernel
def sift_answer(places, scores, root, n, ts, order):
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and before(scores[child], places[child], scores[child + 1], places[child + 1], ts, order):
            child += 1
        if not before(scores[root], places[root], scores[child], places[child], ts, order):
            return
        places[root], places[child] = places[child], places[root]
        scores[root], scores[child] = scores[child], scores[root]
        root = child


@kernel
def recognise(places, was, n, held, length, base):
    """Write to `was` which of the posts held before each of the first n is, or -1."""
    guess = 0
    for i in range(n):
        number = np.uint32((places[i] + base) & LOW)
        was[i] = -1
        for step in range(length):
            j = (guess + step) % length
            if held[j] == number:
                was[i], guess = j, j + 1
                break
