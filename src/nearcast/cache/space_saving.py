"""Summaries of frequent terms with m counters (SpaceSaving, seed 003 §4.1.2), of one group of posts or of many.

- A counter is never too low, and at most `errors` of it too high: the count lies in [counts − errors, counts].
- A term without a counter occurs at most `rest` times, and no error is above that.
- `rest` ≤ N/m, where N (`total`) are the occurrences of terms in all.
- Summaries of disjoint posts merge into one for which the same holds (Agarwal et al., *Mergeable summaries*, as the
  seed cites them): what a term may have lost on either side is added, and what the dropped counters held is
  subtracted from no one but remembered in `rest`.

Theorem 4.3 of the seed says that terms more frequent than (1 − ε)F_k are all reported. It is the other way round: every
term reported is at least as frequent as that, with ε = N/(m·F_k); and it is one of the k most frequent for certain
where counts − errors is above the (k+1)-th count.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.index.rows import freeze, frozen
from nearcast.kernels.space_saving import space_saving

NO_TERMS = frozen(np.empty(0, np.uint64))


@dataclass(frozen=True)
class Summaries:
    """Counters by group, in order of (group, term): one row each; `rest` and `total` by group."""

    m: int
    group: np.ndarray
    terms: np.ndarray
    counts: np.ndarray
    errors: np.ndarray
    rest: np.ndarray
    total: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def nbytes(self) -> int:
        columns = (self.group, self.terms, self.counts, self.errors, self.rest, self.total)
        return sum(column.nbytes for column in columns)


@dataclass(frozen=True)
class Frequent:
    """The k terms of a group with the greatest counts: most frequent first, ties by term number.

    `certain`: which of them are among the k most frequent for certain; `bound`: no count is further off.
    """

    terms: np.ndarray
    counts: np.ndarray
    errors: np.ndarray
    certain: np.ndarray
    bound: int


def summed_up(m: int, group: np.ndarray, terms: np.ndarray, counts: np.ndarray, groups: int) -> Summaries:
    """Of exact counts by (group, term): the m greatest of each group, without error; `rest` is the next."""
    exact = counts.astype(np.int64)
    total = np.bincount(group, exact, groups).astype(np.int64)
    nothing = np.zeros(groups, np.int64)
    return _shortened(m, group.astype(np.int64), terms, exact, exact, nothing, total)


def streamed(m: int, terms: np.ndarray) -> Summaries:
    """Of a stream of terms, one after the other, in the space of m counters: the algorithm as it was published."""
    found, counts, errors, size = space_saving(frozen(terms), m)
    order = np.argsort(found[:size])
    rest = counts[:size].min() if size == m else 0
    return Summaries(
        m, np.zeros(size, np.int64), found[:size][order], counts[:size][order], errors[:size][order],
        np.array([rest]), np.array([len(terms)]),
    )  # fmt: skip


def merge(parts: Sequence[Summaries], into: Sequence[np.ndarray], groups: int) -> Summaries:
    """One summary a group: group g of a part goes to `into[part][g]`, or nowhere where that is negative."""
    m = min(part.m for part in parts)
    rest, total = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for part, to in zip(parts, into, strict=True):
        np.add.at(rest, to[to >= 0], part.rest[to >= 0])
        np.add.at(total, to[to >= 0], part.total[to >= 0])
    group = np.concatenate([to[part.group] for part, to in zip(parts, into, strict=True)])
    terms = np.concatenate([part.terms for part in parts])
    above = np.concatenate([part.counts - part.rest[part.group] for part in parts])
    sure = np.concatenate([part.counts - part.errors for part in parts])
    wanted = np.flatnonzero(group >= 0)
    order = wanted[np.lexsort((terms[wanted], group[wanted]))]
    group, terms = group[order], terms[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (group[1:] != group[:-1]) | (terms[1:] != terms[:-1])
    starts = np.flatnonzero(first)
    if not len(starts):
        nothing = np.empty(0, np.int64)
        return Summaries(m, nothing, terms, nothing, nothing, rest, total)
    above, sure = np.add.reduceat(above[order], starts), np.add.reduceat(sure[order], starts)
    return _shortened(m, group[starts], terms[starts], above, sure, rest, total)


def _shortened(
    m: int,
    group: np.ndarray,
    terms: np.ndarray,
    above: np.ndarray,
    sure: np.ndarray,
    rest: np.ndarray,
    total: np.ndarray,
) -> Summaries:
    """The m greatest of each group; `above` is what a counter has over `rest`, `sure` what it has for certain."""
    counts = above + rest[group]
    order = np.lexsort((terms, -above, group))
    begins = np.searchsorted(group[order], np.arange(len(rest)))
    place = np.arange(len(order)) - begins[group[order]]
    next_ones = order[place == m]
    after = rest.copy()
    after[group[next_ones]] += above[next_ones]
    kept = np.sort(order[place < m])
    kept = kept[np.lexsort((terms[kept], group[kept]))]
    return Summaries(m, group[kept], terms[kept], counts[kept], counts[kept] - sure[kept], after, total)


@dataclass(frozen=True)
class Leading:
    """Counters of several groups: of each the k greatest, and those equal to the last of them. `of` is the place that
    a counter's group has among those asked for.
    """

    of: np.ndarray
    terms: np.ndarray
    counts: np.ndarray
    errors: np.ndarray
    certain: np.ndarray


def leading(summaries: Summaries, groups: np.ndarray, k: int, stop: np.ndarray) -> Leading:
    """The greatest counters of some groups, in any order, none of the terms `stop`."""
    place = np.full(len(summaries.rest) + 1, -1, np.int64)
    place[groups] = np.arange(len(groups))
    rows = np.flatnonzero((place[summaries.group] >= 0) & ~np.isin(summaries.terms, stop))
    of, counts = place[summaries.group[rows]], summaries.counts[rows]
    order = np.lexsort((-counts, of))
    rank = np.arange(len(order)) - np.searchsorted(of[order], np.arange(len(groups)))[of[order]]
    kth, following = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    kth[of[order][rank == k - 1]] = counts[order][rank == k - 1]
    following[of[order][rank == k]] = counts[order][rank == k]
    kept = (counts >= kth[of]) & (k > 0)
    rows, of, counts = rows[kept], of[kept], counts[kept]
    errors = summaries.errors[rows]
    certain = counts - errors > np.maximum(following[of], summaries.rest[summaries.group[rows]])
    return Leading(of, summaries.terms[rows], counts, errors, certain)


def frequent(summaries: Summaries, group: int, k: int) -> Frequent:
    """The k greatest counts of a group."""
    found = leading(summaries, np.array([group]), k, NO_TERMS)
    best = np.lexsort((found.terms, -found.counts))[:k]
    rest = int(summaries.rest[group])
    return Frequent(found.terms[best], found.counts[best], found.errors[best], found.certain[best], rest)
