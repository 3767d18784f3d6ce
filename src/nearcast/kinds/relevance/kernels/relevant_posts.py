"""The most relevant of stored posts (Skype §3): candidates that bounds do not rule out, with a score near the true
one; and true scores.

A bound needs the length of a post's vector, which takes reading all its words. Lengths, and the idf of a segment's
words, are worked out when they are first needed and kept in arrays that the caller holds, 0 where not known yet. Two
threads may fill them at once: they write the same.
"""

import math
from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import haversine_km, in_region
from nearcast.common.kernels.packing import integer_at, place_at
from nearcast.common.kernels.sorting import hashed_bound, sort_in_place
from nearcast.common.kernels.varint import get
from nearcast.kinds.relevance.kernels.score import cosine, nearness, score_of
from nearcast.storage.posts.kernels.check import has_words, is_among
from nearcast.storage.posts.kernels.forward import post_at
from nearcast.storage.posts.kernels.nearest_posts import lower_to

SLACK = 1e-9  # far above what the order of a sum can change in a score
SHORTER = 1.0 - 1e-6  # lengths are kept in single precision, rounded down


class AskedRelevance(NamedTuple):
    """What relevance is asked for: a place, alpha, reach, and words as the segment codes them, with their weights."""

    lon: float
    lat: float
    alpha: float
    reach: float
    codes: np.ndarray
    weights: np.ndarray


class WordWeights(NamedTuple):
    """How the words of a segment weigh by one version of the idf, and how long the vectors of its posts are."""

    rarity: np.ndarray  # the idf of each code, 0 where not known yet
    lengths: np.ndarray  # of each post, 0 where not known yet
    terms: np.ndarray  # of each code
    known: np.ndarray  # the terms that the version knows, sorted
    idf: np.ndarray  # of those
    unknown: float  # the idf of all others


@kernel
def _idf_of(code, rarity, terms, known, idf, unknown):
    value = rarity[code]
    if value == 0.0:
        term = terms[code]
        at = hashed_bound(known, term)
        value = unknown
        if at < known.size and known[at] == term:
            value = idf[at]
        rarity[code] = value
    return value


@kernel
def _measured(row, first, codes, pulls, rarity, terms, known, idf, unknown, data, starts):
    """(inner product, length, greatest tf, has a word, has one before `first`) of a post and the words asked for."""
    head, at = get(data, post_at(data, starts, row))
    end = at + (head >> 1)
    along, square, most = 0.0, 0.0, 1
    common, earlier = False, False
    if not head & 1:
        while at < end:
            code, at = get(data, at)
            if code == 0:
                continue
            weight = _idf_of(code, rarity, terms, known, idf, unknown)
            square += weight * weight
            for i in range(codes.size):
                if codes[i] == code:
                    along += pulls[i] * weight
                    common = True
                    earlier |= i < first
        return along, math.sqrt(square), most, common, earlier
    own = np.empty(end - at, np.int64)
    n = 0
    while at < end:
        code, at = get(data, at)
        if code:
            own[n] = code
            n += 1
    sort_in_place(own, n)
    begin = 0
    while begin < n:
        stop = begin + 1
        while stop < n and own[stop] == own[begin]:
            stop += 1
        weight = (stop - begin) * _idf_of(own[begin], rarity, terms, known, idf, unknown)
        most = max(most, stop - begin)
        square += weight * weight
        for i in range(codes.size):
            if codes[i] == own[begin]:
                along += pulls[i] * weight
                common = True
                earlier |= i < first
        begin = stop
    return along, math.sqrt(square), most, common, earlier


@kernel
def _says(code, data, starts, row):
    """Whether a post satisfies a keyword expression; an empty one is always true."""
    if not code.size:
        return True
    ok, _, _ = has_words(code, data, starts, row, np.empty(64, np.uint64), np.empty(64, np.uint64))
    return ok


@kernel
def relevant_among(rows, first, pull, cap, floor, best, target, weighing, posts, gone, asked, code):
    """(rows, scores, how many were read): those of some rows that may be among the k best, with their scores but for
    SLACK.

    A row has one of the words of the target from `first` on (or none: then it is left out); if it has an earlier one,
    it was tried before. No row has an inner product above `pull`, nor a cosine above `cap`. `best` holds the k greatest
    scores so far, negated, the least first; what is below `floor` is of no use either. `gone` are deleted rows, `code`
    is the expression to satisfy.
    """
    lon, lat, alpha, reach, codes, pulls = target
    rarity, lengths, terms, known, idf, unknown = weighing
    fixed, exact, ts_data, ts_width, ts_base, words, word_starts = posts
    kind, west, south, east, north, shape, since, until = asked
    out = np.empty(rows.size, np.int64)
    scores = np.empty(rows.size, np.float64)
    found = 0
    read = 0
    for i in range(rows.size):
        row = rows[i]
        least = max(floor, -best[0]) - SLACK
        length = lengths[np.uint64(row)]
        alike = cap
        if length > 0.0:
            alike = min(cap, pull / length)
        if alpha + (1.0 - alpha) * alike < least:
            continue
        ts = integer_at(ts_data, ts_width, ts_base, row)
        if ts < since or ts >= until:
            continue
        x, y = place_at(fixed, exact, row)
        missing = least - (1.0 - alpha) * alike
        # What is missing is at most alpha; a degree of latitude is 111.19 km.
        if missing > 0.0 and abs(y - lat) * 111.0 * alpha > reach * (alpha - missing) + 1e-6:
            continue
        km = haversine_km(lon, lat, x, y)
        near = 1.0 - km / reach if km < reach else 0.0
        if alpha * near + (1.0 - alpha) * alike < least:
            continue
        if kind and not in_region(kind, west, south, east, north, shape, 0, shape.size, x, y):
            continue
        read += 1
        along, length, most, common, earlier = _measured(
            row, first, codes, pulls, rarity, terms, known, idf, unknown, words, word_starts
        )
        if length > 0.0:
            lengths[row] = length / most * SHORTER
        if not common or earlier:
            continue
        score = alpha * near + (1.0 - alpha) * (along / length)
        if score < least or is_among(gone, row) or not _says(code, words, word_starts, row):
            continue
        if -score < best[0]:
            lower_to(best, -score)
        out[found] = row
        scores[found] = score
        found += 1
    return out[:found], scores[:found], read


@kernel
def true_scores(lon, lat, alpha, reach, words, weights, lons, lats, terms, offsets, heights):
    """(score, nearness, cosine) of posts for one subscriber; the cosine is APART where they share no word."""
    count = lons.size
    scores, nears, alikes = np.empty(count, np.float64), np.empty(count, np.float64), np.empty(count, np.float64)
    for i in range(count):
        nears[i] = nearness(lon, lat, lons[i], lats[i], reach)
        alikes[i] = cosine(words, weights, 0, words.size, terms, heights, offsets[i], offsets[i + 1])
        scores[i] = score_of(alpha, nears[i], alikes[i])
    return scores, nears, alikes
