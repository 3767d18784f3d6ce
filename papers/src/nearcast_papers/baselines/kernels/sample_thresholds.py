"""Thresholds for benchmarks: the score of the r-th best post of a sample, for every subscriber."""

import numpy as np

from nearcast.common.kernels.sorting import hashed_bound
from nearcast.kinds.relevance.kernels.score import cosine, nearness, score_of
from nearcast_papers.compiled_apart import kernel


@kernel
def thresholds(
    lon,
    lat,
    alpha,
    reach,
    words,
    offsets,
    weights,
    post_lon,
    post_lat,
    terms,
    starts,
    heights,
    keys,
    ends,
    listed,
    rank,
):
    """Of each subscriber the `rank`-th best score among posts, 0.0 where fewer have a common word.

    The posts that have the term `keys[i]` (sorted) are `listed[ends[i]:ends[i + 1]]`.
    """
    out = np.zeros(lon.size, np.float64)
    best = np.empty(rank, np.float64)
    seen = np.full(post_lon.size, -1, np.int64)
    for row in range(lon.size):
        best[:] = -1.0
        for i in range(offsets[row], offsets[row + 1]):
            at = hashed_bound(keys, words[i])
            if at == keys.size or keys[at] != words[i]:
                continue
            for j in range(ends[at], ends[at + 1]):
                post = listed[j]
                if seen[post] == row:
                    continue
                seen[post] = row
                alike = cosine(
                    words, weights, offsets[row], offsets[row + 1], terms, heights, starts[post], starts[post + 1]
                )
                if score_of(alpha[row], 1.0, alike) <= best[0]:
                    continue
                near = nearness(lon[row], lat[row], post_lon[post], post_lat[post], reach[row])
                score = score_of(alpha[row], near, alike)
                if score <= best[0]:
                    continue
                place = 0
                while place + 1 < rank and best[place + 1] < score:
                    best[place] = best[place + 1]
                    place += 1
                best[place] = score
        out[row] = max(best[0], 0.0)
    return out
