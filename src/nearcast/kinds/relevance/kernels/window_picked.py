"""What blocks of postings have left to choose from, worked out exactly: the last step of a search of the window.

Of a posting's two bounds, the lower one was a guess that gave the others a floor. Before the words of a post are read,
its sketch (`kinds.relevance.kernels.window_build`) says more about those beside the posting's own, which mostly is
enough.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.sorting import lower_bound
from nearcast.kinds.relevance.kernels.score import cosine, nearness, score_of
from nearcast.kinds.relevance.kernels.window_build import STEP, most_weight
from nearcast.kinds.relevance.kernels.window_pools import FULL, make_room

LOW, HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)  # halves of a post's key: where its words begin, its number
GUESS = -1  # in place of a number: what has but a lower bound of its score


@kernel
def is_inside(number, bound, base, order, hidden):
    """Whether a post is in a window, and none of those hidden."""
    ranked = number - base
    if ranked < 0 or ranked >= order.size or order[ranked] < bound:
        return False
    found = lower_bound(hidden, number) if hidden.size else 0
    return found >= hidden.size or hidden[found] != number


@kernel
def has_any(own, begin, end, ids, turn, count):
    """Whether a post has one of the first `count` words of the subscriber."""
    for i in range(begin, end):
        for u in range(count):
            if own[i] == ids[turn[u]]:
                return True
    return False


@kernel
def without_guesses(scores, found, size):
    """Leave what is exact in a pool: how many."""
    left = 0
    for at in range(size):
        if found[at] != GUESS:
            scores[left], found[left] = scores[at], found[at]
            left += 1
    return left


@kernel
def most_alike(sketch, sign, weighed, u, m, words):
    """No less than the cosine of a post and the words from u on, by a posting of word u."""
    _, turn, qs, rest, tops, signs, kinds = words
    light = max(0.0, np.float64(weighed) * STEP - STEP)
    left = math.sqrt(max(0.0, 1.0 - light * light) + 1e-14)
    more = 0.0
    for v in range(u + 1, m):
        if sign & signs[v] == signs[v]:
            more += min(qs[turn[v]] * min(left, most_weight(sketch, kinds[v])), tops[v])
    return qs[turn[u]] * STEP * np.float64(weighed) + min(more, rest[u] * left)


@kernel
def score_picked(first, part, asked, words, window, picked, count, pool, i, size, floor):
    """Take the posts of the postings picked into the pool, as far as they reach the floor: (size, floor)."""
    posts, weighed, signed = part.posts, part.weighed, part.signed
    places, keys, own, heights = part.places, part.keys, part.own, part.heights
    lon, lat, alpha, reach, m, n = asked
    ids, turn, qs, _, _, signs, _ = words
    sure, bound, base, order, hidden = window
    chosen, chosen_turn, chosen_bound, chosen_near = picked
    scores, found, limits, spare = pool
    beta = 1.0 - alpha
    size = without_guesses(scores[i], found[i], size)
    for at in range(count):
        if chosen_bound[at] >= floor:
            prefetch(places, np.int64(posts[chosen[at]]))
    left = 0
    for at in range(count):
        if chosen_bound[at] < floor:
            continue
        j, u = chosen[at], chosen_turn[at]
        post = posts[j]
        alike = most_alike(keys[post, 3], signed[j], weighed[j], u, m, words)
        if chosen_near[at] + beta * alike < floor:
            continue
        key = keys[post, 2]
        prefetch(own, np.int64(key & LOW))
        prefetch(heights, np.int64(key & LOW))
        prefetch(heights, np.int64(key & LOW) + 8)
        if not sure:
            prefetch(order, max(np.int64(0), min(order.size - 1, first + np.int64(key >> HIGH) - base)))
        chosen[left], chosen_turn[left], chosen_near[left] = j, u, chosen_near[at]
        chosen_bound[left] = chosen_near[at] + beta * alike
        left += 1
    middle = chosen_bound[:left].mean() if left else 0.0
    for promising in (True, False):  # what comes first raises the floor for the rest
        for at in range(left):
            if chosen_bound[at] < floor or (chosen_bound[at] >= middle) != promising:
                continue
            j, u = chosen[at], chosen_turn[at]
            post = posts[j]
            number = first + np.int64(keys[post, 2] >> HIGH)
            if not (sure or is_inside(number, bound, base, order, hidden)):
                continue
            head, stop = np.int64(keys[post, 2] & LOW), np.int64(keys[post + 1, 2] & LOW)
            common, before = False, False
            for v in range(m):
                if v != u and signed[j] & signs[v] == signs[v]:
                    common = True
                    before |= v < u
            if before and has_any(own, head, stop, ids, turn, u):
                continue
            if common:
                alike = cosine(ids, qs, 0, m, own, heights, head, stop)
            else:  # the same, of one common word: a call costs more than that
                while own[head] != ids[turn[u]]:
                    head += 1
                alike = qs[turn[u]] * heights[head]
            if chosen_near[at] + beta * alike < floor:
                continue
            score = score_of(alpha, nearness(lon, lat, places[post, 0], places[post, 1], reach), alike)
            if score < floor:
                continue
            if size == limits[i]:
                size, least = make_room(scores, found, limits, spare, i, size, n)
                floor = max(floor, least)
                if size == FULL:
                    return size, floor
            scores[i, size], found[i, size] = score, number
            size += 1
    return size, floor
