"""Baseline-1 of STAR §8.2: no cache, and posts found by no more than the paper has, a quadtree and time slots.

Every post of the nodes that a region covers or overlaps is looked at (§4.1.3), or every post of the slots that a time
touches (§7), whichever are fewer. The paper's newest slots are of an hour; here all are, which is to its advantage.
"""

from functools import lru_cache

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.cache.answer_cache import AggregateCache
from nearcast.kinds.aggregates.cache.cached_groups import Partial
from nearcast.kinds.aggregates.cache.plan import CachePlan, CacheResult, Used, carry_out
from nearcast.kinds.aggregates.cache.snapshot import Plain, Snapshot
from nearcast.kinds.aggregates.cache.views import Source
from nearcast.kinds.aggregates.group_rows import aggregate_rows_of
from nearcast.kinds.aggregates.groups import Shape
from nearcast.storage.posts.kernels.check import check_rows
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question, words_in
from nearcast.storage.posts.range_search import meets_predicates

SLOT = 3_600_000_000  # microseconds


class EveryPost(AggregateCache):
    """In the place of a cache."""

    def __init__(self) -> None:
        super().__init__(0, background=False)

    def _answer(self, snapshot: Snapshot, question: Question, shape: Shape, counters: int, plain: Plain) -> CacheResult:
        cover = self._catalog.cover(question)
        if snapshot.window(question) is not None:
            slots = [(each, of_slots(each.segment, question)) for each in snapshot.touching(question)]
            if sum(len(rows) for _, rows in slots) < cover.posts:
                found = [(each.segment, satisfying(each, rows, question)) for each, rows in slots]
                return CacheResult(Partial(aggregate_rows_of(found, shape)), Used())
        plan = CachePlan((), 0.0, None, left=cover.inside, meeting=cover.meeting)
        return carry_out(plan, snapshot, question, shape, counters, plain, 0)


def of_slots(segment: PostSegment, question: Question) -> np.ndarray:
    """The rows in the slots that the time asked for touches."""
    order, times = by_time(segment)
    low, high = question.since // SLOT * SLOT, -(-question.until // SLOT) * SLOT
    begin, end = np.searchsorted(times, (low, high)).tolist()
    return order[begin:end]


@lru_cache(maxsize=64)
def by_time(segment: PostSegment) -> tuple[np.ndarray, np.ndarray]:
    times = segment.ts_of(segment.all_rows)
    order = np.argsort(times, kind="stable")
    return order, times[order]


def satisfying(source: Source, rows: np.ndarray, question: Question) -> np.ndarray:
    """Those of some rows that satisfy everything."""
    segment, words = source.segment, words_in(question, source.segment)
    if words.impossible:
        return np.empty(0, np.int64)
    posts, asked = segment.columns_for_checks, question.space_time
    found = check_rows(frozen(np.sort(rows)), posts, source.gone, asked, words.code)
    return found[meets_predicates(segment, question, found)] if question.predicates and len(found) else found
