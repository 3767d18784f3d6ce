"""Raw columns to posts: every way of writing an id, a time, a place and attributes, brought to columns as in
`post_schema`.

The reasons for which a row is no post are short and stable: no id, bad id, id out of range, no time, bad time, time out
of range, no coordinates, bad coordinates, latitude out of range, longitude out of range, text is not a string, text too
long, not UTF-8.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.errors import BadInput
from nearcast.common.post_schema import ATTRIBUTE_KINDS, BASE_FIELDS, attribute_column
from nearcast.sources import values
from nearcast.sources.raw import Faults, Raw, json_text, plain, python_values, records_as_json, reject_table

POST_FIELDS = ("id", "ts", "lat", "lon", "text")
NO_MAPPING: Mapping[str, str] = {}
MAX_ROWS = 1 << 17


@dataclass(frozen=True)
class Normalised:
    """The posts, and which rows of the input are none, with their reasons."""

    posts: pa.Table
    rejected: np.ndarray
    reasons: list[str]


def normalise(table: pa.Table, mapping: Mapping[str, str] = NO_MAPPING) -> tuple[pa.Table, pa.Table]:
    """(posts, rejects) of a table of any names and types; a rejected row's raw record is the row as JSON.

    `mapping` gives the source's name of a field, {"ts": "created_at"}. Every other column is an attribute. The posts
    have the columns of `common.post_schema`: the base fields, then the attributes sorted by name, all-null ones
    dropped.
    """
    rows = normalise_rows(table, mapping)
    return rows.posts, reject_table(rows.reasons, records_as_json(table, rows.rejected))


def posts_of(raws: Iterable[Raw], mapping: Mapping[str, str] = NO_MAPPING) -> Iterator[tuple[pa.Table, pa.Table]]:
    """(posts, rejects) of raw rows, in pieces of at most 131,072 posts."""
    for raw in raws:
        rows = normalise_rows(raw.table, mapping)
        rejects = raw.rejects
        if rows.rejected.size:
            rejects = pa.concat_tables([rejects, reject_table(rows.reasons, raw.records(rows.rejected))])
        for at in range(0, max(rows.posts.num_rows, 1), MAX_ROWS):
            yield rows.posts.slice(at, MAX_ROWS), rejects if at == 0 else rejects.slice(0, 0)


def normalise_rows(table: pa.Table, mapping: Mapping[str, str] = NO_MAPPING) -> Normalised:
    """What `normalise` does, without the raw records."""
    sources = source_names(mapping)
    faults = Faults(table.num_rows)
    fields = columns_by_name(table, sources.values())

    ids, id_texts = values.ids(fields[sources["id"]], faults)
    ts, _ = values.times(fields[sources["ts"]], faults)
    lat = values.coordinates(fields[sources["lat"]], faults)
    lon = values.coordinates(fields[sources["lon"]], faults)
    faults.mark(np.abs(lat) > 90, "latitude out of range")
    faults.mark(np.abs(lon) > 180, "longitude out of range")
    text = values.texts(fields[sources["text"]], faults)

    base = [ids, id_texts, pa.array(ts), pa.array(lon), pa.array(lat), text]
    posts = with_attributes(base, table, frozenset(sources.values()))
    rejected = faults.rejected()
    if rejected.size:
        posts = _without_empty_attributes(posts.filter(pa.array(faults.codes == 0)))
    return Normalised(posts, rejected, faults.reasons())


def source_names(mapping: Mapping[str, str]) -> dict[str, str]:
    """The source's name of each field of a post."""
    for name in mapping:
        if name not in POST_FIELDS:
            raise BadInput(f"cannot map {name!r}: the fields of a post are {', '.join(POST_FIELDS)}")
    return {name: mapping.get(name, name) for name in POST_FIELDS}


def text_fields(mapping: Mapping[str, str]) -> tuple[frozenset[str], str]:
    """The source's names of the fields that are read as text, and of the id."""
    sources = source_names(mapping)
    return frozenset(sources[name] for name in ("ts", "lat", "lon", "text")), sources["id"]


def columns_by_name(table: pa.Table, names: Collection[str]) -> dict[str, list[pa.Array]]:
    """The columns with each of these names: none, one, or one for each type of value."""
    fields: dict[str, list[pa.Array]] = {name: [] for name in names}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in fields and not pa.types.is_null(column.type):
            fields[name].append(plain(column))
    return fields


def with_attributes(base: list[pa.Array], table: pa.Table, taken: frozenset[str]) -> pa.Table:
    """The base columns and, sorted, a column for each kind of value of each attribute of the table."""
    columns: dict[str, pa.Array] = {}
    given: defaultdict[str, list[pa.Array]] = defaultdict(list)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name not in taken and column.null_count < len(column):
            given[name] += _fitting(plain(column))
    for name, arrays in given.items():
        free: np.ndarray | None = None  # rows in which no earlier column of that name is set
        for array in arrays:
            kind, converted = attribute(array)
            if free is not None:
                converted = pc.if_else(pa.array(free), converted, pa.scalar(None, converted.type))
            if len(arrays) > 1:
                free = ~values.is_set(converted) if free is None else free & ~values.is_set(converted)
            if converted.null_count < len(converted):
                column_name = attribute_column(name, kind)
                earlier = columns.get(column_name)
                columns[column_name] = converted if earlier is None else pc.coalesce(earlier, converted)
    names = sorted(columns)
    fields = [pa.field(name, columns[name].type) for name in names]
    return pa.Table.from_arrays([*base, *(columns[name] for name in names)], schema=pa.schema([*BASE_FIELDS, *fields]))


def attribute(array: pa.Array) -> tuple[str, pa.Array]:
    """(kind, values) of an attribute column. NaN is null, bytes are hex text, a list or a struct is JSON text."""
    kind = _kind(array)
    target = ATTRIBUTE_KINDS[kind]
    if kind == "f":
        numbers = pc.cast(array, target, safe=False)
        return kind, pc.if_else(pc.is_nan(numbers), pa.scalar(None, target), numbers)
    if kind == "t":
        return kind, _timestamps(array)
    if kind == "j":
        if isinstance(array, pa.ExtensionArray):
            return kind, array.storage.cast(target)
        return kind, pa.array([None if v is None else json_text(v) for v in python_values(array)], target)
    if kind == "s" and not pa.types.is_string(array.type):
        return kind, pa.array([_as_text(v) for v in python_values(array)], target)
    return kind, array if array.type == target else array.cast(target)


def _fitting(array: pa.Array) -> list[pa.Array]:
    """The array, or where it has integers beyond int64, those that fit and the others as floats."""
    if not pa.types.is_uint64(array.type) or (pc.max(array).as_py() or 0) < 2**63:
        return [array]
    fits = pc.less(array, pa.scalar(2**63, pa.uint64()))
    nothing = pa.scalar(None, pa.uint64())
    beyond = pc.if_else(fits, nothing, array)
    return [pc.if_else(fits, array, nothing), pc.cast(beyond, pa.float64(), safe=False)]


def _kind(array: pa.Array) -> str:
    t = array.type
    if pa.types.is_integer(t):
        return "i"
    if pa.types.is_floating(t) or pa.types.is_decimal(t):
        return "f"
    if pa.types.is_boolean(t):
        return "b"
    if pa.types.is_timestamp(t) or pa.types.is_date(t):
        return "t"
    if pa.types.is_nested(t) or isinstance(t, pa.JsonType):
        return "j"
    return "s"


def _timestamps(array: pa.Array) -> pa.Array:
    """Times of any unit as microseconds UTC; one outside the years 1 to 9999 is null."""
    scratch = Faults(len(array))
    us, found = values.times([array], scratch, required=False)
    return pa.array(us, mask=~found | (scratch.codes > 0)).cast(ATTRIBUTE_KINDS["t"])


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else str(value)


def _without_empty_attributes(posts: pa.Table) -> pa.Table:
    base = len(BASE_FIELDS)
    empty = [i for i in range(base, posts.num_columns) if posts.column(i).null_count == posts.num_rows]
    return posts.select([i for i in range(posts.num_columns) if i not in empty]) if empty else posts
