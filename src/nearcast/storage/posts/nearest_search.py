"""The nearest posts of several segments (SSTD's SKQ), the largest first: what they give is the radius that the others
are pruned by (SSTD §6.2).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.storage.posts.kernels.blocks import BLOCK
from nearcast.storage.posts.kernels.segment_group import IN_LISTS, TOO_FAR, nearest_in
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import SegmentScan, unsearched
from nearcast.storage.posts.segment_group import SegmentGroup, words_in_group

NO_DRIVER = frozen(np.array([-1], np.int64))


@dataclass(frozen=True)
class NearestHits:
    """Of those segments that have any, its number, the rows that may be among the k nearest, and their distances;
    `scans` tells how each segment was searched, by its number.
    """

    hits: list[tuple[int, np.ndarray, np.ndarray]]
    scans: Callable[[], dict[int, SegmentScan]]


def search_nearest(
    group: SegmentGroup, members: np.ndarray, question: Question, lon: float, lat: float, k: int
) -> NearestHits:
    """All posts that are no farther than the k-th nearest, and perhaps some more. Attributes are not looked at."""
    best = np.full(max(1, k), np.inf)  # a heap of the k least distances, the greatest first
    reached = members[group.reached(members, question)]
    words = words_in_group(question, group, reached[np.argsort(-group.rows[reached], kind="stable")])
    rows, km, bounds, facts = nearest_in(
        group.table, words.members, lon, lat, best, words.for_kernels, NO_DRIVER, question.space_time
    )
    near = np.flatnonzero(km <= best[0])
    cuts = np.searchsorted(near, bounds)
    numbers = words.members.tolist()
    parts = ((n, near[cuts[n] : cuts[n + 1]]) for n in np.flatnonzero(np.diff(cuts)).tolist())

    def scans() -> dict[int, SegmentScan]:
        out = unsearched(group, members, reached)
        each = zip(numbers, words.frequency(group), words.driven, facts.tolist(), strict=True)
        return out | {n: _scan_of(group, n, frequency, driven, *more) for n, frequency, driven, more in each}

    return NearestHits([(numbers[n], rows[some], km[some]) for n, some in parts], scans)


def _scan_of(
    group: SegmentGroup, n: int, frequency: int, driven: bool, how: int, candidates: int, blocks: int
) -> SegmentScan:
    size = len(group[n])
    if how == TOO_FAR:
        return SegmentScan(size, "bounds", "all posts are farther than those found", 0)
    driven = driven and group[n].listed
    why = f"{frequency:,} posts in the lists, of {size:,}" if driven else f"of {size:,} posts"
    if how == IN_LISTS:
        return SegmentScan(size, "words first", why, candidates)
    return SegmentScan(size, "nearest blocks first", f"{blocks:,} of {-(-size // BLOCK):,} blocks; {why}", candidates)
