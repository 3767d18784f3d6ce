"""Aggregates of posts whose attributes are not of one segment, or not the same for all: of few posts of several
segments, and of pairs of posts and series that are grouped by different attributes.

Where `aggregate` numbers the codes of columns, here rows of values are numbered, all at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.group_by import (
    NO_WEIGHTS,
    NO_WORDS,
    GroupWords,
    aggregate,
    check_number,
    groups_of,
    keys_of,
    merge,
    nothing,
)
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.kernels.row_numbers import numbered_rows
from nearcast.kinds.aggregates.spellings import FEW_STRINGS, distinct, spelled, united
from nearcast.storage.posts.coded_columns import Column, column_of
from nearcast.storage.posts.kernels.grouping import add_measured, tally
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.values import STRING, WHOLE, Spelling


@dataclass(frozen=True)
class Keys:
    """What posts are grouped by, as it is grouped (`Values.grouped`): kinds and values, a row a post."""

    kinds: np.ndarray
    values: np.ndarray

    @classmethod
    def empty(cls, count: int, width: int) -> "Keys":
        """To be filled; whole numbers unless said otherwise."""
        return cls(np.full((count, width), WHOLE, np.uint8), np.empty((count, width), np.int64))

    def fill(self, rows: slice, at: int, column: Column) -> None:
        """An attribute of some rows."""
        codes, values = keys_of(column)
        self.kinds[rows, at], self.values[rows, at] = values.kinds[codes], values.values[codes]


@dataclass(frozen=True)
class Amounts:
    """One measured attribute of posts: kinds, and numbers and times as pairs of doubles."""

    kinds: np.ndarray
    high: np.ndarray
    low: np.ndarray

    @classmethod
    def empty(cls, count: int) -> "Amounts":
        return cls(np.empty(count, np.uint8), np.empty(count), np.empty(count))

    def fill(self, rows: slice, column: Column) -> None:
        """Those of some rows."""
        (high, low), kinds, codes = column.values.numbers, column.values.kinds, column.codes
        self.kinds[rows], self.high[rows], self.low[rows] = kinds[codes], high[codes], low[codes]


def aggregate_rows(
    shape: Shape,
    keys: Keys,
    measured: Sequence[Amounts],
    spellings: Sequence[Spelling],
    words: GroupWords | None = None,
    most: int | None = None,
) -> Groups:
    """The aggregates of posts whose attributes are given as they are, those of the shape in its order; `spellings` have
    all strings among the keys.
    """
    codes, firsts = numbered_rows(frozen(keys.kinds), frozen(keys.values))
    codes = frozen(codes)
    check_number(len(firsts), most)
    size = len(firsts)
    whole, real = np.zeros((size, len(measured), 3), np.int64), np.zeros((size, len(measured), 6))
    each_once = frozen(np.arange(len(codes), dtype=np.int32))
    for at, amounts in enumerate(measured):
        sums = np.zeros((size, 3), np.int64), np.zeros((size, 6))
        sums[1][:, [2, 4]] = np.inf, -np.inf
        columns = (frozen(each) for each in (amounts.kinds, amounts.high, amounts.low))
        add_measured(*(codes, each_once, NO_WEIGHTS, *columns, *sums))
        whole[:, at], real[:, at] = sums
    counts = words(codes, size) if words is not None else NO_WORDS
    kinds, values = keys.kinds[firsts], keys.values[firsts]
    spellings = distinct(spellings)
    few = sum(len(each.hashes) for each in spellings) <= max(FEW_STRINGS, size)
    spelling = united(spellings) if few else spelled(spellings, np.unique(values[kinds == STRING]))
    return groups_of(shape, kinds, values, tally(codes, size), whole, real, counts, spelling)


FEW_ROWS = 10_000  # of a segment, that are sooner numbered together with those of others than by themselves


def aggregate_rows_of(parts: Sequence[tuple[PostSegment, np.ndarray]], shape: Shape) -> Groups:
    """The aggregates of some rows of several segments."""
    parts = [part for part in parts if len(part[1])]
    few = [] if shape.terms else [part for part in parts if len(part[1]) <= FEW_ROWS]
    if len(few) < 2:
        return merge([nothing(shape), *(aggregate(*part, shape) for part in parts)])
    many = [aggregate(*part, shape) for part in parts if len(part[1]) > FEW_ROWS]
    return merge([_together(few, shape), *many])


def _together(parts: Sequence[tuple[PostSegment, np.ndarray]], shape: Shape) -> Groups:
    count = sum(len(rows) for _, rows in parts)
    keys, measured = Keys.empty(count, len(shape.by)), [Amounts.empty(count) for _ in shape.measured]
    spellings, begin = [], 0
    for segment, rows in parts:
        rows, here = frozen(rows), slice(begin, begin + len(rows))
        for at, name in enumerate(shape.by):
            column = column_of(segment, rows, name)
            keys.fill(here, at, column)
            spellings.append(column.values.grouped[1].spelling)
        for amounts, name in zip(measured, shape.measured, strict=True):
            amounts.fill(here, column_of(segment, rows, name))
        begin += len(rows)
    return aggregate_rows(shape, keys, measured, spellings)
