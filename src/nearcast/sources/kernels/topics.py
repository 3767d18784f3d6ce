"""Which topic a post is about, by a model of topics and words: variational inference of LDA (Hoffman, Blei and Bach
2010), one post at a time.

Each word of a post raises the post's share of each topic, in proportion to how much the topic wants that word and to
what the share counts for already. All topics take part in the first step; from then on only the KEPT greatest, as the
others cannot win any more. What a share counts for, exp of the digamma function, is read from a table.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.sorting import hashed_bound

KEPT = 6
STEPS = 40
PARTS = 64  # of the table, to a step of 1
EQUAL = 1e-9  # shares that differ by no more: two words on two topics are a tie, whatever is rounded
CHANGE = 1e-3  # in the mean over all topics, below which a post is settled


@kernel
def topics_of(terms, offsets, known, weights, prior, table):
    """The topic of each post, -1 where none of its words is known. `weights` has a row for each term of `known`
    (sorted), with a sum of 1; of equal topics the first wins.
    """
    topics = weights.shape[1]
    kept = min(KEPT, topics)
    longest = np.int64(0)
    for post in range(offsets.size - 1):
        longest = max(longest, offsets[post + 1] - offsets[post])
    words = np.empty(longest, np.int64)
    wanted = np.empty((longest, kept))
    shares = np.empty(topics, np.float32)
    best = np.empty(kept, np.int64)
    share, following, counts = np.empty(kept), np.empty(kept), np.empty(kept)
    out = np.full(offsets.size - 1, np.int64(-1))
    for post in range(offsets.size - 1):
        n = 0
        for i in range(offsets[post], offsets[post + 1]):
            at = hashed_bound(known, terms[i])
            if at < known.size and known[at] == terms[i]:
                words[n] = at
                n += 1
        if n == 0:
            continue
        shares[:] = np.float32(prior)
        for i in range(n):
            row = words[i]
            for k in range(topics):
                shares[k] += weights[row, k]
        share[:] = -1.0
        for k in range(topics):
            if shares[k] > share[kept - 1]:
                j = kept - 1
                while j > 0 and shares[k] > share[j - 1]:
                    share[j], best[j] = share[j - 1], best[j - 1]
                    j -= 1
                share[j], best[j] = shares[k], k
        for i in range(n):
            for j in range(kept):
                wanted[i, j] = weights[words[i], best[j]]
        for _ in range(STEPS):
            for j in range(kept):
                counts[j] = _counts_for(table, share[j])
                following[j] = 0.0
            for i in range(n):
                whole = 1e-300
                for j in range(kept):
                    whole += counts[j] * wanted[i, j]
                for j in range(kept):
                    following[j] += wanted[i, j] / whole
            change = 0.0
            for j in range(kept):
                following[j] = prior + following[j] * counts[j]
                change += abs(following[j] - share[j])
                share[j] = following[j]
            if change < CHANGE * topics:
                break
        winner = 0
        for j in range(1, kept):
            lead = share[j] - share[winner]
            if lead > EQUAL or (lead >= -EQUAL and best[j] < best[winner]):
                winner = j
        out[post] = best[winner]
    return out


@kernel
def _counts_for(table, share):
    """exp(digamma(share)): between two entries of the table in a straight line, and beyond it as the limit."""
    place = share * PARTS
    at = np.int64(place)
    if at >= table.size - 1:
        return share - 0.5
    return table[at] + (place - at) * (table[at + 1] - table[at])
