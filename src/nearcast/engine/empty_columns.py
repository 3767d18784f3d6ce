"""Columns of ops that say nothing: of ops that ask nothing, and of columns that did not travel."""

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.geo.shapes import EVERYWHERE
from nearcast.common.op_schema import BEGINNING, NEVER, NOTHING_ASKED

NOTHING: dict[str, Any] = {
    "region_kind": EVERYWHERE, "min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0,
    "shape": [], "code": [], "since": BEGINNING, "until": NEVER, "life": NEVER, "predicates": None, **NOTHING_ASKED,
}  # fmt: skip


def default(field: pa.Field, count: int) -> pa.Array:
    """A column of ops that says nothing."""
    value = NOTHING.get(field.name)
    if isinstance(value, list):
        return pa.ListArray.from_arrays(_constant(0, pa.int32(), count + 1), pa.array([], field.type.value_type))
    return _constant(value, field.type, count)


def _constant(value: Any, type_: pa.DataType, count: int) -> pa.Array:
    return _constants(value, type_, 1 << count.bit_length())[:count]


@lru_cache(maxsize=16)
def _constants(value: Any, type_: pa.DataType, count: int) -> pa.Array:
    """Kept, for columns that say the same: of a million ops they would be a hundred megabytes."""
    return pa.nulls(count, type_) if value is None else pa.array(np.full(count, value, type_.to_pandas_dtype()))
