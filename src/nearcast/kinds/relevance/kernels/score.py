"""The relevance of a post to a subscriber (Skype §3): nearness and the cosine of their words.

These few functions are the only place where weights and scores are worked out, so that every index, buffer and search
has them alike, bit for bit.
"""

import math

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import haversine_km

APART = -1.0  # the score of a post that has none of the words


@kernel
def weigh(terms, offsets, known, idf, unknown):
    """tf-idf vectors of unit length: (terms, offsets, weights), each term of a text once, terms ascending.

    `terms` are those of the texts, with 0 at boundaries; the idf of `known[i]` (sorted) is `idf[i]`, that of any other
    term is `unknown`.
    """
    out = np.empty(terms.size, np.uint64)
    weights = np.empty(terms.size, np.float64)
    ends = np.zeros(offsets.size, np.int64)
    n = 0
    for text in range(offsets.size - 1):
        own = np.sort(terms[offsets[text] : offsets[text + 1]])
        begin = n
        at = 0
        square = 0.0
        while at < own.size:
            term = own[at]
            stop = at + 1
            while stop < own.size and own[stop] == term:
                stop += 1
            if term != 0:
                place = np.searchsorted(known, term)
                rarity = unknown
                if place < known.size and known[place] == term:
                    rarity = idf[place]
                weight = (stop - at) * rarity
                out[n], weights[n] = term, weight
                square += weight * weight
                n += 1
            at = stop
        length = math.sqrt(square)
        for i in range(begin, n):
            weights[i] /= length
        ends[text + 1] = n
    return out[:n].copy(), ends, weights[:n].copy()


@kernel
def rarities(posts, counts):
    """The idf of terms that are in `counts` of so many posts; by the same logarithm as Python's."""
    out = np.empty(counts.size, np.float64)
    for i in range(counts.size):
        out[i] = math.log((1.0 + posts) / (1.0 + counts[i])) + 1.0
    return out


@kernel
def nearness(lon1, lat1, lon2, lat2, reach):
    """1 at the place itself, 0 at `reach` km and beyond (SSim)."""
    km = haversine_km(lon1, lat1, lon2, lat2)
    return 1.0 - km / reach if km < reach else 0.0


@kernel
def cosine(words, weights, begin, end, terms, heights, first, last):
    """The cosine of two vectors of ascending terms (TSim), from lower terms to higher; APART if they share none."""
    total = 0.0
    common = False
    i, j = begin, first
    while i < end and j < last:
        if words[i] < terms[j]:
            i += 1
        elif words[i] > terms[j]:
            j += 1
        else:
            total += weights[i] * heights[j]
            common = True
            i += 1
            j += 1
    return total if common else APART


@kernel
def score_of(alpha, near, alike):
    """Equation 1."""
    return alpha * near + (1.0 - alpha) * alike
