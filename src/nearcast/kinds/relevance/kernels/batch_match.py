"""A batch of posts against postings in blocks: term by term, and block by block for all posts that have the term."""

import math
from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import RADIANS
from nearcast.kinds.relevance.kernels.posting_blocks import (
    ALPHA,
    BLOCK,
    OWN,
    RADIUS,
    REST,
    SLOPE,
    SPARE,
    X,
    Y,
    Z,
    sign_of,
)
from nearcast.kinds.relevance.kernels.score import cosine, nearness, score_of
from nearcast.kinds.relevance.kernels.term_ranks import by_rarity

SHELF = 64  # blocks that are gone through for all posts of a term before the next ones: some 150 KB
WIDE = np.float32(4e-6)  # what rounding in single precision may hide, of a score
OWN_WEIGHT, REST_WEIGHT = 3, 4  # of an entry, after its place x, y, z


class InvertedBatch(NamedTuple):
    """A batch by term (`invert`): what is asked of the postings of each term."""

    begins: np.ndarray  # the first entry of each term, and an end
    posts: np.ndarray  # of each entry its post
    terms: np.ndarray  # its term
    entries: np.ndarray  # the place of the post, the weight of the term in it, and the greatest of any commoner one
    signs: np.ndarray  # bits of those


class BlockedPostings(NamedTuple):
    """Postings of subscribers by term, in blocks (`kinds.relevance.kernels.posting_blocks`)."""

    begins: np.ndarray  # the first posting of each term, and an end
    firsts: np.ndarray  # the first block of each term, and an end
    postings: np.ndarray
    owners: np.ndarray  # the row of each posting
    signs: np.ndarray  # bits of the words of its subscriber that are commoner than its own
    blocks: np.ndarray  # bounds


@kernel
def invert(lon, lat, numbers, offsets, weights, counts):
    """A batch by term.

    `counts` has a zero for each term. An entry is the place of the post, the weight of the term in it, and the greatest
    weight of any commoner one (maxwt).
    """
    longest = 0
    for post in range(lon.size):
        longest = max(longest, offsets[post + 1] - offsets[post])
    order = np.empty(longest + 1, np.int64)
    known = 0
    for i in range(numbers.size):
        if numbers[i] >= 0:
            counts[numbers[i]] += 1
            known += 1
    begins = np.zeros(counts.size + 1, np.int64)
    for term in range(counts.size):
        begins[term + 1] = begins[term] + counts[term]
        counts[term] = begins[term]
    posts, entry_terms = np.empty(known, np.int32), np.empty(known, np.int32)
    entries, signs = np.empty((known, 5), np.float32), np.empty(known, np.uint32)
    for post in range(lon.size):
        n = by_rarity(numbers, offsets[post], offsets[post + 1], order)
        level = math.cos(lat[post] * RADIANS)
        greatest, sign = 0.0, np.uint32(0)
        for i in range(n - 1, -1, -1):
            at = counts[numbers[order[i]]]
            counts[numbers[order[i]]] = at + 1
            posts[at], entry_terms[at] = post, numbers[order[i]]
            entries[at, X] = level * math.cos(lon[post] * RADIANS)
            entries[at, Y] = level * math.sin(lon[post] * RADIANS)
            entries[at, Z] = math.sin(lat[post] * RADIANS)
            entries[at, OWN_WEIGHT] = weights[order[i]]
            entries[at, REST_WEIGHT], signs[at] = greatest, sign
            sign |= sign_of(numbers[order[i]])
            greatest = max(greatest, weights[order[i]])
    return InvertedBatch(begins, posts, entry_terms, entries, signs)


# The next two are written so that LLVM makes vector code of them: no max or min, whose NaNs would branch, and no
# index that could be negative.


@kernel
def test_blocks(blocks, begin, end, entry, hits):
    """Mark the blocks begin..end-1 that may hold a subscriber for this entry."""
    px, py, pz, own, rest = entry[0], entry[1], entry[2], entry[3], entry[4]
    x, y, z = blocks[X, begin:end], blocks[Y, begin:end], blocks[Z, begin:end]
    most, owns, rests = blocks[SPARE, begin:end], blocks[OWN, begin:end], blocks[REST, begin:end]
    least, slopes, radius = blocks[ALPHA, begin:end], blocks[SLOPE, begin:end], blocks[RADIUS, begin:end]
    zero, cubic = np.float32(0.0), np.float32(1.0 / 24.0)
    for i in range(x.size):
        dx, dy, dz = x[i] - px, y[i] - py, z[i] - pz
        chord = np.sqrt(dx * dx + dy * dy + dz * dz) - radius[i]
        chord = chord if chord > zero else zero
        way = slopes[i] * (chord + chord * chord * chord * cubic)
        way = way if way < least[i] else least[i]
        hits[i] = most[i] + owns[i] * own + rests[i] * rest + WIDE >= way


@kernel
def test_postings(postings, signs, begin, end, entry, sign, hits):
    """Mark the postings begin..end-1 that may be of a subscriber for this entry."""
    px, py, pz, own, rest = entry[0], entry[1], entry[2], entry[3], entry[4]
    x, y, z = postings[X, begin:end], postings[Y, begin:end], postings[Z, begin:end]
    spares, owns, rests = postings[SPARE, begin:end], postings[OWN, begin:end], postings[REST, begin:end]
    alphas, slopes, marks = postings[ALPHA, begin:end], postings[SLOPE, begin:end], signs[begin:end]
    zero, one, less, tiny = np.float32(0.0), np.float32(1.0), np.float32(0.999), np.float32(1e-10)
    second, third, fourth = np.float32(1.0 / 12.0), np.float32(1.0 / 90.0), np.float32(1.0 / 560.0)
    for i in range(x.size):
        dx, dy, dz = x[i] - px, y[i] - py, z[i] - pz
        t = (dx * dx + dy * dy + dz * dz) * less - tiny
        # The square of an angle from that of its chord: a series of which every term is positive.
        way = slopes[i] * slopes[i] * (t * (one + t * (second + t * (third + t * fourth))))
        more = rests[i] * rest if marks[i] & sign else zero
        spare = spares[i] + owns[i] * own + more + WIDE
        hits[i] = (spare >= zero) & ((spare >= alphas[i]) | (way <= spare * spare))


@kernel
def first_common(words, begin, end, terms, first, last, numbers, number):
    """Whether no common word is rarer than the term of this number."""
    i, j = begin, first
    while i < end and j < last:
        if words[i] < terms[j]:
            i += 1
        elif words[i] > terms[j]:
            j += 1
        else:
            if numbers[j] < number:
                return False
            i += 1
            j += 1
    return True


@kernel
def collect(index, batch, of_blocks, of_postings, rows, which, resume):
    """Candidates, as rows of subscribers and places in `entries`; returns (how many, postings tested).

    It stops where the output might not hold another shelf of blocks, and notes in `resume` (term, block, entry) where
    to go on. Without `of_blocks` every block passes, without `of_postings` every posting.
    """
    begins, firsts, postings, owners, signs, blocks = index
    asked, _, _, entries, asking = batch
    hits = np.ones(SHELF, np.uint8)
    marks = np.ones(BLOCK, np.uint8)
    eights = marks.view(np.uint64)
    n, tested = 0, 0
    from_block, from_entry = resume[1], resume[2]
    for term in range(resume[0], begins.size - 1):
        if asked[term] == asked[term + 1] or firsts[term] == firsts[term + 1]:
            continue
        shelf = max(firsts[term], from_block)
        while shelf < firsts[term + 1]:
            top = min(shelf + SHELF, firsts[term + 1])
            for e in range(max(asked[term], from_entry), asked[term + 1]):
                if n + SHELF * BLOCK > rows.size:
                    resume[0], resume[1], resume[2] = term, shelf, e
                    return n, tested
                if of_blocks:
                    test_blocks(blocks, shelf, top, entries[e], hits)
                for h in range(top - shelf):
                    if hits[h] == 0:
                        continue
                    begin = begins[term] + (shelf + h - firsts[term]) * BLOCK
                    size = min(np.int64(BLOCK), begins[term + 1] - begin)
                    tested += size
                    if of_postings:
                        test_postings(postings, signs, begin, begin + size, entries[e], asking[e], marks)
                    for eight in range((size + 7) >> 3):
                        if eights[eight] == 0:
                            continue
                        for m in range(eight * 8, min(eight * 8 + 8, size)):
                            if marks[m] != 0:
                                rows[n], which[n] = owners[begin + m], e
                                n += 1
            from_entry = 0
            shelf = top
        from_block = 0
    resume[0] = begins.size - 1
    return n, tested


@kernel
def by_row(rows, which, n, rows_to, which_to, shift, places):
    """One pass of a radix sort: candidates ordered by the bits of their rows from `shift` on, and stably so."""
    mask = places.size - 2
    places[:] = 0
    for i in range(n):
        places[((rows[i] >> shift) & mask) + 1] += 1
    for digit in range(mask + 1):
        places[digit + 1] += places[digit]
    for i in range(n):
        digit = (rows[i] >> shift) & mask
        to = places[digit]
        places[digit] = to + 1
        rows_to[to], which_to[to] = rows[i], which[i]


@kernel
def verify(rows, which, n, batch, numbers, part, home, theta, subscribers, vectors, out):
    """Of n candidates those of a score of at least theta, each at its rarest common word; returns how many.

    `numbers` are those of the terms of the `vectors`, by rarity. Only subscribers with this part as `home` count.
    """
    posts, entry_terms = batch.posts, batch.terms
    lon, lat, alpha, reach, words, offsets, weights = subscribers
    post_lon, post_lat, terms, starts, heights = vectors
    out_rows, out_posts, out_scores = out
    found = 0
    for i in range(n):
        row, post = rows[i], posts[which[i]]
        if home[row] != part:
            continue
        begin, end, first, last = offsets[row], offsets[row + 1], starts[post], starts[post + 1]
        alike = cosine(words, weights, begin, end, terms, heights, first, last)
        if score_of(alpha[row], 1.0, alike) < theta[row]:
            continue
        near = nearness(lon[row], lat[row], post_lon[post], post_lat[post], reach[row])
        score = score_of(alpha[row], near, alike)
        if score >= theta[row] and first_common(words, begin, end, terms, first, last, numbers, entry_terms[which[i]]):
            out_rows[found], out_posts[found], out_scores[found] = row, post, score
            found += 1
    return found
