"""Partial aggregates as caches keep them: groups, with exact counts of terms or a summary of them for each group."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.group_by import NO_WORDS, merge, regrouped
from nearcast.kinds.aggregates.groups import MEASURED, Groups, Shape
from nearcast.kinds.aggregates.kernels.row_numbers import numbered_rows
from nearcast.storage.posts.term_summaries import Summaries, summed_up
from nearcast.storage.posts.term_summaries import merge as merge_summaries

COUNTERS_A_TERM = 16  # asked for, of each group's summary


def counters_for(k: int, stop: int = 0) -> int:
    """m, for the k most frequent terms beside some stop words: a power of two, so that views do for other k too."""
    return 1 << (COUNTERS_A_TERM * max(1, k) + stop - 1).bit_length()


@dataclass(frozen=True)
class Partial:
    """Aggregates of some posts; with summaries, they are of the same groups and `groups` has no terms."""

    groups: Groups
    summaries: Summaries | None = None

    @cached_property
    def nbytes(self) -> int:
        """Strings that others have too count as far as there are groups for them."""
        spelling = self.groups.spelling
        strings = spelling.hashes.nbytes + spelling.strings.nbytes
        strings = strings * min(1.0, self.groups.values.size / max(1, len(spelling.hashes)))
        arrays = (getattr(self.groups, each.name) for each in fields(self.groups))
        held = sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))
        return int(held + strings) + (self.summaries.nbytes if self.summaries is not None else 0)


def taken(groups: Groups, rows: np.ndarray | slice, shape: Shape) -> Groups:
    """Some rows of groups as groups of a smaller shape; one group may then be there several times."""
    held = groups.shape
    posts = groups.posts[rows]
    by = [held.by.index(name) for name in shape.by]
    of = [held.measured.index(name) for name in shape.measured]
    same_by, same_of = shape.by == held.by, shape.measured == held.measured
    measured = [(name, getattr(groups, name)) for name in MEASURED]
    if of:
        columns = {name: each[rows] if same_of else each[rows][:, of] for name, each in measured}
    else:
        columns = {name: each[: len(posts), :0] for name, each in measured}
    keys = {
        name: getattr(groups, name)[rows] if same_by else getattr(groups, name)[rows][:, by]
        for name in ("kinds", "values")
    }
    terms = _terms_of(groups, rows) if shape.terms else _TERMLESS
    return Groups(shape=shape, posts=posts, spelling=groups.spelling, **columns, **keys, **terms)


def _terms_of(groups: Groups, rows: np.ndarray | slice) -> dict[str, np.ndarray]:
    """The terms of some groups, which are numbered anew."""
    back = np.full(len(groups), -1, np.int64)
    kept = np.arange(len(groups))[rows]
    back[kept] = np.arange(len(kept))
    to = back[groups.term_group]
    there = np.flatnonzero(to >= 0)
    return {"term_group": to[there], "term": groups.term[there], "term_posts": groups.term_posts[there]}


def summarised(groups: Groups, m: int) -> Partial:
    """Groups with exact counts of terms as groups with a summary each."""
    summaries = summed_up(m, groups.term_group, groups.term, groups.term_posts, len(groups))
    return Partial(taken(groups, slice(None), replace(groups.shape, terms=False)), summaries)


_TERMLESS = dict(zip(("term_group", "term", "term_posts"), NO_WORDS, strict=True))


def combined(parts: Sequence[Partial]) -> Partial:
    """Partial aggregates of disjoint posts added up; at least one. Within a part, too, equal groups become one.

    Where one part has summaries only, so has the whole.
    """
    m = min((part.summaries.m for part in parts if part.summaries is not None), default=0)
    if m:
        parts = [part if part.summaries is not None else summarised(part.groups, m) for part in parts]
    parts = [part for part in parts if len(part.groups)] or parts[:1]
    held = [part.groups for part in parts]
    groups = merge(held) if len(held) > 1 else regrouped(held[0])
    summaries = [part.summaries for part in parts if part.summaries is not None]
    if not summaries:
        return Partial(groups)
    return Partial(groups, merge_summaries(summaries, _places(held), len(groups)))


def _places(parts: Sequence[Groups]) -> list[np.ndarray]:
    """Where each group of each part is in the sum of them: groups are numbered as they are first met."""
    kinds, values = (np.concatenate([getattr(each, name) for each in parts]) for name in ("kinds", "values"))
    codes, _ = numbered_rows(frozen(kinds), frozen(values))
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return [codes[begin:end].astype(np.int64) for begin, end in pairwise(ends)]


def part_of(groups: Groups, summaries: Summaries | None, rows: np.ndarray | slice, shape: Shape) -> Partial:
    """Some groups as those of a smaller shape, each with its summary, where there are such."""
    if summaries is None or not shape.terms:
        return Partial(taken(groups, rows, shape))
    kept = np.arange(len(groups))[rows]
    back = np.full(len(groups), -1, np.int64)
    back[kept] = np.arange(len(kept))
    less = merge_summaries([summaries], [back], len(kept))
    return Partial(taken(groups, rows, replace(shape, terms=False)), less)
