"""Posts as Arrow columns.

A post has an `id` (an integer or a string, reported back as given), a time, a place, a text and attributes.

- An integer id is its own `id`, with `id_text` null; a string id is kept in `id_text`, and `id` is a 64-bit hash of it.
- Times are microseconds since the epoch, UTC.
- An attribute's type belongs to the value, not to the stream: `price` may be 5 in one post and "5" in another. So each
  attribute has one column per kind of value, `price:i` and `price:s`, of which at most one is set in a post. Tables
  with different attributes can be joined end to end without converting anything.
"""

import pyarrow as pa

BASE_FIELDS: tuple[pa.Field, ...] = (
    pa.field("id", pa.int64(), nullable=False),
    pa.field("id_text", pa.string()),
    pa.field("ts", pa.int64(), nullable=False),
    pa.field("lon", pa.float64(), nullable=False),
    pa.field("lat", pa.float64(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
)
BASE_NAMES = frozenset(field.name for field in BASE_FIELDS)

ATTRIBUTE_KINDS: dict[str, pa.DataType] = {
    "i": pa.int64(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "s": pa.string(),
    "t": pa.timestamp("us", tz="UTC"),
    "j": pa.string(),  # a list or an object, as JSON text
}


def attribute_column(name: str, kind: str) -> str:
    """The column that holds the values of one kind of the attribute `name`."""
    return f"{name}:{kind}"


def attribute_of(column: str) -> tuple[str, str] | None:
    """(name, kind) of an attribute column, or None for a column that is no attribute."""
    name, colon, kind = column.rpartition(":")
    return (name, kind) if colon and kind in ATTRIBUTE_KINDS else None


def no_rows(schema: pa.Schema) -> pa.Table:
    """An empty table. `schema.empty_table()` imports pandas, which takes longer than most searches."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


REJECTS = pa.schema([pa.field("reason", pa.string(), nullable=False), pa.field("raw", pa.string(), nullable=False)])
