"""The most frequent terms of several segments: as an answer of their own, and as all that an aggregate without GROUP BY
asks of the words of its posts.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.threads import cores
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import SegmentScan
from nearcast.storage.posts.segment_group import SegmentGroup
from nearcast.storage.posts.term_counts import FEW_WANTED, CountedTerms, Counting, count_terms_in, greatest

PARALLEL = 5_000  # tables to add, which take some 5 ms


@dataclass(frozen=True)
class FrequentTerms:
    """The k most frequent terms of `posts` posts, and all that are as frequent as the last of them, with their counts.
    The `parts` tell how segments were searched.
    """

    terms: np.ndarray
    counts: np.ndarray
    posts: int
    parts: Sequence[CountedTerms]

    def scans(self) -> dict[int, SegmentScan]:
        """How each segment was searched, by its number; what comes later counts."""
        return {number: scan for part in self.parts for number, scan in part.scans().items()}


def most_frequent(
    group: SegmentGroup, members: np.ndarray, question: Question, k: int, stop: np.ndarray
) -> FrequentTerms:
    """The k terms that occur in most of the posts asked for of some segments, none of `stop`."""
    few = k + len(stop) <= FEW_WANTED
    counted = _count(group, members, question, Counting.SOME if few else Counting.MORE)
    terms, sums, parts = greatest(counted, k, stop)
    return FrequentTerms(terms, sums, sum(int(part.posts.sum()) for part in parts), [*counted, *parts])


def _count(group: SegmentGroup, members: np.ndarray, question: Question, counting: Counting) -> list[CountedTerms]:
    """The counts of the segments: at once, for threads take a while to wake; but where the largest had much to add up,
    the others by all cores, as counting leaves the interpreter free.
    """
    largest_first = members[np.argsort(-group.rows[members], kind="stable")]
    first, rest = largest_first[:1], largest_first[1:]

    def count(some: np.ndarray) -> CountedTerms:
        return count_terms_in(group, some, question, counting)

    main = count(first)
    share = group.rows[rest].sum() / max(1, group.rows[first].sum())
    if main.effort * share < PARALLEL:
        return [main, count(rest)]
    threads = os.cpu_count() or 1
    return [main, *cores().map(count, [rest[n::threads] for n in range(threads)])]
