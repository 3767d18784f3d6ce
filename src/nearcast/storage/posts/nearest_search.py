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
from nearcast.storage.posts.range_search import Looked, left_out
from nearcast.storage.posts.segment_group import Several, words_in_several

NO_DRIVER = frozen(np.array([-1], np.int64))


@dataclass(frozen=True)
class NearInSeveral:
    """Of those segments that have any, its number, the rows that may be among the k nearest, and their distances;
    `looked` tells of each segment that was searched, by its number.
    """

    hits: list[tuple[int, np.ndarray, np.ndarray]]
    looked: Callable[[], dict[int, Looked]]


def search_nearest(
    several: Several, chosen: np.ndarray, question: Question, lon: float, lat: float, k: int
) -> NearInSeveral:
    """All posts that are no farther than the k-th nearest, and perhaps some more. Attributes are not looked at."""
    best = np.full(max(1, k), np.inf)  # a heap of the k least distances, the greatest first
    reached = chosen[several.reached(chosen, question)]
    words = words_in_several(question, several, reached[np.argsort(-several.rows[reached], kind="stable")])
    drivers, driver_bounds, *rest = words.for_kernels
    driven = (lon, lat, best, drivers, driver_bounds, NO_DRIVER, *rest)
    found = nearest_in(*(several.table, words.chosen, *driven, *question.place, *question.time))
    rows, km, bounds, facts = found
    near = np.flatnonzero(km <= best[0])
    cuts = np.searchsorted(near, bounds)
    numbers = words.chosen.tolist()
    parts = ((n, near[cuts[n] : cuts[n + 1]]) for n in np.flatnonzero(np.diff(cuts)).tolist())

    def looked() -> dict[int, Looked]:
        out = left_out(several, chosen, reached)
        each = zip(numbers, words.frequency(several), words.driven, facts.tolist(), strict=True)
        return out | {n: _told(several, n, frequency, driven, *told) for n, frequency, driven, told in each}

    return NearInSeveral([(numbers[n], rows[some], km[some]) for n, some in parts], looked)


def _told(several: Several, n: int, frequency: int, driven: bool, how: int, candidates: int, opened: int) -> Looked:
    size = len(several[n])
    if how == TOO_FAR:
        return Looked(size, "bounds", "all posts are farther than those found", 0)
    driven = driven and several[n].listed
    why = f"{frequency:,} posts in the lists, of {size:,}" if driven else f"of {size:,} posts"
    if how == IN_LISTS:
        return Looked(size, "words first", why, candidates)
    return Looked(size, "nearest blocks first", f"{opened:,} of {-(-size // BLOCK):,} blocks; {why}", candidates)
