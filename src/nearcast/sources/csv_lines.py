"""CSV to raw columns: comma-separated, quotes doubled inside quotes, names in the first record.

A CSV value has no type of its own, so the spelling decides, value by value: a canonical integer that fits 64 bits (no
leading zeros: 007 is text) is an integer, a JSON number with a fraction or an exponent a float, true or false (also
True, TRUE) a boolean, an empty value null, and everything else text. Fields that must be text stay text.
"""

import csv
import io
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from nearcast.sources.raw import Raw, records_as_json, reject_table
from nearcast.sources.values import JSON_NUMBER

WRONG_FIELDS = "wrong number of fields"
_INTEGER = r"^(?:0|-?[1-9][0-9]{0,18})$"
_BOOLEAN = r"^(?:true|True|TRUE|false|False|FALSE)$"
_GREATEST = "9223372036854775807"
_LONGEST_NUMBER = 64  # what is longer is text, whatever it looks like


def header_names(record: bytes) -> list[str]:
    """The names of the columns, from the file's first record."""
    text = record.decode("utf-8", "replace").removeprefix("\ufeff")
    return [name.strip() for row in csv.reader(io.StringIO(text, newline="")) for name in row]


def parse_csv(data: bytes, names: Sequence[str], text: Collection[str], id_name: str) -> Raw:
    """The rows of a block of whole records; values of fields in `text` stay as they are, ids are integers or text."""
    strings, reasons, refused = _strings(data, len(names))
    columns: list[pa.Array] = []
    titles: list[str] = []
    for name, array in zip(names, strings, strict=True):
        array = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
        typed = [array] if name in text else integers_apart(array) if name == id_name else kinds_apart(array)
        columns += typed
        titles += [name] * len(typed)
    table = pa.Table.from_arrays(columns, titles)
    as_written = pa.Table.from_arrays(strings, list(names))
    return Raw(table, reject_table(reasons, refused), lambda rows: records_as_json(as_written, rows))


def integers_apart(array: pa.Array) -> list[pa.Array]:
    """[integers, other strings] of a string array."""
    candidate = pc.match_substring_regex(array, _INTEGER)
    digits = pc.utf8_ltrim(array, "-")
    fits = pc.or_(pc.less(pc.utf8_length(digits), 19), pc.less_equal(digits, _GREATEST))
    integer = pc.and_(candidate, fits)
    return [_where(integer, array).cast(pa.int64()), _where(pc.invert(integer), array)]


def kinds_apart(array: pa.Array) -> list[pa.Array]:
    """The values of a string array by kind: integers, floats, booleans, text; kinds that do not occur are left out."""
    short = pc.less(pc.binary_length(array), _LONGEST_NUMBER)
    integers, others = integers_apart(_where(short, array))
    boolean = pc.match_substring_regex(others, _BOOLEAN)
    number = pc.and_(pc.match_substring_regex(others, JSON_NUMBER), pc.match_substring_regex(others, "[.eE]"))
    floats = _where(number, others).cast(pa.float64())
    booleans = pc.utf8_lower(_where(boolean, others)).cast(pa.bool_())
    text = pc.coalesce(_where(pc.invert(pc.or_(number, boolean)), others), _where(pc.invert(short), array))
    return [column for column in (integers, floats, booleans, text) if column.null_count < len(column)]


def _where(condition: pa.Array, array: pa.Array) -> pa.Array:
    return pc.if_else(pc.fill_null(condition, False), array, pa.scalar(None, array.type))


def _strings(data: bytes, width: int) -> tuple[list[pa.Array], list[str], list[str]]:
    """(columns as strings, reasons, refused records)."""
    try:
        data.decode("utf-8")
        return _by_arrow(data, width)
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return _by_python(data, width)


def _by_arrow(data: bytes, width: int) -> tuple[list[pa.Array], list[str], list[str]]:
    refused: list[str] = []

    def refuse(row: arrow_csv.InvalidRow) -> str:
        refused.append(row.text)
        return "skip"

    if not data.strip(b"\r\n"):
        return [pa.array([], pa.string()) for _ in range(width)], [], []
    names = [str(i) for i in range(width)]
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )
    columns = [pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string()) for column in table]
    return columns, [WRONG_FIELDS] * len(refused), refused


def _by_python(data: bytes, width: int) -> tuple[list[pa.Array], list[str], list[str]]:
    """The same, record by record, for blocks with bytes that are no UTF-8 or that Arrow refuses."""
    csv.field_size_limit(max(csv.field_size_limit(), len(data) + 1))
    rows, reasons, refused = [], [], []
    text = data.decode("utf-8", "surrogateescape")
    for row in csv.reader(io.StringIO(text, newline="")):
        if not row:
            continue
        record = ",".join(row)
        try:
            record.encode("utf-8")
        except UnicodeEncodeError:
            reasons.append("not UTF-8")
            refused.append(record.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
            continue
        if len(row) != width:
            reasons.append(WRONG_FIELDS)
            refused.append(record)
        else:
            rows.append(row)
    table = np.array(rows, dtype=object).reshape(len(rows), width)
    return [pa.array(table[:, i], pa.string()) for i in range(width)], reasons, refused
