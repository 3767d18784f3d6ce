"""Message dissemination of Skype (Skype §5.4, algorithm 1), one post after the other.

As printed the algorithm adds up a similarity over the postings it visits, and so misses words whose group it skipped.
Here every bound at a posting (s, w) is one on the whole score, right if w is the rarest common word of s and m. So a
subscriber that is affected passes at that word, and is verified there with the full cosine; one that passes at a word
where another was skipped before is verified too, and fails.

Posting lists lie by term, then by cell: words take turns in the outer loop and not, as printed, in the inner one. That
changes no decision, and each list is read from one end to the other.
"""

import numpy as np

from nearcast.kinds.relevance.kernels.score import cosine, nearness, score_of
from nearcast.kinds.relevance.kernels.term_ranks import by_rarity
from nearcast_papers.baselines.kernels.igpt_cells import (
    ALPHA,
    HIGH,
    INNER,
    LACKING,
    LOW,
    MAXWT,
    MOST,
    RADIUS,
    REACH,
    THETA,
    WEIGHT,
    WTSUM,
    X,
    Y,
    Z,
    place,
    way_km,
)  # fmt: skip
from nearcast_papers.compiled_apart import kernel

CELLS, GROUPS, EARLY, OUTER, INNER_BOUND, PREFIX, UNSEEN = 1, 2, 4, 8, 16, 32, 64
WIDE = 4e-6  # what rounding in single precision may hide, of a score


@kernel
def _nearest(km, reach):
    return 1.0 - km / reach if km < reach else 0.0


@kernel
def _ends(postings, at, near, wtsum):
    """Theorems 3 and 4, multiplied out: neither this posting nor one after it in its group can reach its threshold."""
    alike = min(1.0, postings[at, MOST] * wtsum)
    low, high = postings[at, LOW], postings[at, HIGH]
    best = max(low * near + (1.0 - low) * alike, high * near + (1.0 - high) * alike)
    return best + WIDE < postings[at, THETA]


@kernel
def _end_of(postings, begin, end, near, wtsum):
    """The first posting of a group at which it ends."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if _ends(postings, middle, near, wtsum):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def match_one(
    post, rules, cells, term_runs, run_cells, run_groups, group_starts, postings, owners, numbers,
    order, sums, maxima, ways, stamps, part, home, theta, lon, lat, alpha, reach, words, offsets, weights,
    post_lon, post_lat, terms, starts, heights, out_rows, out_scores,
):  # fmt: skip
    """The subscribers that one post affects; returns (how many, postings looked at).

    `order`, `sums`, `maxima` and `ways` (to each cell, km; NaN if it is skipped) are scratch, `stamps` has of each
    subscriber the last post that it passed for.
    """
    n = by_rarity(numbers, starts[post], starts[post + 1], order)
    sums[n], maxima[n] = 0.0, 0.0
    for j in range(n - 1, -1, -1):
        sums[j] = sums[j + 1] + heights[order[j]]
        maxima[j] = max(maxima[j + 1], heights[order[j]])
    px, py, pz = place(post_lon[post], post_lat[post])
    for cell in range(ways.size):
        km = way_km(px - cells[X, cell], py - cells[Y, cell], pz - cells[Z, cell]) - cells[RADIUS, cell]
        outer = max(0.0, km) if rules & OUTER else 0.0
        far = rules & CELLS and cells[LACKING, cell] + 1e-9 < 1.0 - _nearest(outer, cells[REACH, cell])
        ways[cell] = np.nan if far else km
    found, looked = 0, 0
    for j in range(n):
        own = heights[order[j]]
        for run in range(term_runs[numbers[order[j]]], term_runs[numbers[order[j]] + 1]):
            cell = run_cells[run]
            km = ways[cell]
            if km != km:
                continue
            outer = max(0.0, km) if rules & OUTER else 0.0
            near = _nearest(outer, cells[REACH, cell])
            for group in range(run_groups[run], run_groups[run + 1]):
                begin, end = group_starts[group], group_starts[group + 1]
                if rules & GROUPS and _ends(postings, begin, near, sums[j]):
                    continue
                if rules & EARLY:
                    end = _end_of(postings, begin, end, near, sums[j])
                looked += end - begin
                for i in range(begin, end):
                    close = near
                    if rules & INNER_BOUND and km > 0.0:
                        close = _nearest(outer + postings[i, INNER], cells[REACH, cell])
                    alike = 1.0
                    if rules & PREFIX:
                        alike = min(alike, maxima[j] * postings[i, WTSUM])
                    if rules & UNSEEN:
                        weight = postings[i, WEIGHT]
                        rest = min((postings[i, WTSUM] - weight) * maxima[j + 1], sums[j + 1] * postings[i, MAXWT])
                        alike = min(alike, weight * own + rest)
                    share = postings[i, ALPHA]
                    if share * close + (1.0 - share) * alike + WIDE < postings[i, THETA]:
                        continue
                    row = owners[i]
                    if stamps[row] == post or home[row] != part:
                        continue
                    stamps[row] = post
                    exact = cosine(
                        words, weights, offsets[row], offsets[row + 1], terms, heights, starts[post], starts[post + 1]
                    )
                    near_by = nearness(lon[row], lat[row], post_lon[post], post_lat[post], reach[row])
                    score = score_of(alpha[row], near_by, exact)
                    if score >= theta[row]:
                        out_rows[found], out_scores[found] = row, score
                        found += 1
    return found, looked


@kernel
def match_each(
    begin, rules, cells, term_runs, run_cells, run_groups, group_starts, postings, owners, numbers,
    stamps, part, home, theta, lon, lat, alpha, reach, words, offsets, weights,
    post_lon, post_lat, terms, starts, heights, out_rows, out_posts, out_scores, most, tally,
):  # fmt: skip
    """Post after post from `begin` on, while the output surely holds `most` more; returns (posts done, pairs)."""
    longest = 0
    for post in range(begin, post_lon.size):
        longest = max(longest, starts[post + 1] - starts[post])
    order, sums, maxima = np.empty(longest + 1, np.int64), np.empty(longest + 1), np.empty(longest + 1)
    ways = np.empty(cells.shape[1])
    n = 0
    for post in range(begin, post_lon.size):
        if n + most > out_rows.size:
            return post, n
        found, looked = match_one(
            post, rules, cells, term_runs, run_cells, run_groups, group_starts, postings, owners, numbers,
            order, sums, maxima, ways, stamps, part, home, theta, lon, lat, alpha, reach, words, offsets, weights,
            post_lon, post_lat, terms, starts, heights, out_rows[n:], out_scores[n:],
        )  # fmt: skip
        for i in range(n, n + found):
            out_posts[i] = post
        n += found
        tally[0] += looked
    return post_lon.size, n
