"""Rows as people and programs see them: the columns of the SELECT, attributes under their own names, times as times."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, numbers
from nearcast.common.post_schema import attribute_of
from nearcast.storage.posts.derived import with_derived

TERM_LISTS = pa.list_(pa.struct([("term", pa.string()), ("count", pa.int64())]))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(micros: int) -> str:
    """A time as ISO 8601 in UTC, with as many digits as it needs."""
    try:
        moment = EPOCH + timedelta(microseconds=micros)
    except OverflowError:  # a subscription may end after the year 9999
        return f"{np.datetime64(micros, 'us')}Z"
    text = moment.strftime("%Y-%m-%dT%H:%M:%S") if moment.year > 999 else moment.isoformat()[:19]
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{text}{fraction}Z"


def post_rows(posts: pa.Table, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Posts as dictionaries; `columns` None for all that are stored. `ts` is in microseconds."""
    posts = with_derived(posts, columns or ())
    rows = []
    for record in records(posts):
        text = record.pop("id_text", None)
        row = {"id": record["id"] if text is None else text}
        row |= {name: record[name] for name in ("ts", "lon", "lat", "text") if name in record}
        for name, value in record.items():
            attribute = attribute_of(name)
            if attribute is None:
                continue
            key, kind = attribute
            if value is not None:
                row[key] = json.loads(value) if kind == "j" else value
            else:
                row.setdefault(key, None)
        rows.append(row if columns is None else {name: row.get(name) for name in columns})
    return rows


def records(posts: pa.Table) -> list[dict[str, Any]]:
    """`to_pylist`, but without pandas, which Arrow imports for columns of times (a second and more)."""
    times = {field.name for field in posts.schema if pa.types.is_timestamp(field.type)}
    columns = [column.cast(pa.int64()) if name in times else column for name, column in _named(posts)]
    records: list[dict[str, Any]] = pa.table(columns, posts.column_names).to_pylist()
    for record in records if times else ():
        for name in times:
            if record[name] is not None:
                record[name] = EPOCH + timedelta(microseconds=record[name])
    return records


def _named(table: pa.Table) -> list[tuple[str, pa.ChunkedArray]]:
    return list(zip(table.column_names, table.columns, strict=True))


def row_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The names that rows of all columns have, for posts with these columns of the model."""
    attributes = [attribute[0] for attribute in map(attribute_of, columns) if attribute is not None]
    return tuple(dict.fromkeys(("id", "ts", "lon", "lat", "text", *attributes)))


def json_texts(table: pa.Table) -> list[str]:
    """Each row of a table as a JSON object, times as text: as `json_row` would make them, a distinct value once."""
    columns = [_value_texts(column.combine_chunks()) for column in table.columns]
    if not columns:
        return ["{}"] * len(table)
    names = (json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in table.column_names)
    pattern = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
    return [pattern % values for values in zip(*columns, strict=True)]


def _value_texts(column: pa.Array) -> list[str]:
    kind = column.type
    if kind == TERM_LISTS and not column.null_count:
        return _term_texts(column)
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return [json.dumps(value, ensure_ascii=False) for value in column.to_pylist()]
    times = pa.types.is_timestamp(kind)
    encoded = (column.cast(pa.int64()) if times else column).dictionary_encode()
    values = encoded.dictionary.to_pylist()
    values = [iso(value) for value in values] if times else [None if v != v else v for v in values]
    texts = np.array([*(json.dumps(value, ensure_ascii=False) for value in values), "null"], object)
    return list(texts[encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)])


def _term_texts(column: pa.ListArray) -> list[str]:
    """Of lists of frequent terms, joined by Arrow: they are many, of few distinct words."""
    words, counts = column.flatten().flatten()
    encoded = words.dictionary_encode()
    distinct = [json.dumps(word, ensure_ascii=False) for word in encoded.dictionary.to_pylist()]
    quoted = pa.array(distinct, pa.string()).take(encoded.indices)
    items = pc.binary_join_element_wise('{"term": ', quoted, ', "count": ', counts.cast(pa.string()), "}", "")
    offsets = arrow(np.append(0, np.cumsum(numbers(column.value_lengths()), dtype=np.int32)).astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, items), ", ")
    return list(pc.binary_join_element_wise("[", joined, "]", "").to_pylist())


def json_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its times as text."""
    out = {}
    for name, value in row.items():
        if name in ("ts", "window_end") and isinstance(value, int):
            value = iso(value)
        elif isinstance(value, datetime):
            value = iso(round((value - EPOCH) / timedelta(microseconds=1)))
        elif isinstance(value, float) and value != value:
            value = None
        out[name] = value
    return out
