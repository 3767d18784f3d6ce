"""JSON Lines to raw columns, by two paths with one result.

Arrow's JSON reader takes a block of plain, uniform objects at once. It knows no bad line and no field of two types, so
whatever it refuses or could bend (a broken line, nested values, numbers whose spelling would be lost) is read line by
line with Python's. The rules both follow:

- A line is a record: one object, nothing else. Blank lines are skipped. Of a key given twice the last counts.
- A number is an integer if it is whole: 5 and 5.0 are the same number in JSON. From 2^53 on, where doubles have no
  fractions, its spelling decides: 9007199254740993 is an integer, 1e300 a float; so is an integer beyond 64 bits.
- A string is a string, whatever it looks like. A list or an object is JSON text (`pa.json_`).
"""

import json
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from nearcast.sources.raw import Raw, json_text, reject_table

_BLANK = b" \t\r"
_SAMPLE = 20
_EXACT = 2.0**53
_MAX_OPENERS = 500  # Arrow's parser recurses without a bound: a line that nests deeper would end the process
_TYPES: dict[str, pa.DataType] = {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_(), "s": pa.string()}
_JSON = pa.json_(pa.string())


def parse_json_lines(data: bytes) -> Raw:
    """The rows of a block of whole lines. The raw record of a row is its line."""
    table = parse_uniform(data)
    return parse_line_by_line(data) if table is None else Raw(table, reject_table([], []), _LineLookup(data))


def parse_uniform(data: bytes) -> pa.Table | None:
    """The rows by Arrow's reader, or None where it cannot be trusted with them."""
    rows = _row_count(data)
    strings = _string_fields(data) if rows else None
    if strings is None:
        return None
    table = _arrow_table(data, strings)
    if table is not None:
        moments = {field.name for field in table.schema if pa.types.is_timestamp(field.type)}
        if moments:  # strings that look like times, first seen after the sample
            table = _arrow_table(data, strings | moments)
    if table is None or table.num_rows != rows or table.num_columns == 0:
        return None
    columns, names = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = column.combine_chunks()
        if pa.types.is_floating(array.type):
            whole = _whole(array)
            if whole is None:
                return None
            names += [name, name]
            columns += [whole, pc.if_else(whole.is_valid(), pa.scalar(None, pa.float64()), array)]
        elif array.type in (pa.int64(), pa.bool_(), pa.string(), pa.null()):
            names.append(name)
            columns.append(array)
        else:
            return None
    return pa.Table.from_arrays(columns, names)


def parse_line_by_line(data: bytes) -> Raw:
    """The same rows, each line by itself; a line that is no object is a reject."""
    cells: defaultdict[tuple[str, str], tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
    lines: list[bytes] = []
    reasons: list[str] = []
    refused: list[str] = []
    for line in data.split(b"\n"):
        line = line.strip(_BLANK)
        if not line:
            continue
        record, reason = _object(line)
        if reason:
            reasons.append(reason)
            refused.append(line.decode("utf-8", "replace"))
            continue
        for (name, kind), value in record.items():
            rows, values = cells[name, kind]
            rows.append(len(lines))
            values.append(value)
        lines.append(line)
    columns, names = [], []
    for (name, kind), (rows, values) in cells.items():
        names.append(name)
        columns.append(_spread(rows, values, kind, len(lines)))
    if not columns:
        names, columns = ["id"], [pa.nulls(len(lines))]  # a table without columns has no rows either
    return Raw(
        pa.Table.from_arrays(columns, names),
        reject_table(reasons, refused),
        lambda rows: [lines[row].decode("utf-8") for row in rows],
    )


class _LineLookup:
    """The raw records of rows that are the lines of a block, found when they are asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __call__(self, rows: np.ndarray) -> list[str]:
        if len(rows) == 0:
            return []
        ends = np.flatnonzero(np.frombuffer(self.data, np.uint8) == 10)
        ends = np.append(ends, len(self.data))
        starts = np.append(0, ends[:-1] + 1)
        return [self.data[starts[row] : ends[row]].strip(_BLANK).decode("utf-8") for row in rows]


def _row_count(data: bytes) -> int | None:
    """The number of lines, if each begins with { and ends with }, is UTF-8 and nests little.

    Between } and { inside one object there is a comma; so an object that runs over such a line's end cannot be valid,
    and if Arrow finds as many objects as lines, each line is one.
    """
    body = data.rstrip(b" \t\r\n")
    newlines = body.count(b"\n")
    if not body.startswith(b"{") or newlines != body.count(b"}\n{") + body.count(b"}\r\n{"):
        return None
    if body.count(b"{") + body.count(b"[") - newlines > _MAX_OPENERS:
        array = np.frombuffer(body, np.uint8)
        starts = np.append(0, np.flatnonzero(array == 10) + 1)
        if np.add.reduceat((array == 91) | (array == 123), starts, dtype=np.int64).max() > _MAX_OPENERS:
            return None
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return newlines + 1


def _string_fields(data: bytes) -> set[str] | None:
    """The fields that are strings in the first lines, or None if those have nested values or values of two types."""
    types: dict[str, type] = {}
    for line in data.split(b"\n", _SAMPLE)[:_SAMPLE]:
        if not line.strip(_BLANK):
            continue
        record, reason = _object(line)
        if reason:
            return None
        for name, kind in record:
            seen = types.setdefault(name, str if kind == "s" else bool if kind == "b" else float)
            if kind == "j" or seen is not (str if kind == "s" else bool if kind == "b" else float):
                return None
    return {name for name, seen in types.items() if seen is str}


def _arrow_table(data: bytes, strings: set[str]) -> pa.Table | None:
    schema = pa.schema([(name, pa.string()) for name in sorted(strings)])
    try:
        return arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=arrow_json.ParseOptions(explicit_schema=schema, newlines_in_values=False),
        )
    except (pa.ArrowException, ValueError):
        return None


def _whole(numbers: pa.Array) -> pa.Array | None:
    """The whole numbers among doubles, as integers; None if a number's spelling is needed to tell."""
    values = pc.fill_null(numbers, 0.5).to_numpy(zero_copy_only=False)
    if not (np.abs(values) < _EXACT).all():  # so are NaN and the infinities
        return None
    whole = values == np.floor(values)
    return pa.array(np.where(whole, values, 0).astype(np.int64), mask=~whole)


def _object(line: bytes) -> tuple[dict[tuple[str, str], Any], str]:
    """(the values of an object by name and kind, why it is none)."""
    try:
        text = line.decode("utf-8")
        record = json.loads(text)
        if not isinstance(record, dict):
            return {}, "not an object"
        if "\\ud" in text or "\\uD" in text:
            json_text(record).encode("utf-8")  # half a surrogate pair is no character
        return dict(_cell(name, value) for name, value in record.items() if value is not None), ""
    except UnicodeError:
        return {}, "not UTF-8"
    except (ValueError, RecursionError):
        return {}, "broken JSON"


def _cell(name: str, value: Any) -> tuple[tuple[str, str], Any]:
    if isinstance(value, str):
        return (name, "s"), value
    if isinstance(value, bool):
        return (name, "b"), value
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return (name, "i"), value
        return (name, "f"), _float(value)
    if isinstance(value, float):
        return ((name, "i"), int(value)) if abs(value) < _EXACT and value == int(value) else ((name, "f"), value)
    return (name, "j"), json_text(value)


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _spread(rows: list[int], values: list[Any], kind: str, length: int) -> pa.Array:
    """A column with these values in these rows and null elsewhere."""
    if len(rows) < length:
        column: list[Any] = [None] * length
        for row, value in zip(rows, values, strict=True):
            column[row] = value
        values = column
    if kind == "j":
        return pa.ExtensionArray.from_storage(_JSON, pa.array(values, pa.string()))
    return pa.array(values, _TYPES[kind])
