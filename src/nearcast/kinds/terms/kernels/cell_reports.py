"""Reports of frequent terms summed up from the term tables of cells (`kinds.terms.kernels.cell_tables`), a group at a
time.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.tick_limits import MOST_EMPTY
from nearcast.common.kernels.top_words import best_first, offer, top_words
from nearcast.kinds.terms.kernels.cell_tables import count_cells, count_rare
from nearcast.kinds.terms.kernels.tick_reports import MOST


@kernel
def report_cells(posts, tables, ranked, frequent, spellings, firsts, regions, k, now, beat, empties, final):
    """As `tick_reports.report_groups`, for groups that all report at one beat `now` on one window, the posts of which
    have tables (`kinds.terms.kernels.cell_tables`) of the words of a rank below `frequent`.
    """
    totals, numbers = ranked
    prefixes, word_starts, word_data = spellings
    rows = regions.kinds.size
    members, ends = np.empty(3 * rows, np.int32), np.empty(3 * rows, np.int64)
    skips, row_ends = np.empty(3 * rows, np.int64), np.empty(3 * rows, np.int64)
    out_words, out_counts = np.empty(16 * rows, np.int64), np.empty(16 * rows, np.int64)
    n = used = np.int64(0)
    vocabulary = totals.size
    frequent = min(frequent, vocabulary)
    uncounted = totals[frequent] if frequent < vocabulary else np.int64(0)
    common, own = np.zeros(frequent, np.int32), np.zeros((MOST, frequent), np.int32)
    rare, touched = np.zeros(vocabulary - frequent, np.int32), np.empty(vocabulary - frequent, np.int32)
    best_words, best_counts = np.empty(64, np.int64), np.empty(64, np.int64)
    for group in range(firsts.size - 1):
        a, b = firsts[group], firsts[group + 1]
        common[:] = 0
        own[: b - a] = 0
        count_cells(posts, tables, regions, a, b, frequent, common, own)
        for m in range(a, b):
            most = min(k[m], vocabulary)
            if most > best_words.size:
                best_words, best_counts = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
            found = top_words(
                common, own[m - a], numbers, frequent, most,
                best_words, best_counts, prefixes, word_starts, word_data,
            )  # fmt: skip
            if uncounted and (found < most or best_counts[0] <= uncounted):
                some = count_rare(posts, tables, regions, m, frequent, rare, touched)
                for i in range(some):
                    code = touched[i]
                    if found < most or rare[code] >= best_counts[0]:
                        found = offer(
                            numbers[frequent + code], rare[code], found, most, best_words, best_counts,
                            prefixes, word_starts, word_data,
                        )  # fmt: skip
                    rare[code] = 0
            best_first(found, best_words, best_counts, prefixes, word_starts, word_data)
            if not found:
                if empties[m] < MOST_EMPTY:
                    members[n], ends[n], skips[n], row_ends[n] = m, now, 0, used
                    n += 1
                empties[m] += 1
            else:
                if empties[m] > MOST_EMPTY:
                    members[n], ends[n], skips[n], row_ends[n] = m, now - beat, empties[m] - MOST_EMPTY, used
                    n += 1
                empties[m] = 0
                if used + found > out_words.size:
                    out_words, out_counts = grown(out_words, 2 * (used + found)), grown(out_counts, 2 * (used + found))
                for i in range(found):
                    out_words[used], out_counts[used] = best_words[i], best_counts[i]
                    used += 1
                members[n], ends[n], skips[n], row_ends[n] = m, now, 0, used
                n += 1
            if final[m] and empties[m] > MOST_EMPTY:
                members[n], ends[n], skips[n], row_ends[n] = m, now, empties[m] - MOST_EMPTY, used
                n += 1
                empties[m] = 0
    return members[:n], ends[:n], skips[:n], row_ends[:n], out_words[:used], out_counts[:used]
