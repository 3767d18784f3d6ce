"""Predicates on attributes, over the columns of posts.

A comparison is true only of a value of a comparable kind: numbers with numbers, strings with strings, truth values with
truth values, times with ISO 8601 strings. A missing value satisfies IS NULL and nothing else.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.post_schema import ATTRIBUTE_KINDS, attribute_column

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def names_in(predicates: str | None) -> list[str]:
    """The attributes that predicates, given as the JSON of an encoded query, look at."""
    return sorted({name for name, _, _ in json.loads(predicates or "[]")})


def satisfied(predicates: str, posts: pa.Table) -> np.ndarray:
    """Which posts satisfy all predicates, given as the JSON of an encoded query."""
    out = np.ones(len(posts), np.bool_)
    for name, op, values in json.loads(predicates):
        columns = {
            kind: posts[attribute_column(name, kind)]
            for kind in ATTRIBUTE_KINDS
            if attribute_column(name, kind) in posts.column_names
        }
        out &= _satisfied(columns, op, values, len(posts))
    return out


def _satisfied(columns: dict[str, pa.ChunkedArray], op: str, values: list[Any], count: int) -> np.ndarray:
    if op in ("is_null", "is_not_null"):
        present = _any([_mask(pc.is_valid(column)) for column in columns.values()], count)
        return ~present if op == "is_null" else present
    if op == "between":
        return _compare(columns, ">=", values[0], count) & _compare(columns, "<=", values[1], count)
    if op == "in":
        return _any([_compare(columns, "=", value, count) for value in values], count)
    if op == "not_in":
        different = [_compare(columns, "<>", value, count) for value in values]
        equal = _any([_compare(columns, "=", value, count) for value in values], count)
        return _any(different, count) & ~equal
    return _compare(columns, op, values[0], count)


def _compare(columns: dict[str, pa.ChunkedArray], op: str, value: Any, count: int) -> np.ndarray:
    masks = []
    for kind, column in columns.items():
        literal = _literal(kind, value)
        if literal is not None:
            if kind == "i" and isinstance(value, float):
                column = column.cast(pa.float64(), safe=False)
            masks.append(_mask(COMPARISONS[op](column, literal)))
    return _any(masks, count)


def _literal(kind: str, value: Any) -> pa.Scalar | None:
    """The value as something a column of that kind can be compared with, or None."""
    if isinstance(value, bool):
        return pa.scalar(value) if kind == "b" else None
    if isinstance(value, int | float):
        if kind == "f" or (kind == "i" and isinstance(value, float)):
            return pa.scalar(float(value))
        return pa.scalar(value, pa.int64()) if kind == "i" and -(2**63) <= value < 2**63 else None
    if kind in ("s", "j"):
        return pa.scalar(value, pa.string())
    return moment_of(value) if kind == "t" else None


def moment_of(text: str) -> pa.Scalar | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return pa.scalar(moment, ATTRIBUTE_KINDS["t"])


def _mask(values: Any) -> np.ndarray:
    return np.asarray(values.fill_null(False).to_numpy(), np.bool_)


def _any(masks: list[np.ndarray], count: int) -> np.ndarray:
    return reduce(np.logical_or, masks, np.zeros(count, np.bool_))
