"""The best posts of a window for many subscribers, from lists of words in blocks (`kernels.window_build`).

Words of a subscriber are taken heaviest first, and a post counts at the first of its words that is the subscriber's: a
list so only has to answer for the words after it. If r is the length of their vector, a post of weight w there has a
cosine of at most q w + r sqrt(1 - w^2), both vectors being of length 1; and of at most q w plus what the others' lists
have at most. With the ball of a block that bounds its scores, and blocks are gone through from the highest bound on.
"""

import math

import numpy as np
from numba import njit

from nearcast.kernels.prefetch import prefetch
from nearcast.kernels.regions import EARTH_RADIUS_KM
from nearcast.kernels.relevance import APART, cosine, nearness, score_of
from nearcast.kernels.sorting import hashed_bound, lower_bound
from nearcast.kernels.window_build import ASTRAY, BLOCK, FINE, SLACK, STEP, sign_of, unit_vector

WIDER = 1e-12  # so much a bound may be off by rounding
ROUGH = 3e-6  # so much the weight of a bound may be off
AHEAD = 8  # posts, which are asked for beforehand
LOW, HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)  # halves of a post's key: where its words begin, its number
BUCKETS = 64  # of blocks by bound
GONE = np.uint32(0xFFFFFFFF)  # in place of a post, where none has this number
GUESS = -1  # in place of a number: what has but a lower bound of its score
SHORT = 8  # times a window's posts are fewer than the postings to search: it is gone through as it is
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
def least_near(chord, reach):
    """The least nearness of places that are at most so far apart through a sphere of radius 1."""
    km = 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, (chord + SLACK) / 2.0))
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
def is_hidden(hidden, number):
    found = lower_bound(hidden, number)
    return found < hidden.size and hidden[found] == number


@njit(cache=True, nogil=True)
def has_any(own, begin, end, ids, turn, count):
    """Whether a post has one of the first `count` words of the subscriber."""
    for i in range(begin, end):
        for u in range(count):
            if own[i] == ids[turn[u]]:
                return True
    return False


@njit(cache=True, nogil=True)
def bound_postings(
    begin, end, bounds, block, weighed, placed, signed, later, u, x, y, z, alpha, q, rest, others, reach, upper, chords
):  # fmt: skip
    """Fill `upper` with the greatest scores that postings can have, and `chords`: how far their posts are as far as is
    known. `later` has the signs of the words after this one, `others` what those add at most.

    Without a branch or a division, so that several are worked out at once.
    """
    cx, cy, cz = bounds[block, 0] - x, bounds[block, 1] - y, bounds[block, 2] - z
    scale = np.float64(bounds[block, 3]) / FINE
    nearer = np.float64(bounds[block, 3]) * ASTRAY + SLACK
    steep, beta = EARTH_RADIUS_KM / reach, 1.0 - alpha
    signs, more_signs = later[u, 0], later[u, 1]
    for i in range(end - begin):
        j = np.uint64(begin) + np.uint64(i)
        weight = np.float64(weighed[j] & np.uint32(65535)) * STEP
        light = max(0.0, weight - STEP)
        length = math.sqrt(max(0.0, 1.0 - light * light) + 1e-14)
        more = min(others, rest * length)
        alike = q * weight + (more if weighed[j] & signs | signed[j] & more_signs else 0.0)
        place = np.int32(placed[j])
        dx = cx + scale * np.float64(np.int32(place << np.int32(22)) >> np.int32(22))
        dy = cy + scale * np.float64(np.int32(place << np.int32(12)) >> np.int32(22))
        dz = cz + scale * np.float64(np.int32(place << np.int32(2)) >> np.int32(22))
        chord = math.sqrt(dx * dx + dy * dy + dz * dz)
        chords[i] = chord
        chord = max(0.0, chord - nearer)
        near = max(0.0, 1.0 - steep * (chord + chord * chord * chord * (1.0 / 24.0)))
        upper[i] = alpha * near + beta * alike + WIDER


@njit(cache=True, nogil=True)
def make_room(scores, numbers, limits, spare, i, size, n):
    """Leave the best of a subscriber's full pool: (how many there are now, the score that a post needs from now on)."""
    size, floor = keep_best(scores[i], numbers[i], size, n, spare)
    limits[i] = min(scores.shape[1], max(limits[i], 2 * size))
    if size == limits[i]:
        return FULL, np.inf
    return size, floor


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
def go_through(first, part, since, x, y, alpha, reach, ids, qs, m, n, bound, base, order, hidden, pool, i, size, floor):
    """A short window is gone through post by post: (size and floor of the pool)."""
    places, keys, own, heights, where = part[8:]
    scores, found, limits, spare = pool
    for at in range(since, where.size):
        post, ranked = where[at], first + at - base
        if post == GONE or ranked < 0 or ranked >= order.size or order[ranked] < bound:
            continue
        if hidden.size and is_hidden(hidden, first + at):
            continue
        alike = cosine(ids, qs, 0, m, own, heights, np.int64(keys[post, 2] & LOW), np.int64(keys[post + 1, 2] & LOW))
        if alike == APART:
            continue
        score = score_of(alpha, nearness(x, y, places[post, 0], places[post, 1], reach), alike)
        if score < floor:
            continue
        if size == limits[i]:
            size, floor = make_room(scores, found, limits, spare, i, size, n)
            if size == FULL:
                break
        scores[i, size], found[i, size] = score, first + at
        size += 1
    return size, floor


@njit(cache=True, nogil=True)
def search_part(first, part, least_order, tastes, rows, n, bounds, firsts, base, order, hidden, pool, sizes, floors):
    """Search one part for each of `rows`: pools hold its n best in the window of all parts searched, and `floors` what
    the next must reach. A row's window has no number below `firsts`, and no post of the part an order below
    `least_order`. How many postings were looked at.

    Postings give two bounds of a score. The n-th best of the lower ones is a floor, and only what reaches that by the
    upper one is worked out exactly, at last.
    """
    (
        term, block_starts, begins, block_bounds, posts, weighed, placed, signed, places, keys, own, heights, where,
    ) = part  # fmt: skip
    lon, lat, alphas, reaches, words, offsets, tall = tastes
    lists = lists_of(term, rows, words, offsets)
    widest, most_blocks, most_postings, begin = 1, np.int64(1), np.int64(1), np.int64(0)
    for i in range(rows.size):
        size = offsets[rows[i] + 1] - offsets[rows[i]]
        blocks, count = np.int64(0), np.int64(0)
        for j in range(begin, begin + size):
            if lists[j] >= 0:
                blocks += block_starts[lists[j] + 1] - block_starts[lists[j]]
                count += begins[block_starts[lists[j] + 1]] - begins[block_starts[lists[j]]]
        widest, most_blocks, most_postings = max(widest, size), max(most_blocks, blocks), max(most_postings, count)
        begin += size
    ids, turn = np.empty(widest, np.uint32), np.empty(widest, np.int64)
    qs, rest = np.empty(widest, np.float64), np.empty(widest, np.float64)
    tail, tops = np.empty(widest, np.float64), np.empty(widest, np.float64)
    later, before = np.empty((widest, 2), np.uint32), np.empty((widest, 2), np.uint32)
    upper, chords = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.float64)
    block_of, turn_of = np.empty(most_blocks, np.int64), np.empty(most_blocks, np.int64)
    bound_of = np.empty(most_blocks, np.float64)
    queue, buckets = np.empty(most_blocks, np.int64), np.empty(BUCKETS + 1, np.int64)
    chosen, chosen_turn = np.empty(most_postings, np.uint32), np.empty(most_postings, np.int64)
    chosen_bound = np.empty(most_postings, np.float64)
    scores, found, limits, spare = pool
    looked = 0
    end = np.int64(0)
    for i in range(rows.size):
        row = rows[i]
        begin = end
        end = begin + offsets[row + 1] - offsets[row]
        since = max(np.int64(0), firsts[i] - first)
        if sizes[i] == FULL or n[i] <= 0 or since >= where.size:
            continue
        m, count = 0, np.int64(0)
        for j in range(begin, end):
            if lists[j] >= 0:
                ids[m], qs[m] = lists[j], tall[offsets[row] + j - begin]
                count += begins[block_starts[lists[j] + 1]] - begins[block_starts[lists[j]]]
                m += 1
        if m == 0:
            continue
        alpha, reach = alphas[row], reaches[row]
        size, floor = sizes[i], floors[i]
        if SHORT * (where.size - since) < count:
            sizes[i], floors[i] = go_through(
                first, part, since, lon[row], lat[row], alpha, reach, ids, qs, m, n[i], bounds[i], base, order, hidden,
                pool, i, size, floor,
            )  # fmt: skip
            looked += where.size - since
            continue
        for j in range(m):  # heaviest word first
            at = j
            while at > 0 and qs[turn[at - 1]] < qs[j]:
                turn[at] = turn[at - 1]
                at -= 1
            turn[at] = j
        for u in range(m):
            later[u, 0] = later[u, 1] = before[u, 0] = before[u, 1] = 0
        for u in range(m):
            one, two = sign_of(term[ids[turn[u]]])
            for v in range(m):
                if v < u:
                    later[v, 0] |= one
                    later[v, 1] |= two
                elif v > u:
                    before[v, 0] |= one
                    before[v, 1] |= two
        beta = 1.0 - alpha
        x, y, z = unit_vector(lon[row], lat[row])
        sure = hidden.size == 0 and least_order >= bounds[i]

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
                    block_of[count], turn_of[count], bound_of[count] = block, u, bound
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

        picked, limit = 0, limits[i]
        for each in range(count):
            at = queue[each]
            if bound_of[at] < floor:
                continue
            u, block = turn_of[at], block_of[at]
            q = qs[turn[u]]
            bound_postings(
                begins[block], begins[block + 1], block_bounds, block, weighed, placed, signed, later, u, x, y, z,
                alpha, q, rest[u], tail[u], reach, upper, chords,
            )  # fmt: skip
            astray = np.float64(block_bounds[block, 3]) * ASTRAY
            looked += begins[block + 1] - begins[block]
            for at in range(begins[block + 1] - begins[block]):
                if upper[at] < floor:
                    continue
                j = begins[block] + at
                chord, bound = chords[at], upper[at]
                light = max(0.0, (weighed[j] & np.uint32(65535)) * STEP - STEP)
                chosen[picked], chosen_turn[picked], chosen_bound[picked] = j, u, bound
                picked += 1
                prefetch(posts, j)
                if weighed[j] & before[u, 0] | signed[j] & before[u, 1]:
                    continue
                score = alpha * least_near(chord + astray, reach) + beta * q * light - WIDER
                if score <= floor:
                    continue
                if not sure:
                    number = first + np.int64(keys[posts[j], 2] >> HIGH)
                    ranked = number - base
                    if ranked < 0 or ranked >= order.size or order[ranked] < bounds[i]:
                        continue
                    if hidden.size and is_hidden(hidden, number):
                        continue
                if size == limit:
                    size, floor = make_room(scores, found, limits, spare, i, size, n[i])
                    limit = limits[i]
                    if size == FULL:
                        break
                scores[i, size], found[i, size] = score, GUESS
                size += 1
            if size == FULL:
                break
        if size == FULL:
            sizes[i] = FULL
            continue

        left = 0
        for at in range(size):
            if found[i, at] != GUESS:
                scores[i, left], found[i, left] = scores[i, at], found[i, at]
                left += 1
        size = left
        left = 0
        for at in range(picked):
            if chosen_bound[at] >= floor:
                chosen[left], chosen_turn[left], chosen_bound[left] = chosen[at], chosen_turn[at], chosen_bound[at]
                left += 1
        picked = left
        for at in range(-2 * AHEAD, picked):
            if at + 2 * AHEAD < picked:
                prefetch(places, np.int64(posts[chosen[at + 2 * AHEAD]]))
            if 0 <= at + AHEAD < picked:
                key = keys[posts[chosen[at + AHEAD]], 2]
                prefetch(own, np.int64(key & LOW))
                prefetch(heights, np.int64(key & LOW))
                prefetch(heights, np.int64(key & LOW) + 8)
                if not sure:
                    prefetch(order, max(np.int64(0), min(order.size - 1, first + np.int64(key >> HIGH) - base)))
            if at < 0 or chosen_bound[at] < floor:
                continue
            j, u = chosen[at], chosen_turn[at]
            post = posts[j]
            number = first + np.int64(keys[post, 2] >> HIGH)
            if not sure:
                ranked = number - base
                if ranked < 0 or ranked >= order.size or order[ranked] < bounds[i]:
                    continue
                if hidden.size and is_hidden(hidden, number):
                    continue
            head, stop = np.int64(keys[post, 2] & LOW), np.int64(keys[post + 1, 2] & LOW)
            if weighed[j] & before[u, 0] | signed[j] & before[u, 1] and has_any(own, head, stop, ids, turn, u):
                continue
            if weighed[j] & later[u, 0] | signed[j] & later[u, 1]:
                alike = cosine(ids, qs, 0, m, own, heights, head, stop)
            else:  # the same, of one common word: a call costs more than that
                while own[head] != ids[turn[u]]:
                    head += 1
                alike = qs[turn[u]] * heights[head]
            score = score_of(alpha, nearness(lon[row], lat[row], places[post, 0], places[post, 1], reach), alike)
            if score < floor:
                continue
            if size == limit:
                size, floor = make_room(scores, found, limits, spare, i, size, n[i])
                limit = limits[i]
                if size == FULL:
                    break
            scores[i, size], found[i, size] = score, number
            size += 1
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
