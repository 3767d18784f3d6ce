"""Ops from files: what was asked, not yet what it means. Parsing the SQL and encoding bulk columns come later.

Reasons for which a row is no op: unknown op, no op, no id, bad id, id out of range, bad time, time out of range, sql is
not a string, no query, SQL beside bulk columns, bad NAME (a bulk column of the wrong type), and those of the format
(broken JSON, …).
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.op_schema import OP_NAMES
from nearcast.sources import values
from nearcast.sources.formats import FilePart, read_raw
from nearcast.sources.raw import Faults, Raw, reject_table
from nearcast.sources.records import columns_by_name

BEAT_COLUMNS = ("window_seconds", "sync_seconds")
PLACE_COLUMNS = ("min_lon", "min_lat", "max_lon", "max_lat", "lon", "lat", "radius_km")
TASTE_COLUMNS = ("alpha", "reach_km", "window_posts")
NUMBER_COLUMNS = (*PLACE_COLUMNS, *BEAT_COLUMNS, *TASTE_COLUMNS, "for_seconds", "k")
TEXT_COLUMNS = ("text", "overlaps", "polygon", "words")
QUERY_COLUMNS = (
    *PLACE_COLUMNS,
    *BEAT_COLUMNS,
    *TASTE_COLUMNS,
    *TEXT_COLUMNS,
)  # a subscription without SQL sets at least one of these
SAID_TWICE = "sql says all of a query: give it, or columns such as text and k, not both"
OP_FIELDS = ("op", "id", "ts", "sql")
OP_TEXT = frozenset(("op", "ts", "sql", *TEXT_COLUMNS))  # what CSV must not take for a number
_NEEDS_QUERY = ("subscribe", "search")
RAW_OPS = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("id_text", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("sql", pa.string()),
    ]
)


def read_ops(part: FilePart) -> tuple[pa.Table, pa.Table]:
    """(ops, rejects) of a part of a file."""
    return ops_of(read_raw(part, OP_TEXT, "id"))


def ops_of(raws: Iterable[Raw]) -> tuple[pa.Table, pa.Table]:
    """(ops, rejects) of raw rows.

    The ops have the columns of RAW_OPS, `ts` in microseconds, and then the file's other columns: NUMBER_COLUMNS as
    doubles, TEXT_COLUMNS as strings, the rest as they are. A row without an op that has SQL or a bulk column is a
    subscription.
    """
    ops, rejects = [RAW_OPS.empty_table()], [reject_table([], [])]
    for raw in raws:
        table, refused = normalise_ops(raw)
        ops.append(table)
        rejects += [raw.rejects, refused]
    return pa.concat_tables(ops, promote_options="permissive"), pa.concat_tables(rejects)


def normalise_ops(raw: Raw) -> tuple[pa.Table, pa.Table]:
    """(ops, rejects) of raw rows."""
    faults = Faults(raw.table.num_rows)
    fields = columns_by_name(raw.table, frozenset(raw.table.column_names) | set(OP_FIELDS))
    sql = values.strings(fields["sql"], faults, "sql is not a string")
    bulk = {name: _bulk_column(name, arrays, faults) for name, arrays in fields.items() if name not in OP_FIELDS}
    asks = values.is_set(sql)
    for name in {*NUMBER_COLUMNS, *TEXT_COLUMNS} & set(bulk):
        given = values.is_set(bulk[name])
        faults.mark(values.is_set(sql) & given, SAID_TWICE)
        asks = asks | given if name in QUERY_COLUMNS else asks

    op = pc.utf8_lower(pc.utf8_trim_whitespace(values.strings(fields["op"], faults, "unknown op")))
    faults.mark(~values.is_set(op) & ~asks, "no op")
    op = pc.fill_null(op, "subscribe")
    faults.mark(~values.mask(pc.is_in(op, pa.array(list(OP_NAMES)))), "unknown op")
    ids, id_texts = values.ids(fields["id"], faults)
    ts, timed = values.times(fields["ts"], faults, required=False)
    faults.mark(values.mask(pc.is_in(op, pa.array(_NEEDS_QUERY))) & ~asks, "no query")

    base = [op, ids, id_texts, pa.array(ts, mask=~timed), sql]
    schema = pa.schema([*RAW_OPS, *(pa.field(name, array.type) for name, array in bulk.items())])
    ops = pa.Table.from_arrays([*base, *bulk.values()], schema=schema)
    rejected = faults.rejected()
    if rejected.size:
        ops = ops.filter(pa.array(faults.codes == 0))
    return ops, reject_table(faults.reasons(), raw.records(rejected))


def _bulk_column(name: str, arrays: list[pa.Array], faults: Faults) -> pa.Array:
    """The one column of a name, from the columns of its several types."""
    rows = faults.codes.size
    if name in NUMBER_COLUMNS:
        found: pa.Array = pa.nulls(rows, pa.float64())
        for array in arrays:
            if pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
                found = pc.coalesce(found, pc.cast(array, pa.float64(), safe=False))
            else:
                faults.mark(values.is_set(array), f"bad {name}")
        return found
    if name in TEXT_COLUMNS:
        return values.strings(arrays, faults, f"bad {name}")
    if not arrays:
        return pa.nulls(rows)
    if len({array.type for array in arrays}) == 1:
        return pc.coalesce(*arrays)
    if {array.type for array in arrays} == {pa.int64(), pa.float64()}:
        return pc.coalesce(*(array.cast(pa.float64(), safe=False) for array in arrays))
    taken = values.is_set(arrays[0])
    for array in arrays[1:]:
        faults.mark(values.is_set(array) & ~taken, f"bad {name}")
    return arrays[0]
