"""The most frequent terms of several segments: as an answer of their own, and as all that an aggregate without GROUP BY
asks of the words of its posts.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.threads import cores
from nearcast.kinds.aggregates.group_by import groups_of, nothing
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.spellings import NO_SPELLING
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import Looked
from nearcast.storage.posts.segment_group import Several
from nearcast.storage.posts.term_counts import FEW_WANTED, CountedTerms, Counting, count_terms_in, greatest

PARALLEL = 5_000  # tables to add, which take some 5 ms
TERMS_ALONE = Shape(terms=True)


@dataclass(frozen=True)
class Frequent:
    """The k most frequent terms of `posts` posts, and all that are as frequent as the last of them, with their counts.
    The `parts` tell how segments were searched.
    """

    terms: np.ndarray
    counts: np.ndarray
    posts: int
    parts: Sequence[CountedTerms]

    def looked(self) -> dict[int, Looked]:
        """How each segment was searched, by its number; what comes later counts."""
        return {number: how for part in self.parts for number, how in part.looked().items()}

    @property
    def groups(self) -> Groups:
        """The posts as one group, which has these terms and no others; none where there are no posts."""
        if not self.posts:
            return nothing(TERMS_ALONE)
        keys = np.empty((1, 0), np.uint8), np.empty((1, 0), np.int64)
        measured = np.empty((1, 0, 3), np.int64), np.empty((1, 0, 6))
        words = np.zeros(len(self.terms), np.int64), self.terms, self.counts
        return groups_of(TERMS_ALONE, *keys, np.array([self.posts]), *measured, words, NO_SPELLING)


def most_frequent(several: Several, chosen: np.ndarray, question: Question, k: int, stop: np.ndarray) -> Frequent:
    """The k terms that occur in most of the posts asked for of some segments, none of `stop`."""
    few = k + len(stop) <= FEW_WANTED
    counted = _count(several, chosen, question, Counting.SOME if few else Counting.MORE)
    terms, sums, parts = greatest(counted, k, stop)
    return Frequent(terms, sums, sum(int(part.posts.sum()) for part in parts), [*counted, *parts])


def _count(several: Several, chosen: np.ndarray, question: Question, counting: Counting) -> list[CountedTerms]:
    """The counts of the segments: at once, for threads take a while to wake; but where the largest had much to add up,
    the others by all cores, as counting leaves the interpreter free.
    """
    largest_first = chosen[np.argsort(-several.rows[chosen], kind="stable")]
    first, rest = largest_first[:1], largest_first[1:]

    def count(some: np.ndarray) -> CountedTerms:
        return count_terms_in(several, some, question, counting)

    main = count(first)
    share = several.rows[rest].sum() / max(1, several.rows[first].sum())
    if main.effort * share < PARALLEL:
        return [main, count(rest)]
    threads = os.cpu_count() or 1
    return [main, *cores().map(count, [rest[n::threads] for n in range(threads)])]
