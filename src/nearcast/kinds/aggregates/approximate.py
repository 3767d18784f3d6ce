"""TopK that may come from summaries (`SELECT APPROXIMATE …`, STAR §4.1.2): with its bounds in the answer.

Each term comes with its `count`, which is never too low, by how much it may be too high (`error`), and whether it is
one of the k most frequent for `certain`. Counted exactly, the error is 0.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, numbers
from nearcast.kinds.aggregates.cache.cached_groups import Partial
from nearcast.storage.lexicon import Speller
from nearcast.storage.posts.term_summaries import leading, leading_exactly

BOUNDED = pa.struct([("term", pa.string()), ("count", pa.int64()), ("error", pa.int64()), ("certain", pa.bool_())])


def bounded_terms(partial: Partial, spell: Speller, stop: np.ndarray) -> Callable[[np.ndarray, int], pa.ListArray]:
    """What gives the k most frequent terms of some groups, most frequent first, ties by term."""
    groups, summaries = partial.groups, partial.summaries

    def frequent(rows: np.ndarray, k: int) -> pa.ListArray:
        if not len(groups):
            return pa.array([[] for _ in rows], pa.list_(BOUNDED))
        if summaries is None:
            found = leading_exactly(groups.term_lists, rows, k, stop)
        else:
            found = leading(summaries, rows, k, stop)
        known, at = np.unique(found.terms, return_inverse=True)
        words = spell(known)
        by_word = numbers(pc.rank(words, tiebreaker="dense"))[at]
        order = np.lexsort((by_word, -found.counts, found.of))
        begins = np.searchsorted(found.of[order], np.arange(len(rows)))
        order = order[np.arange(len(order)) - begins[found.of[order]] < k]
        ends = np.cumsum(np.bincount(found.of[order], minlength=len(rows)))
        columns = [words.take(arrow(at[order])).cast(pa.string())]
        columns += [arrow(column[order]) for column in (found.counts, found.errors)]
        columns += [pa.array(found.certain[order])]
        offsets = arrow(np.concatenate(([0], ends)).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, fields=list(BOUNDED)))

    return frequent
