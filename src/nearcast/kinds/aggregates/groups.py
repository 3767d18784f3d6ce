"""Partial aggregates by group (STAR §4.1.1): those of two disjoint sets of posts add up to those of both.

A value that posts are grouped by is a type and 64 bits (`storage.posts.values`), so that grouping and merging are work
on flat arrays. Numbers are grouped by value: 5 and 5.0 are one group.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nearcast.common.arrays import freeze, frozen
from nearcast.storage.posts.kernels.term_lists import list_starts, take_term_lists
from nearcast.storage.posts.values import Spelling

# The arrays of Groups that have a row a group and a column a measured attribute.
MEASURED = ("counts", "numbers", "sums", "low", "least", "least_low", "greatest", "greatest_low", "seen")


@dataclass(frozen=True)
class Shape:
    """What is kept: the attributes grouped by, those measured, and whether terms are counted.

    Two aggregates of one attribute (its sum, its mean) share what is measured of it. `ts` may be measured too.
    """

    by: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    terms: bool = False


@dataclass(frozen=True)
class Groups:
    """One row a group: `kinds` and `values` (groups × by) say which, `posts` how many posts it has.

    Of each measured attribute (groups × measured): `counts`, the posts that have it; of its numbers how many they are
    (`numbers`) and their sum, as the unevaluated sum of two doubles (`sums` + `low`: adding in any order gives the same
    to 100 bits or so, whole numbers exactly); of its numbers and times the `least` and the `greatest` (inf and -inf
    where there is none), each with its own low part (a whole number of 64 bits is two doubles), any number being less
    than any time; and `seen`, the kinds that its values have, one bit each (1 << WHOLE …).
    `term_group`, `term`, `term_posts`: in how many posts of a group a term occurs, where terms are counted.
    Without GROUP BY there is one group, or none where there are no posts.
    """

    shape: Shape
    kinds: np.ndarray
    values: np.ndarray
    posts: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray
    sums: np.ndarray
    low: np.ndarray
    least: np.ndarray
    greatest: np.ndarray
    term_group: np.ndarray
    term: np.ndarray
    term_posts: np.ndarray
    spelling: Spelling
    seen: np.ndarray
    least_low: np.ndarray
    greatest_low: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.posts)

    def take(self, rows: np.ndarray) -> "Groups":
        """Some groups, in the order given, a group as often as it is asked for."""
        columns = {name: getattr(self, name)[rows] for name in ("kinds", "values", "posts", *MEASURED)}
        if len(self.term):
            taken = take_term_lists(*self.term_lists, frozen(rows))
            columns |= zip(("term_group", "term", "term_posts"), taken, strict=True)
        return replace(self, **columns)

    @cached_property
    def term_lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the terms of each group begin, and the last end; terms and their posts in order of groups."""
        starts = list_starts(self.term_group, len(self))
        if len(starts):
            return frozen(starts), self.term, self.term_posts
        order = np.argsort(self.term_group, kind="stable")
        starts = list_starts(frozen(self.term_group[order]), len(self))
        return frozen(starts), frozen(self.term[order]), frozen(self.term_posts[order])
