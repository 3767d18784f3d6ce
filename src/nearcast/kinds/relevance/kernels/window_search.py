"""The best posts of a window for many subscribers, from lists of words in blocks
(`kinds.relevance.kernels.window_build`).

Groups of blocks are gone through from the highest bound on (`kinds.relevance.kernels.window_bounds`), until none can
have what is still missing.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.prefetch import prefetch
from nearcast.common.kernels.sorting import hashed_bound
from nearcast.kinds.relevance.kernels.score import APART, cosine, nearness, score_of
from nearcast.kinds.relevance.kernels.window_arrays import (
    AskedPoint,
    AskedScore,
    AskedWords,
    LaterWords,
    PackedPostings,
    PickedPostings,
    PostingBounds,
    RowWindow,
)
from nearcast.kinds.relevance.kernels.window_bounds import WIDER, bound_blocks, bound_postings, least_near
from nearcast.kinds.relevance.kernels.window_build import ASTRAY, BLOCK, GROUP, STEP, kind_of, sign_of, unit_vector
from nearcast.kinds.relevance.kernels.window_picked import GUESS, HIGH, LOW, is_inside, score_picked
from nearcast.kinds.relevance.kernels.window_pools import FULL, make_room

AHEAD = 8  # posts, which are asked for beforehand
BUCKETS = 64  # of groups by bound
PICKED = 192  # postings, which are worked out together
SOON = 2  # groups, which are asked for beforehand
GONE = np.uint32(0xFFFFFFFF)  # in place of a post, where none has this number
FEW = 8  # times n: where a window has fewer of the postings, they give no floor to speak of


@kernel
def by_bound(bounds, count, lowest, highest, buckets, queue):
    """Fill `queue` with what has such bounds, the highest first as far as buckets tell. None that comes later has a
    bound that is more than what is returned above another's.
    """
    scale = (BUCKETS - 1) / (highest - lowest) if highest > lowest else 0.0
    buckets[:] = 0
    for at in range(count):
        buckets[np.int64((highest - bounds[at]) * scale) + 1] += 1
    for at in range(BUCKETS):
        buckets[at + 1] += buckets[at]
    for at in range(count):
        bucket = np.int64((highest - bounds[at]) * scale)
        queue[buckets[bucket]] = at
        buckets[bucket] += 1
    return (highest - lowest) * (1.001 / (BUCKETS - 1)) + WIDER


@kernel
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


@kernel
def is_short(inside, posts, postings, n):
    """Whether a window that has so many of a part's posts is better gone through than searched by words."""
    return FEW * inside < postings or (inside < postings and postings * (inside / posts) < FEW * n)


@kernel
def go_through(first, part, since, asked, ids, qs, window, pool, i, size, floor):
    """A short window is gone through post by post: (size and floor of the pool)."""
    places, keys, own, heights, where = part.places, part.keys, part.own, part.heights, part.where
    x, y, alpha, reach, m, n = asked
    _, bound, base, order, hidden = window
    scores, found, limits, spare = pool
    for at in range(since, where.size):
        if at + 2 * AHEAD < where.size:  # a post that is GONE has the last place, which is no post's
            prefetch(keys, np.int64(min(where[at + 2 * AHEAD], keys.shape[0] - 1)))
            prefetch(own, np.int64(keys[min(where[at + AHEAD], keys.shape[0] - 1), 2] & LOW))
        post = where[at]
        if post == GONE or not is_inside(first + at, bound, base, order, hidden):
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


@kernel
def fetch_block(begin, end, weighed, placed, signed):
    """Ask for the postings of a block: eight signatures are a cache line, as are 16 places and 32 weights."""
    prefetch(weighed, begin)
    for at in range(begin, end, 16):
        prefetch(placed, at)
    for at in range(begin, end, 8):
        prefetch(signed, at)


@kernel
def search_part(first, part, least_order, subscribers, rows, n, bounds, firsts, ledger, pool, sizes, floors):
    """Search one part for each of `rows`: pools hold its n best in the window of all parts searched, and `floors` what
    the next must reach. A row's window has no number below `firsts`, and no post of the part an order below
    `least_order`. How many postings were looked at.

    Postings give two bounds of a score. The n-th best of the lower ones is a floor, and only what reaches that by the
    upper one is worked out exactly, at last.
    """
    term, group_starts, grouped, block_starts, begins = (
        part.term, part.group_starts, part.grouped, part.block_starts, part.begins,
    )  # fmt: skip
    block_bounds, posts, weighed, placed, signed = part.bounds, part.posts, part.weighed, part.placed, part.signed
    keys, where = part.keys, part.where
    lon, lat, alphas, reaches, words, offsets, tall = subscribers
    base, order, hidden = ledger
    lists = lists_of(term, rows, words, offsets)
    widest, most, begin = 1, np.int64(1), np.int64(0)
    for i in range(rows.size):
        size = offsets[rows[i] + 1] - offsets[rows[i]]
        groups = np.int64(0)
        for j in range(begin, begin + size):
            if lists[j] >= 0:
                groups += group_starts[lists[j] + 1] - group_starts[lists[j]]
        widest, most = max(widest, size), max(most, groups)
        begin += size
    ids, turn, qs = np.empty(widest, np.uint32), np.empty(widest, np.int64), np.empty(widest, np.float64)
    rest, tops, adds = np.empty(widest, np.float64), np.empty(widest, np.float64), np.empty(widest, np.float64)
    signs, kinds = np.empty(widest, np.uint64), np.empty(widest, np.uint64)
    asking, later = AskedWords(ids, turn, qs, rest, tops, signs, kinds), LaterWords(signs, adds, tops)
    packed = PackedPostings(weighed, placed, signed)
    upper, chords, nears = np.empty(BLOCK, np.float64), np.empty(BLOCK, np.float64), np.empty(BLOCK, np.float64)
    posting_bounds = PostingBounds(upper, chords, nears)
    group_of, turn_of, queue = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    bound_of, bound_of_all = np.empty(most, np.float64), np.empty(most, np.float64)
    bound_of_block, others = np.empty(GROUP, np.float64), np.empty(widest, np.float64)
    buckets = np.empty(BUCKETS + 1, np.int64)
    chosen, chosen_turn = np.empty(PICKED + BLOCK, np.int64), np.empty(PICKED + BLOCK, np.int64)
    chosen_bound, chosen_near = np.empty(PICKED + BLOCK, np.float64), np.empty(PICKED + BLOCK, np.float64)
    picked = PickedPostings(chosen, chosen_turn, chosen_bound, chosen_near)
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
        sure = hidden.size == 0 and least_order >= bounds[i]
        asked = AskedScore(lon[row], lat[row], alpha, reach, m, n[i])
        window = RowWindow(sure, bounds[i], base, order, hidden)
        if is_short(where.size - since, where.size, count, n[i]):
            sizes[i], floors[i] = go_through(first, part, since, asked, ids, qs, window, pool, i, size, floor)
            looked += where.size - since
            continue
        for j in range(m):  # heaviest word first
            at = j
            while at > 0 and qs[turn[at - 1]] < qs[j]:
                turn[at] = turn[at - 1]
                at -= 1
            turn[at] = j
        for u in range(m):
            term_of = term[ids[turn[u]]]
            signs[u], kinds[u], adds[u] = sign_of(term_of), kind_of(term_of), qs[turn[u]]
        beta = 1.0 - alpha
        x, y, z = unit_vector(lon[row], lat[row])
        point = AskedPoint(x, y, z, alpha, reach)

        square, more = 0.0, 0.0
        count = 0
        lowest, highest = np.inf, -np.inf
        for u in range(m - 1, -1, -1):
            q = qs[turn[u]]
            rest[u], others[u] = math.sqrt(square), more
            group, stop = group_starts[ids[turn[u]]], group_starts[ids[turn[u]] + 1]
            heaviest = bound_blocks(group, stop, grouped, x, y, z, alpha, q, rest[u], more, reach, bound_of_all)
            for at in range(stop - group):
                bound = bound_of_all[at]
                if bound >= floor:
                    group_of[count], turn_of[count], bound_of[count] = group + at, u, bound
                    lowest, highest = min(lowest, bound), max(highest, bound)
                    count += 1
            tops[u] = q * heaviest
            square += q * q
            more += tops[u]
        wide = by_bound(bound_of, count, lowest, highest, buckets, queue)

        waiting = 0
        for each in range(count):
            if each + SOON < count and bound_of[queue[each + SOON]] >= floor:
                soon = queue[each + SOON]
                code = ids[turn[turn_of[soon]]]
                at = block_starts[code] + (group_of[soon] - group_starts[code]) * GROUP
                for column in range(6):
                    prefetch(block_bounds[column], at)
            at = queue[each]
            if bound_of[at] < floor:
                if bound_of[at] + wide < floor:
                    break
                continue
            u = turn_of[at]
            q, code = qs[turn[u]], ids[turn[u]]
            first_block = block_starts[code] + (group_of[at] - group_starts[code]) * GROUP
            blocks = min(np.int64(GROUP), block_starts[code + 1] - first_block)
            bound_blocks(
                first_block, first_block + blocks, block_bounds, x, y, z, alpha, q, rest[u], others[u], reach,
                bound_of_block,
            )  # fmt: skip
            for at in range(blocks):
                if bound_of_block[at] >= floor:
                    fetch_block(begins[first_block + at], begins[first_block + at + 1], weighed, placed, signed)
            for block in range(first_block, first_block + blocks):
                if bound_of_block[block - first_block] < floor:
                    continue
                bound_postings(
                    begins[block], begins[block + 1], block_bounds, block, packed, later, u, m, point, q, rest[u],
                    posting_bounds,
                )  # fmt: skip
                astray = np.float64(block_bounds[3, block]) * ASTRAY
                looked += begins[block + 1] - begins[block]
                for at in range(begins[block + 1] - begins[block]):
                    if upper[at] < floor:
                        continue
                    j = begins[block] + at
                    chosen[waiting], chosen_turn[waiting] = j, u
                    chosen_bound[waiting], chosen_near[waiting] = upper[at], nears[at]
                    waiting += 1
                    prefetch(posts, j)
                    once = True  # a post that may have been met at another word is no second one
                    for v in range(u):
                        if signed[j] & signs[v] == signs[v]:
                            once = False
                    if not once:
                        continue
                    light = max(0.0, np.float64(weighed[j]) * STEP - STEP)
                    score = alpha * least_near(chords[at] + astray, reach) + beta * q * light - WIDER
                    if score <= floor:
                        continue
                    if not sure:
                        number = first + np.int64(keys[posts[j], 2] >> HIGH)
                        if not is_inside(number, bounds[i], base, order, hidden):
                            continue
                    if size == limits[i]:
                        size, least = make_room(scores, found, limits, spare, i, size, n[i])
                        floor = max(floor, least)
                        if size == FULL:
                            break
                    scores[i, size], found[i, size] = score, GUESS
                    size += 1
                if waiting >= PICKED and size != FULL:
                    size, floor = score_picked(
                        first, part, asked, asking, window, picked, waiting, pool, i, size, floor
                    )
                    waiting = 0
                if size == FULL:
                    break
            if size == FULL:
                break
        if size != FULL:
            size, floor = score_picked(first, part, asked, asking, window, picked, waiting, pool, i, size, floor)
        sizes[i], floors[i] = size, floor
    return looked
