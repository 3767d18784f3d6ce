"""Numbers for rows: the same for equal rows, in the order in which they are first met."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.kernels.row_numbers import numbered_rows

cells = st.tuples(st.integers(0, 5), st.sampled_from([0, 1, -1, 2**62, -(2**63)]))


def numbers(kinds: np.ndarray, values: np.ndarray) -> tuple[list[int], list[int]]:
    codes, firsts = numbered_rows(frozen(kinds), frozen(values))
    return codes.tolist(), firsts.tolist()


def one_by_one(rows: list[tuple[object, ...]]) -> tuple[list[int], list[int]]:
    known: dict[tuple[object, ...], int] = {}
    codes = [known.setdefault(row, len(known)) for row in rows]
    return codes, [rows.index(row) for row in known]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3).flatmap(lambda width: st.lists(st.tuples(*[cells] * width), max_size=30)))
def test_equal_rows_have_the_same_number(rows: list[tuple[tuple[int, int], ...]]) -> None:
    width = len(rows[0]) if rows else 2
    kinds = np.array([[kind for kind, _ in row] for row in rows], np.uint8).reshape(len(rows), width)
    values = np.array([[value for _, value in row] for row in rows], np.int64).reshape(len(rows), width)
    assert numbers(kinds, values) == one_by_one(list(rows))


@pytest.mark.parametrize("distinct", [511, 513, 40_000])
def test_so_they_have_when_the_table_has_to_grow(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    values = np.column_stack([rng.integers(distinct, size=100_000), np.zeros(100_000, np.int64)])
    codes, firsts = numbered_rows(frozen(np.zeros((100_000, 2), np.uint8)), frozen(values))
    assert np.array_equal(values[firsts][codes], values)
    assert len(firsts) == len(np.unique(values[:, 0])) and (np.diff(firsts) > 0).all()
