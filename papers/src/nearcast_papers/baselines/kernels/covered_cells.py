"""CIQ of Chen et al., as Skype §2.2 tells it: a subscriber in every cell of a covering of the world, with the text
it asks for there.

A covering are, at each level of the quadtree, the three siblings of the subscriber's cell, and at the last level that
cell too. What it asks of the words of a post in a cell (MinT), multiplied by 1 - alpha, is
theta - alpha * nearness, with the nearness that the cell allows.
"""

import numpy as np

from nearcast.common.kernels.sorting import lower_bound
from nearcast.kinds.relevance.kernels.pyramid_cells import cell_xy, morton
from nearcast.kinds.relevance.kernels.score import cosine, nearness, score_of
from nearcast.storage.posts.kernels.blocks import least_distance_km
from nearcast_papers.compiled_apart import kernel

WIDE = 4e-6  # what rounding in single precision may hide, of a score


@kernel
def _cell_number(x, y, level):
    """Cells of all levels in one row of numbers: those of level 1 first."""
    return np.int64(morton(x, y)) + ((np.int64(1) << (2 * level)) - 4) // 3


@kernel
def cover_words(rows, numbers, firsts, offsets, weights, lon, lat, alpha, reach, theta, levels, terms, keys, own, need):
    """A posting for each word and cell of each subscriber: key (cell, then term), weight times 1 - alpha, and need."""
    n = 0
    box = np.empty(4)
    for at in range(rows.size):
        row = rows[at]
        size = offsets[row + 1] - offsets[row]
        for level in range(1, levels + 1):
            mine_x, mine_y = cell_xy(lon[row], lat[row], level)
            for quarter in range(4):
                x, y = (mine_x & ~1) + (quarter & 1), (mine_y & ~1) + (quarter >> 1)
                if x == mine_x and y == mine_y and level < levels:
                    continue
                cells = 1 << level
                box[0], box[2] = -180.0 + 360.0 * x / cells, -180.0 + 360.0 * (x + 1) / cells
                box[1], box[3] = -90.0 + 180.0 * y / cells, -90.0 + 180.0 * (y + 1) / cells
                km = 0.0
                if x != mine_x or y != mine_y:
                    # The eastern edge of the world is its western one too.
                    km = least_distance_km(lon[row], lat[row], box)
                near = 1.0 - km / reach[row] if km < reach[row] else 0.0
                cell = _cell_number(x, y, level)
                for i in range(size):
                    keys[n] = cell * terms + numbers[firsts[at] + i]
                    own[n] = (1.0 - alpha[row]) * weights[offsets[row] + i]
                    need[n] = theta[row] - alpha[row] * near
                    n += 1


@kernel
def match_covered(
    begin, levels, term_count, runs, run_starts, owners, own, need, numbers, part, home, theta,
    lon, lat, alpha, reach, words, offsets, weights, post_lon, post_lat, terms, starts, heights,
    out_rows, out_posts, out_scores, most, tally,
):  # fmt: skip
    """Post after post, the lists of its cells and words side by side in order of subscribers (DAAT), while the output
    surely holds `most` more; returns (posts done, pairs).
    """
    longest = 0
    for post in range(begin, post_lon.size):
        longest = max(longest, starts[post + 1] - starts[post])
    heads, ends = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    weight = np.empty(longest + 1)
    n = 0
    for post in range(begin, post_lon.size):
        if n + most > out_rows.size:
            return post, n
        for level in range(1, levels + 1):
            x, y = cell_xy(post_lon[post], post_lat[post], level)
            base = _cell_number(x, y, level) * term_count
            lists = 0
            for i in range(starts[post], starts[post + 1]):
                if numbers[i] < 0:
                    continue
                key = base + numbers[i]
                run = lower_bound(runs, key)
                if run < runs.size and runs[run] == key:
                    heads[lists], ends[lists], weight[lists] = run_starts[run], run_starts[run + 1], heights[i]
                    lists += 1
            while lists > 0:
                row = owners[heads[0]]
                for i in range(1, lists):
                    row = min(row, owners[heads[i]])
                total, asked = 0.0, 0.0
                i = 0
                while i < lists:
                    if owners[heads[i]] == row:
                        total += own[heads[i]] * weight[i]
                        asked = need[heads[i]]
                        heads[i] += 1
                        if heads[i] == ends[i]:
                            lists -= 1
                            heads[i], ends[i], weight[i] = heads[lists], ends[lists], weight[lists]
                            continue
                    i += 1
                tally[0] += 1
                if total + WIDE < asked or home[row] != part:
                    continue
                alike = cosine(
                    words, weights, offsets[row], offsets[row + 1], terms, heights, starts[post], starts[post + 1]
                )
                near = nearness(lon[row], lat[row], post_lon[post], post_lat[post], reach[row])
                score = score_of(alpha[row], near, alike)
                if score >= theta[row]:
                    out_rows[n], out_posts[n], out_scores[n] = row, post, score
                    n += 1
    return post_lon.size, n
