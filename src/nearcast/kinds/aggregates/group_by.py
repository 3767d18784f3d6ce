"""Aggregates by group of the posts of one segment, and of several together (STAR §4.1.1).

An algebraic aggregate of a set of posts is made of those of its disjoint parts: each segment gives its `Groups`, and
`merge` adds them up. What posts are grouped by and what is measured are codes (`storage.posts.coded_columns`), so
grouping is arithmetic on small numbers. Where few values are measured of few groups, pairs of them are counted, and
each pair is added once, times its count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.kinds.aggregates.groups import MEASURED, Groups, Shape
from nearcast.kinds.aggregates.kernels.row_numbers import numbered_rows
from nearcast.kinds.aggregates.spellings import FEW_STRINGS, NO_SPELLING, united
from nearcast.storage.posts.coded_columns import Column, column_of
from nearcast.storage.posts.kernels.grouping import (
    add_groups,
    add_measured,
    count_words,
    numbered,
    paired,
    tally,
    tally_pairs,
)
from nearcast.storage.posts.kernels.term_lists import add_term_lists, count_codes, distinct_codes
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.posts.range_search import SegmentScan, search_range
from nearcast.storage.posts.values import Spelling, Values

MOST_GROUPS = 1_000_000
FEW = 1 << 12  # keys that a table has a place for each of, however few the posts
NO_WEIGHTS = frozen(np.empty(0, np.int64))
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]
NO_WORDS: Counts = (NOTHING, frozen(np.empty(0, np.uint64)), NOTHING)


def search_groups(
    segment: PostSegment, question: Question, shape: Shape, gone: np.ndarray = NOTHING
) -> tuple[Groups, SegmentScan]:
    """The aggregates of the posts that satisfy the question; `gone` are deleted rows, ascending."""
    size = len(segment)
    if not takes_all(segment, question):
        hits = search_range(segment, question, gone)
        return aggregate(segment, hits.rows, shape), hits.scan
    rows = np.delete(segment.all_rows, gone) if len(gone) else None
    groups = aggregate(segment, rows, shape)
    if shape == Shape():
        return groups, SegmentScan(size, "count", "all posts are asked for, and how many they are is known", 0)
    return groups, SegmentScan(size, "whole columns", f"all {size:,} posts are asked for", size)


def takes_all(segment: PostSegment, question: Question) -> bool:
    """Whether nothing is asked of a post but a time that all have."""
    if question.kind or question.has_words or question.predicates or not len(segment):
        return False
    return question.covers(*segment.times[-2:].tolist())  # those of the root


def aggregate(segment: PostSegment, rows: np.ndarray | None, shape: Shape) -> Groups:
    """The aggregates of some rows of a segment, None for all."""
    count = len(segment) if rows is None else len(rows)
    if not count:
        return nothing(shape)
    if rows is not None:
        rows = frozen(rows)
    by = [column_of(segment, rows, name) for name in shape.by]
    measured = [column_of(segment, rows, name) for name in shape.measured]
    return aggregate_columns(shape, by, measured, count, _words(segment, rows) if shape.terms else None)


class GroupWords(Protocol):
    """Counts the terms of posts by group: (groups of the posts, how many groups) → (group, term, posts)."""

    def __call__(self, groups: np.ndarray, size: int) -> Counts: ...


def aggregate_columns(
    shape: Shape,
    by: Sequence[Column],
    measured: Sequence[Column],
    count: int,
    words: "GroupWords | tuple[np.ndarray, np.ndarray] | None" = None,
    most: int | None = None,
) -> Groups:
    """The aggregates of posts whose attributes are given, in the order of the shape's; and their words, which may be
    terms (with the boundary 0) and where those of each post begin.
    """
    codes, size, values, known = _grouped(by, count)
    posts = np.full(1, count) if codes is None else tally(codes, size)
    whole, real = _measured(measured, codes, size, count)
    kept = np.flatnonzero(posts)
    check_number(len(kept), most)
    counts = NO_WORDS
    if isinstance(words, tuple):
        words = WordCodes.of(*words).of_posts(np.arange(count))
    if words is not None:
        of, term, with_term = words(frozen(np.zeros(count, np.int32)) if codes is None else codes, size)
        counts = np.searchsorted(kept, of), term, with_term
    if len(kept) < size:
        values = [each.take(kept) for each in values]
    spellings = [some.spelling if each is None else each for each, some in zip(known, values, strict=True)]
    kinds = np.stack([each.kinds for each in values], axis=1) if values else np.empty((len(kept), 0), np.uint8)
    bits = np.stack([each.values for each in values], axis=1) if values else np.empty((len(kept), 0), np.int64)
    return groups_of(shape, kinds, bits, posts[kept], whole[kept], real[kept], counts, united(spellings))


def groups_of(
    shape: Shape, kinds: np.ndarray, values: np.ndarray, posts: np.ndarray, whole: np.ndarray, real: np.ndarray,
    words: Counts, spelling: Spelling,
) -> Groups:  # fmt: skip
    return Groups(
        shape=shape, kinds=kinds, values=values, posts=posts, counts=whole[:, :, 0], numbers=whole[:, :, 1],
        sums=real[:, :, 0], low=real[:, :, 1], least=real[:, :, 2], greatest=real[:, :, 4],
        term_group=words[0], term=words[1], term_posts=words[2], spelling=spelling,
        seen=whole[:, :, 2].astype(np.uint8), least_low=real[:, :, 3], greatest_low=real[:, :, 5],
    )  # fmt: skip


@lru_cache(maxsize=1_024)
def nothing(shape: Shape) -> Groups:
    """The aggregates of no posts."""
    width, of = len(shape.by), len(shape.measured)
    sums = np.empty((0, of, 3), np.int64), np.empty((0, of, 6))
    kinds, values = np.empty((0, width), np.uint8), np.empty((0, width), np.int64)
    return groups_of(shape, kinds, values, NOTHING, *sums, NO_WORDS, NO_SPELLING)


def check_number(groups: int, most: int | None) -> None:
    """Raises BadInput where there are more groups than `most`, or than an answer may have."""
    if groups > (MOST_GROUPS if most is None else most):
        raise BadInput(
            f"more than {MOST_GROUPS:,} groups: GROUP BY fewer or coarser attributes (hour for minute, say), or ask "
            "for fewer posts in the WHERE"
        )


# -- groups of one segment ---------------------------------------------------------------------------------------------


def _grouped(
    columns: Sequence[Column], count: int
) -> tuple[np.ndarray | None, int, list[Values], list[Spelling | None]]:
    """(the group of each post, how many groups there may be, their values of each attribute, and the strings of all
    values that it has, where they are few); no groups, but one, where there is no attribute.
    """
    if not columns:
        return None, 1, [], []
    every = [column.values.grouped[1] for column in columns]
    spellings = [values.spelling if len(values) <= FEW_STRINGS else None for values in every]
    codes, values = keys_of(columns[0])
    size, parts = len(values), [values]
    if size > max(FEW, count):
        numbers, firsts = numbered(frozen(codes.astype(np.int64)), 0)
        parts = [values.take(codes[firsts])]
        codes, size = frozen(numbers), len(firsts)
    for column in columns[1:]:
        more, values = keys_of(column)
        span = size * len(values)
        keys = frozen(paired(codes, len(values), more))
        numbers, firsts = numbered(keys, span if span <= max(FEW, 8 * count) else 0)
        parts = [*(part.take(codes[firsts]) for part in parts), values.take(more[firsts])]
        codes, size = frozen(numbers), len(firsts)
    return codes, size, parts, spellings


def keys_of(column: Column) -> tuple[np.ndarray, Values]:
    """The codes of a column, and its values, as they are grouped."""
    numbers, values = column.values.grouped
    return (column.codes if numbers is None else frozen(numbers[column.codes])), values


def _measured(
    columns: Sequence[Column], codes: np.ndarray | None, size: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """What `add_measured` adds up, of each group (the first axis) and each attribute."""
    whole, real = np.zeros((size, len(columns), 3), np.int64), np.zeros((size, len(columns), 6))
    for at, column in enumerate(columns):
        groups, of, width = codes, column.codes, len(column.values)
        weights = NO_WEIGHTS
        if size * width <= max(FEW, count // 4):
            pairs = tally(of, width) if codes is None else tally_pairs(codes, width, of, size * width)
            there = np.flatnonzero(pairs)
            groups, of = frozen((there // width).astype(np.int32)), frozen((there % width).astype(np.int32))
            weights = frozen(pairs[there])
        elif codes is None:
            groups = frozen(np.zeros(count, np.int32))
        sums = np.zeros((size, 3), np.int64), np.zeros((size, 6))
        sums[1][:, [2, 4]] = np.inf, -np.inf
        add_measured(groups, of, weights, column.values.kinds, *column.values.numbers, *sums)
        whole[:, at], real[:, at] = sums
    return whole, real


def _words(segment: PostSegment, rows: np.ndarray | None) -> GroupWords:
    def count(groups: np.ndarray, size: int) -> Counts:
        forward = segment.arrays["forward"], segment.arrays["forward_starts"]
        some = frozen(segment.all_rows) if rows is None else rows
        group, code, posts = count_words(*(*forward, some, groups, size, len(segment.terms)))
        return group, segment.terms[code], posts

    return count


@dataclass(frozen=True)
class WordCodes:
    """The distinct words of posts, those of each from its offset to the next; `terms` are what codes mean."""

    codes: np.ndarray
    offsets: np.ndarray
    terms: np.ndarray

    @classmethod
    def of(cls, terms: np.ndarray, offsets: np.ndarray) -> "WordCodes":
        """Of posts whose terms lie one after the other, with the boundary 0."""
        terms = frozen(terms)
        codes, found = numbered(terms.view(np.int64), 0)
        codes, offsets = distinct_codes(frozen(codes), terms, frozen(offsets), len(found))
        return cls(frozen(codes), frozen(offsets), terms[found])

    def of_posts(self, posts: np.ndarray) -> GroupWords:
        """Those of some posts."""

        def count(groups: np.ndarray, size: int) -> Counts:
            given = self.codes, self.offsets, frozen(posts), groups, size, len(self.terms)
            group, code, with_term = count_codes(*given)
            return group, self.terms[code], with_term

        return count


# -- of several parts --------------------------------------------------------------------------------------------------


def merge(parts: Sequence[Groups], most: int | None = None, in_order: bool = False) -> Groups:
    """Partial aggregates of the same shape, of disjoint sets of posts, added up; at least one part. `in_order` puts
    groups of several parts in the order of their first value.
    """
    shape = parts[0].shape
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else nothing(shape)
    return added_up(parts, most, in_order)


def regrouped(groups: Groups) -> Groups:
    """Groups whose keys have been changed: those that have the same ones now are added up."""
    return added_up([groups], len(groups)) if len(groups) else groups


def added_up(parts: Sequence[Groups], most: int | None, in_order: bool = False) -> Groups:
    """As `merge`, of parts in which a group may be there several times."""
    shape = parts[0].shape
    kinds, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("kinds", "values"))
    if not len(kinds):
        return nothing(shape)
    into, firsts = _numbered_in_order(kinds, values) if in_order else numbered_rows(frozen(kinds), frozen(values))
    into = frozen(into)
    check_number(len(firsts), most)
    sums = [frozen(np.concatenate([getattr(part, name) for part in parts])) for name in ("posts", *MEASURED)]
    posts, whole, real = add_groups(*(into, *sums, len(firsts)))
    words = _merge_words(parts, into, len(firsts)) if shape.terms else NO_WORDS
    spelling = united([part.spelling for part in parts])
    return groups_of(shape, kinds[firsts], values[firsts], posts, whole, real, words, spelling)


def _numbered_in_order(kinds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `numbered_rows`, but numbers ascend with the first value."""
    order = np.argsort(values[:, 0], kind="stable")
    numbers, firsts = numbered_rows(frozen(kinds[order]), frozen(values[order]))
    into = np.empty_like(numbers)
    into[order] = numbers
    return into, order[firsts]


def _merge_words(parts: Sequence[Groups], into: np.ndarray, size: int) -> Counts:
    """Of groups that become others, `into` of them: the terms of each."""
    lists = [part.term_lists for part in parts]
    bases = np.cumsum([0, *(len(terms) for _, terms, _ in lists)])
    starts = [each[:-1] + base for (each, _, _), base in zip(lists, bases, strict=False)]
    terms, posts = (frozen(np.concatenate([each[at] for each in lists])) for at in (1, 2))
    of, term, with_term = add_term_lists(into, size, frozen(np.concatenate([*starts, bases[-1:]])), terms, posts)
    return of, term, with_term
