"""Raw rows on their way to posts or ops: columns as a file gave them, what was unreadable, each row's raw record."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.post_schema import REJECTS

MAX_RAW_BYTES = 64 << 10


class Faults:
    """What is wrong with each row; the first reason found stays."""

    def __init__(self, rows: int) -> None:
        self.codes = np.zeros(rows, np.uint8)
        self.names = [""]

    def mark(self, where: np.ndarray, reason: str) -> None:
        """Reject the rows of a mask, unless they are rejected already."""
        if not where.any():
            return
        if reason not in self.names:
            self.names.append(reason)
        self.codes[where & (self.codes == 0)] = self.names.index(reason)

    def rejected(self) -> np.ndarray:
        """The rows with a reason."""
        return np.flatnonzero(self.codes)

    def reasons(self) -> list[str]:
        """The reasons, in the order of `rejected`."""
        return [self.names[code] for code in self.codes[self.codes > 0]]


@dataclass(frozen=True)
class Raw:
    """Rows of a file: a table whose columns may repeat a name, the rejects that never became rows, and the raw record
    of given rows."""

    table: pa.Table
    rejects: pa.Table
    records: Callable[[np.ndarray], list[str]]

    @classmethod
    def of(cls, table: pa.Table) -> "Raw":
        """Rows of a table without rejects; their raw records are JSON."""
        return cls(table, reject_table([], []), partial(records_as_json, table))


def plain(column: pa.ChunkedArray) -> pa.Array:
    """One array of a simple type: dictionaries decoded, all strings of one kind."""
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])
    if pa.types.is_dictionary(array.type) or pa.types.is_run_end_encoded(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    return array


def reject_table(reasons: Sequence[str], records: Iterable[str]) -> pa.Table:
    """Rejects as Arrow, each raw record cut to 64 KB."""
    return pa.Table.from_arrays(
        [pa.array(reasons, pa.string()), pa.array([capped(record) for record in records], pa.string())], schema=REJECTS
    )


def capped(record: str) -> str:
    """The record, or as much of its beginning as 64 KB of UTF-8 hold."""
    if len(record) * 4 <= MAX_RAW_BYTES:
        return record
    return record[:MAX_RAW_BYTES].encode("utf-8", "replace")[:MAX_RAW_BYTES].decode("utf-8", "ignore")


def records_as_json(table: pa.Table, rows: np.ndarray) -> list[str]:
    """Rows of a table as JSON objects of what is set in them."""
    objects: list[dict[str, Any]] = [{} for _ in rows]
    indices = pa.array(rows, pa.int64())
    for name, column in zip(table.column_names, table.columns if len(rows) else [], strict=False):
        for record, value in zip(objects, python_values(plain(column).take(indices)), strict=True):
            if value is not None:
                record.setdefault(name, value)
    return [json.dumps(record, ensure_ascii=False, default=_plain_value) for record in objects]


def python_values(array: pa.Array) -> list[Any]:
    """The values as Python's; one that Python cannot hold, such as a date in the year 40,000, as text."""
    try:
        return array.to_pylist()
    except (ValueError, OverflowError):
        return [_python_value(scalar) for scalar in array]


def json_text(value: Any) -> str:
    """A nested value as compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain_value)


def _python_value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        if isinstance(scalar, pa.StructScalar):
            return {name: _python_value(value) for name, value in scalar.items()}
        if isinstance(scalar, pa.ListScalar):
            return [_python_value(value) for value in scalar]
        try:
            return scalar.cast(pa.string()).as_py()
        except pa.ArrowException:
            return f"<{scalar.type}>"


def _plain_value(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
