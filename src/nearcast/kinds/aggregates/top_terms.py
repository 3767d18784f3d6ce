"""The most frequent terms of groups, exact: how few counts have to be looked at.

Most terms of a group occur once or twice in it, and only k are asked for. So a count that k terms of a group reach is
found first (`reached_by`), and what cannot come to it is left out: before the counts of several segments are added up
(`likely`), and before those of a group are sorted.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.groups import Groups
from nearcast.kinds.aggregates.kernels.row_numbers import numbered_rows

SIGN = 48  # a term is known by its bits from here on: of many terms, few others have those of one that is wanted


def reached_by(of: np.ndarray, counts: np.ndarray, groups: int, k: int) -> np.ndarray:
    """Of each group the k-th greatest count of its terms; 0 where that is 1, or there are not so many."""
    least, bound = np.zeros(groups, np.int64), 2
    several = np.flatnonzero(counts >= bound)
    held = of, counts = of[several], counts[several]
    while k > 0 and (reached := np.bincount(of, minlength=groups) >= k).any():
        least[reached] = bound
        bound *= 2
        more = counts >= bound
        of, counts = of[more], counts[more]
    of, counts = held
    high = (least[of] > 0) & (counts >= least[of])
    of, counts = of[high], counts[high]
    order = np.lexsort((-counts, of))
    last = order[places(of[order], groups) == k - 1]
    least[of[last]] = counts[last]
    return least


def places(of: np.ndarray, groups: int) -> np.ndarray:
    """Of things in order of their groups: the place of each in its group, from 0."""
    sizes = np.bincount(of, minlength=groups)
    return np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def likely(parts: Sequence[Groups], k: int) -> list[Groups]:
    """Partial aggregates of disjoint posts without terms that are not among the k most frequent of any group when all
    parts are added up; terms that are left have all their counts.

    Of S parts, a term that comes to a count in all of them has an S-th of it in one. The k-th greatest count of a group
    in any part is one that k of its terms come to.
    """
    parts = [part for part in parts if len(part)]
    if len(parts) < 2 or k < 1:
        return list(parts)
    kinds, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("kinds", "values"))
    codes, firsts = numbered_rows(frozen(kinds), frozen(values))
    ends = np.cumsum([0, *map(len, parts)])
    of = [codes[begin:end][part.term_group] for part, begin, end in zip(parts, ends, ends[1:], strict=False)]
    least = np.zeros(len(firsts), np.int64)
    for part, groups in zip(parts, of, strict=True):
        np.maximum(least, reached_by(groups, part.term_posts, len(firsts), k), out=least)
    enough = -(-least // len(parts))
    wanted = np.zeros(1 << (64 - SIGN), np.bool_)
    for part, groups in zip(parts, of, strict=True):
        wanted[part.term[part.term_posts >= enough[groups]] >> SIGN] = True
    return [with_terms(part, np.flatnonzero(wanted[part.term >> SIGN])) for part in parts]


def with_terms(groups: Groups, kept: np.ndarray) -> Groups:
    """Groups with some of their terms only."""
    terms = groups.term_group[kept], groups.term[kept], groups.term_posts[kept]
    return replace(groups, **dict(zip(("term_group", "term", "term_posts"), terms, strict=True)))
