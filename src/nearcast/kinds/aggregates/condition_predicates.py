"""Predicates on attributes, and the values of posts, as arrays for kernels; exact by
`storage.posts.attributes.satisfied`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen, numbers
from nearcast.common.post_schema import attribute_column
from nearcast.kinds.aggregates.kernels.conditions import (
    EQ,
    GE,
    GT,
    HUGE,
    IN,
    LE,
    LT,
    MOMENT,
    NE,
    NOT_IN,
    NOT_NULL,
    NULL,
    Values,
)
from nearcast.storage.posts.attributes import moment_of, satisfied
from nearcast.storage.posts.values import KIND_OF, MISSING, REAL, STRING, TRUTH, WHOLE, string_hashes

OPERATORS = {
    "=": EQ, "<>": NE, "<": LT, "<=": LE, ">": GT, ">=": GE,
    "in": IN, "not_in": NOT_IN, "is_null": NULL, "is_not_null": NOT_NULL,
}  # fmt: skip
EXACT = 1 << 53  # whole numbers below it are doubles, and no other whole number rounds to them


@dataclass(frozen=True)
class Literals:
    """Of each its kind, bits and moment; as a double; and its code, by which it is found (`Values.codes`)."""

    parts: np.ndarray
    reals: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, values: Sequence[Any]) -> "Literals":
        parts, reals = np.zeros((len(values), 3), np.int64), np.zeros(len(values))
        strings = [(at, value) for at, value in enumerate(values) if isinstance(value, str)]
        for (at, value), hashed in zip(strings, hashes(pa.array([s for _, s in strings], pa.string())), strict=True):
            moment = moment_of(value)
            parts[at] = (STRING, hashed, 0) if moment is None else (MOMENT, hashed, moment.value)
        for at, value in enumerate(values):
            if isinstance(value, bool):
                parts[at] = TRUTH, value, 0
            elif isinstance(value, int):
                fits = -(2**63) <= value < 2**63
                parts[at] = (WHOLE, value, 0) if fits else (HUGE, 0, 0)
            elif isinstance(value, float):
                parts[at, 0] = REAL
            if isinstance(value, int | float):
                reals[at] = value
        number = np.isin(parts[:, 0], (WHOLE, REAL, HUGE))
        return cls(parts, reals, np.where(number, order_codes(reals), parts[:, 1]))


@dataclass(frozen=True)
class Predicates:
    """The distinct predicate texts of rows, in the form of `kinds.aggregates.kernels.conditions.Conditions`; `of_row`
    says which of them a row has. A BETWEEN is two tests.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    of_row: np.ndarray
    starts: np.ndarray
    tests: np.ndarray
    literals: Literals

    @classmethod
    def of(cls, column: pa.StringArray, count: int) -> "Predicates":
        """Of `count` rows; a null, or an empty column, is none."""
        encoded = (column if len(column) else pa.nulls(count, pa.string())).fill_null("[]").dictionary_encode()
        texts = tuple(encoded.dictionary.to_pylist())
        names: dict[str, int] = {}
        values: list[Any] = []
        tests, starts = [], [0]
        for text in texts:
            for name, op, literals in json.loads(text):
                number = names.setdefault(name, len(names))
                steps = ((GE, literals[:1]), (LE, literals[1:])) if op == "between" else ((OPERATORS[op], literals),)
                for operator, some in steps:
                    tests.append((number, operator, len(values), len(values) + len(some)))
                    values += some
            starts.append(len(tests))
        of_row = np.asarray(numbers(encoded.indices), np.int64)
        return cls(
            tuple(names), texts, of_row, np.array(starts, np.int64),
            np.array(tests, np.int64).reshape(-1, 4), Literals.of(values),
        )  # fmt: skip

    @cached_property
    def owners(self) -> np.ndarray:
        """The text that each test belongs to."""
        return np.repeat(np.arange(len(self.texts)), np.diff(self.starts))


def values_of(attributes: pa.Table, names: Sequence[str], order: np.ndarray) -> Values:
    """The values that posts have of some attributes, in the order given."""
    shape = (len(order), len(names))
    kinds, bits = np.full(shape, MISSING, np.uint8), np.zeros(shape, np.int64)
    reals, codes = np.zeros(shape), np.zeros(shape, np.int64)
    for at, name in enumerate(names):
        for letter, kind in KIND_OF.items():
            column = attribute_column(name, letter)
            if column in attributes.column_names:
                _fill(attributes[column], kind, kinds[:, at], bits[:, at], reals[:, at], codes[:, at])
    columns = np.arange(len(names))
    return Values(
        frozen(kinds[order]), frozen(bits[order]), frozen(reals[order]), frozen(codes[order]), frozen(columns)
    )


def _fill(
    column: pa.ChunkedArray, kind: int, kinds: np.ndarray, bits: np.ndarray, reals: np.ndarray, codes: np.ndarray
) -> None:
    values = column.combine_chunks()
    there: Any = slice(None)
    if values.null_count:
        there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        values = values.drop_null()
    if not len(values):
        return
    kinds[there] = kind
    if kind == REAL:
        reals[there] = numbers(values)
        codes[there] = order_codes(numbers(values))
        return
    if kind == STRING:
        found = hashes(values)
    elif kind == TRUTH:
        found = values.cast(pa.int8()).to_numpy(zero_copy_only=False).astype(np.int64)
    else:
        found = numbers(values.cast(pa.int64()))
    bits[there] = codes[there] = found
    if kind == WHOLE:
        reals[there] = found
        codes[there] = order_codes(found.astype(np.float64))


def hashes(strings: pa.StringArray) -> np.ndarray:
    """Of strings without nulls; a repeated string is hashed once."""
    encoded = strings.dictionary_encode()
    return string_hashes(encoded.dictionary)[numbers(encoded.indices)]


def order_codes(values: np.ndarray) -> np.ndarray:
    """Doubles as integers in the same order; 0.0 and -0.0 are one."""
    bits = (np.asarray(values, np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def settled(predicates: Predicates, rows: np.ndarray, posts: np.ndarray, attributes: pa.Table) -> np.ndarray:
    """Of pairs that a kernel was unsure of, whether the post satisfies the predicates of the row."""
    which = predicates.of_row[rows]
    out = np.zeros(len(rows), np.bool_)
    for each in np.unique(which):
        some = np.flatnonzero(which == each)
        out[some] = satisfied(predicates.texts[each], attributes.take(pa.array(posts[some])))
    return out
