"""The best posts of a window for many subscribers, from lists of words in blocks (`kernels.window_build`).

Words of a subscriber are taken heaviest first, and a post counts at the first of its words that is the subscriber's: a
list so only has to answer for the words after it. If r is the length of their vector, a post of weight w there has a
cosine of at most q w + r sqrt(1 - w^2), both vectors being of length 1; and of at most q w plus what the others' lists
have at most. With the ball of a block that bounds its scores, and blocks are gone through from the highest bound on.
"""

import math

import numpy as np
from numba import njit

from nearcast.kernels.regions import EARTH_RADIUS_KM
from nearcast.kernels.relevance import APART, cosine, nearness, score_of
from nearcast.kernels.sorting import hashed_bound, lower_bound
from nearcast.kernels.window_build import NUMBER, OFFSET, SIGN, SLACK, sign_of, unit_vector

WIDER = 1e-12  # so much a bound may be off by rounding
ROUGH = 3e-6  # so much the weight of a bound may be off
BUCKETS = 64  # of blocks by bound
GONE = np.uint32(0xFFFFFFFF)  # in place of a post, where none has this number
FULL = -1  # the size of a pool that could not hold all ties


@njit(cache=True, nogil=True)
def most_near(chord, reach):
    """The greatest nearness of places that are at least so far apart through a sphere of radius 1."""
    chord -= SLACK
    if chord <= 0.0:
        return 1.0
    km = EARTH_RADIUS_KM * (chord + chord * chord * chord / 24.0)  # the arc is longer: these are its first terms
    return 1.0 - km / reach if km < reach else 0.0


@njit(cache=True, nogil=True)
def most_alike(q, least, most, rest, others):
    """The greatest cosine of posts that have the word with a weight from `least` to `most`: see above."""
    whole = math.sqrt(q * q + rest * rest)
    if q > most * whole:
        light = max(0.0, most - ROUGH)
        whole = q * most + rest * math.sqrt(max(0.0, 1.0 - light * light))
    elif q < least * whole:
        whole = q * least * (1.0 + ROUGH) + rest * math.sqrt(max(0.0, 1.0 - least * least))
    return min(whole, q * most + others)


@njit(cache=True, nogil=True)
def keep_best(scores, numbers, size, n, spare):
    """Drop all but the n best and what ties with the last of them: (how many are left, the score of the last)."""
    if size < n or n <= 0:
        return size, -1.0
    spare[:size] = scores[:size]
    low, high, at = 0, size - 1, n - 1
    while low < high:  # quickselect, greatest first
        pivot = spare[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while spare[i] > pivot:
                i += 1
            while spare[j] < pivot:
                j -= 1
            if i <= j:
                spare[i], spare[j] = spare[j], spare[i]
                i += 1
                j -= 1
        if at <= j:
            high = j
        elif at >= i:
            low = i
        else:
            break
    last = spare[at]
    left = 0
    for i in range(size):
        if scores[i] >= last:
            scores[left], numbers[left] = scores[i], numbers[i]
            left += 1
    return left, last


@njit(cache=True, nogil=True)
def in_window(number, bound, base, order, hidden):
    at = number - base
    if at < 0 or at >= order.size or order[at] < bound:
        return False
    if hidden.size:
        found = lower_bound(hidden, number)
        return found == hidden.size or hidden[found] != number
    return True


@njit(cache=True, nogil=True)
def has(own, begin, end, rank):
    for i in range(begin, end):
        if own[i] == rank:
            return True
    return False


@njit(cache=True, nogil=True)
def put(pool, i, size, floor, n, score, number):
    """Add a post to a subscriber's pool: (how many there are now, the score that a post needs from now on)."""
    scores, numbers, limits, spare = pool
    if size == limits[i]:
        size, floor = keep_best(scores[i], numbers[i], size, n, spare)
        limits[i] = min(scores.shape[1], max(limits[i], 2 * size))
        if size == limits[i]:
            return FULL, np.inf
        if score < floor:
            return size, floor
    scores[i, size], numbers[i, size] = score, number
    return size + 1, floor


@njit(cache=True, nogil=True)
def lists_of(term, rows, words, offsets):
    """The list of each word of the subscribers at `rows`, or -1, end to end."""
    total = 0
    for i in range(rows.size):
        total += offsets[rows[i] + 1] - offsets[rows[i]]
    out = np.full(total, -1, np.int64)
    at = 0
    for i in range(rows.size):
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            found = hashed_bound(term, words[j])
            if found < term.size and term[found] == words[j]:
                out[at] = found
            at += 1
    return out


@njit(cache=True, nogil=True)
def search_part(first, part, tastes, rows, n, bounds, firsts, base, order, hidden, pool, sizes, floors):
    """Search one part for each of `rows`: pools hold at least its n best in the window, and `floors` what the next must
    reach. A row's window has no number below `firsts`. How many postings were looked at.
    """
    term, block_starts, begins, block_bounds, posts, weights, records, vectors, places, own, heights, where = part
    lon, lat, alphas, reaches, words, offsets, tall = tastes
    lists = lists_of(term, rows, words, offsets)
    widest, most_blocks, begin = 1, 1, np.int64(0)
    for i in range(rows.size):
        size = offsets[rows[i] + 1] - offsets[rows[i]]
        blocks = np.int64(0)
        for j in range(begin, begin + size):
            if lists[j] >= 0:
                blocks += block_starts[lists[j] + 1] - block_starts[lists[j]]
        widest, most_blocks = max(widest, size), max(most_blocks, blocks)
        begin += size
    ids, turn = np.empty(widest, np.uint32), np.empty(widest, np.int64)
    qs, rest, tail, tops = (
        np.empty(widest, np.float64), np.empty(widest, np.float64), np.empty(widest, np.float64),
        np.empty(widest, np.float64),
    )  # fmt: skip
    slot, mask = np.empty(widest, np.int64), np.empty(widest, np.uint32)
    block_of, turn_of = np.empty(most_blocks, np.int64), np.empty(most_blocks, np.int64)
    bound_of, near_of = np.empty(most_blocks, np.float64), np.empty(most_blocks, np.float64)
    queue = np.empty(most_blocks, np.int64)
    buckets = np.empty(BUCKETS + 1, np.int64)
    looked = 0
    end = np.int64(0)
    for i in range(rows.size):
        row = rows[i]
        begin = end
        end = begin + offsets[row + 1] - offsets[row]
        since = max(np.int64(0), firsts[i] - first)
        if sizes[i] == FULL or n[i] <= 0 or since >= where.size:
            continue
        m, postings = 0, np.int64(0)
        for j in range(begin, end):
            if lists[j] >= 0:
                ids[m], qs[m] = lists[j], tall[offsets[row] + j - begin]
                postings += begins[block_starts[lists[j] + 1]] - begins[block_starts[lists[j]]]
                m += 1
        if m == 0:
            continue
        for j in range(m):  # heaviest word first
            at = j
            while at > 0 and qs[turn[at - 1]] < qs[j]:
                turn[at] = turn[at - 1]
                at -= 1
            turn[at] = j
        for u in range(m):
            bit = sign_of(term[ids[turn[u]]])
            slot[u], mask[u] = SIGN + (bit >> 5), np.uint32(1) << np.uint32(bit & 31)
        alpha, reach = alphas[row], reaches[row]
        beta = 1.0 - alpha
        x, y, z = unit_vector(lon[row], lat[row])
        size, floor = sizes[i], floors[i]

        if where.size - since < postings // 2:  # a short window is gone through as it is
            for at in range(since, where.size):
                post = where[at]
                if post == GONE:
                    continue
                any_sign = False
                for u in range(m):
                    any_sign |= records[post, slot[u]] & mask[u] != 0
                if not any_sign or not in_window(first + at, bounds[i], base, order, hidden):
                    continue
                alike = cosine(ids, qs, 0, m, own, heights, records[post, OFFSET], records[post + 1, OFFSET])
                if alike == APART:
                    continue
                score = score_of(alpha, nearness(lon[row], lat[row], places[post, 0], places[post, 1], reach), alike)
                if score >= floor:
                    size, floor = put(pool, i, size, floor, n[i], score, first + at)
                    if size == FULL:
                        break
            looked += where.size - since
            sizes[i], floors[i] = size, floor
            continue

        square, others = 0.0, 0.0
        count = 0
        lowest, highest = np.inf, -np.inf
        for u in range(m - 1, -1, -1):
            q = qs[turn[u]]
            rest[u], tail[u] = math.sqrt(square), others
            heaviest = 0.0
            for block in range(block_starts[ids[turn[u]]], block_starts[ids[turn[u]] + 1]):
                dx, dy, dz = block_bounds[block, 0] - x, block_bounds[block, 1] - y, block_bounds[block, 2] - z
                near = most_near(math.sqrt(dx * dx + dy * dy + dz * dz) - block_bounds[block, 3], reach)
                most = np.float64(block_bounds[block, 5])
                heaviest = max(heaviest, most)
                alike = most_alike(q, np.float64(block_bounds[block, 4]), most, rest[u], others)
                bound = alpha * near + beta * alike + WIDER
                if bound >= floor:
                    block_of[count], turn_of[count], bound_of[count], near_of[count] = block, u, bound, near
                    lowest, highest = min(lowest, bound), max(highest, bound)
                    count += 1
            tops[u] = q * heaviest
            square += q * q
            others += tops[u]

        scale = (BUCKETS - 1) / (highest - lowest) if highest > lowest else 0.0
        buckets[:] = 0
        for at in range(count):
            buckets[np.int64((highest - bound_of[at]) * scale) + 1] += 1
        for at in range(BUCKETS):
            buckets[at + 1] += buckets[at]
        for at in range(count):
            bucket = np.int64((highest - bound_of[at]) * scale)
            queue[buckets[bucket]] = at
            buckets[bucket] += 1

        for each in range(count):
            at = queue[each]
            if bound_of[at] < floor:
                continue
            u = turn_of[at]
            q = qs[turn[u]]
            fixed = alpha * near_of[at] + WIDER
            looked += begins[block_of[at] + 1] - begins[block_of[at]]
            for j in range(begins[block_of[at]], begins[block_of[at] + 1]):
                weight = weights[j]
                length = math.sqrt(max(0.0, 1.0 - weight * weight) + 1e-14)
                if fixed + beta * (q * weight + min(rest[u] * length, tail[u])) < floor:
                    continue
                post = posts[j]
                alike = q * weight
                shared = False
                for v in range(m):
                    if v != u and records[post, slot[v]] & mask[v]:
                        shared = True
                        if v > u:
                            alike += min(qs[turn[v]] * length, tops[v])
                dx, dy, dz = vectors[post, 0] - x, vectors[post, 1] - y, vectors[post, 2] - z
                near = most_near(math.sqrt(dx * dx + dy * dy + dz * dz), reach)
                if alpha * near + beta * alike + WIDER < floor:
                    continue
                number = first + np.int64(records[post, NUMBER])
                if not in_window(number, bounds[i], base, order, hidden):
                    continue
                alike = q * weight
                if shared:
                    head, stop = records[post, OFFSET], records[post + 1, OFFSET]
                    before = False
                    for v in range(u):
                        if records[post, slot[v]] & mask[v] and has(own, head, stop, ids[turn[v]]):
                            before = True
                    if before:
                        continue
                    alike = cosine(ids, qs, 0, m, own, heights, head, stop)
                score = score_of(alpha, nearness(lon[row], lat[row], places[post, 0], places[post, 1], reach), alike)
                if score >= floor:
                    size, floor = put(pool, i, size, floor, n[i], score, number)
                    if size == FULL:
                        break
            if size == FULL:
                break
        sizes[i], floors[i] = size, floor
    return looked


@njit(cache=True, nogil=True)
def after(scores, numbers, i, j, base, ts, order):
    """Whether a post comes after another in an answer."""
    if scores[i] != scores[j]:
        return scores[i] < scores[j]
    first, second = numbers[i] - base, numbers[j] - base
    if ts[first] != ts[second]:
        return ts[first] < ts[second]
    return order[first] > order[second]


@njit(cache=True, nogil=True)
def _sift(scores, numbers, root, size, base, ts, order):
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and after(scores, numbers, child + 1, child, base, ts, order):
            child += 1
        if not after(scores, numbers, child, root, base, ts, order):
            return
        scores[root], scores[child] = scores[child], scores[root]
        numbers[root], numbers[child] = numbers[child], numbers[root]
        root = child


@njit(cache=True, nogil=True)
def finish(pool, sizes, n, base, ts, order):
    """Leave the n best of each pool and what ties with the last, in answer order (a heapsort). A full pool stays."""
    scores, numbers, _, spare = pool
    for i in range(sizes.size):
        if sizes[i] == FULL:
            continue
        size, _ = keep_best(scores[i], numbers[i], sizes[i], n[i], spare)
        sizes[i] = size
        for root in range(size // 2 - 1, -1, -1):
            _sift(scores[i], numbers[i], root, size, base, ts, order)
        for last in range(size - 1, 0, -1):
            scores[i, 0], scores[i, last] = scores[i, last], scores[i, 0]
            numbers[i, 0], numbers[i, last] = numbers[i, last], numbers[i, 0]
            _sift(scores[i], numbers[i], 0, last, base, ts, order)
