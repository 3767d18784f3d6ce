"""Summaries of frequent terms with m counters (SpaceSaving, STAR §4.1.2), of one group of posts or of many.

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
from functools import cached_property

import numpy as np

from nearcast.common.arrays import freeze, frozen, runs
from nearcast.storage.posts.kernels.space_saving import leading_rows, shortened, space_saving

NO_TERMS = frozen(np.empty(0, np.uint64))
TermLists = tuple[np.ndarray, np.ndarray, np.ndarray]


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

    @cached_property
    def begins(self) -> np.ndarray:
        """Where the counters of each group begin, and the end."""
        return np.searchsorted(self.group, np.arange(len(self.rest) + 1))

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
    """Of exact counts by (group, term), each pair once: the m greatest of each group, without error; `rest` is the
    next.
    """
    exact = counts.astype(np.int64)
    total = np.bincount(group, exact, groups).astype(np.int64)
    return _shortened(m, group.astype(np.int64), terms, exact, exact, np.zeros(groups, np.int64), total, True)


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
    if len(parts) == 1:
        sources = np.flatnonzero(into[0] >= 0)
        if len(sources) == groups and len(np.unique(into[0][sources])) == groups:
            return _in_order(parts[0], sources[np.argsort(into[0][sources])])
    m = min(part.m for part in parts)
    rest, total = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for part, to in zip(parts, into, strict=True):
        np.add.at(rest, to[to >= 0], part.rest[to >= 0])
        np.add.at(total, to[to >= 0], part.total[to >= 0])
    group = np.concatenate([to[part.group] for part, to in zip(parts, into, strict=True)])
    terms = np.concatenate([part.terms for part in parts])
    above = np.concatenate([part.counts - part.rest[part.group] for part in parts])
    sure = np.concatenate([part.counts - part.errors for part in parts])
    kept = np.flatnonzero(group >= 0)
    return _shortened(m, group[kept], terms[kept], above[kept], sure[kept], rest, total, False)


def _in_order(summaries: Summaries, groups: np.ndarray) -> Summaries:
    """Those of some groups, as they are."""
    begins = summaries.begins[groups]
    sizes = summaries.begins[groups + 1] - begins
    rows = runs(begins, sizes)
    return Summaries(
        summaries.m, np.repeat(np.arange(len(groups)), sizes), summaries.terms[rows], summaries.counts[rows],
        summaries.errors[rows], summaries.rest[groups], summaries.total[groups],
    )  # fmt: skip


def _shortened(
    m: int,
    group: np.ndarray,
    terms: np.ndarray,
    above: np.ndarray,
    sure: np.ndarray,
    rest: np.ndarray,
    total: np.ndarray,
    distinct: bool,
) -> Summaries:
    """The m greatest of each group; `above` is what a counter has over `rest`, `sure` what it has for certain."""
    columns = (frozen(each) for each in (group, terms, above, sure))
    group, terms, above, sure, following = shortened(*columns, len(rest), m, distinct)
    counts = above + rest[group]
    return Summaries(m, group, terms, counts, counts - sure, rest + following, total)


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
    lists = frozen(summaries.begins), summaries.terms, summaries.counts
    of, rows, following = leading_rows(*lists, frozen(groups.astype(np.int64)), k, frozen(np.sort(stop)))
    counts, errors = summaries.counts[rows], summaries.errors[rows]
    certain = counts - errors > np.maximum(following[of], summaries.rest[summaries.group[rows]])
    return Leading(of, summaries.terms[rows], counts, errors, certain)


def leading_exactly(lists: TermLists, groups: np.ndarray, k: int, stop: np.ndarray) -> Leading:
    """The same of exact counts by group: where those of each group begin, terms, counts."""
    of, rows, following = leading_rows(*lists, frozen(groups.astype(np.int64)), k, frozen(np.sort(stop)))
    counts = lists[2][rows]
    return Leading(of, lists[1][rows], counts, np.zeros_like(counts), counts > following[of])


def frequent(summaries: Summaries, group: int, k: int) -> Frequent:
    """The k greatest counts of a group."""
    found = leading(summaries, np.array([group]), k, NO_TERMS)
    best = np.lexsort((found.terms, -found.counts))[:k]
    rest = int(summaries.rest[group])
    return Frequent(found.terms[best], found.counts[best], found.errors[best], found.certain[best], rest)
