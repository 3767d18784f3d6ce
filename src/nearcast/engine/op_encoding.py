"""Raw ops → encoded ops (`common.op_schema.OPS`): SQL texts are parsed one by one, bulk columns all at once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput, QueryError
from nearcast.common.geo.shapes import Region
from nearcast.common.op_schema import NEVER, OP_NAMES, OPS, QUERY_FIELDS, SEARCH, SUBSCRIBE
from nearcast.common.post_schema import REJECTS
from nearcast.common.queries import Query
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.bulk_encoding import encode_bulk
from nearcast.engine.empty_columns import NOTHING, default
from nearcast.engine.query_digests import digests_of
from nearcast.language import check_search, check_subscription, encode_query, parse
from nearcast.language.bulk_columns import TOO_LONG
from nearcast.language.known_kinds import role_of
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.rows import flat_lists


def encode_ops(
    raw: pa.Table, tokenizer: Tokenizer, regions: Mapping[str, Region] | None = None, longest: int | None = None
) -> tuple[pa.Table, pa.Table]:
    """(ops, rejects). The order of the ops is kept; one bad query rejects itself and nothing else.

    `longest` is the length that the window of a subscription may have at most (`--retention`).
    """
    if not len(raw):
        return OPS.empty_table(), REJECTS.empty_table()
    codes = pc.index_in(raw["op"], pa.array(list(OP_NAMES))).cast(pa.uint8())
    asks = pc.is_in(codes, pa.array([SUBSCRIBE, SEARCH], pa.uint8()))
    has_sql = pc.is_valid(raw["sql"])
    bulk = pc.and_(asks, pc.invert(has_sql)).to_numpy()
    by_sql = pc.and_(asks, has_sql).to_numpy()
    reasons: dict[int, str] = {}
    parts: list[tuple[np.ndarray, pa.Table]] = []
    rest = np.flatnonzero(~bulk & ~by_sql)
    if len(rest):
        parts.append((rest, _nothing(len(rest))))
    if by_sql.any():
        rows = np.flatnonzero(by_sql)
        texts, codes_of = (column.take(pa.array(rows)).to_pylist() for column in (raw["sql"], codes))
        encode = partial(_encode_sql, tokenizer=tokenizer, regions=regions, longest=longest)
        parts.append((rows, _one_by_one(rows, lambda i: encode(texts[i], codes_of[i]), reasons)))
    if bulk.any():
        rows = np.flatnonzero(bulk)
        some = raw if len(rows) == len(raw) else raw.take(pa.array(rows))
        parts.append((rows, encode_bulk(some, tokenizer, rows, reasons, longest)))
    queries = pa.concat_tables([table for _, table in parts])
    if len(parts) > 1:
        queries = queries.take(pa.array(np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")))
    base = [codes, raw["id"], raw["id_text"], raw["ts"], raw["sql"], pa.array(digests_of(queries))]
    ops = pa.table([*base, *queries.columns], schema=OPS)
    if not reasons:
        return ops, REJECTS.empty_table()
    bad = np.array(sorted(reasons))
    kept = np.setdiff1d(np.arange(len(raw)), bad)
    return ops.take(pa.array(kept)), reject_rows(raw, bad, [reasons[i] for i in bad])


def file_ops(ops: pa.Table, frequencies: tuple[np.ndarray, np.ndarray]) -> pa.Table:
    """The ops with each conjunction's rarest word marked as the one it is filed under."""
    code, offsets = flat_lists(ops["code"])
    filed = pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), pa.array(file_codes(code, frozen(offsets), *frequencies))
    )
    return ops.set_column(ops.schema.get_field_index("code"), OPS.field("code"), filed)


def _nothing(count: int) -> pa.Table:
    """What ops that ask nothing carry in place of a query."""
    return pa.table([default(field, count) for field in QUERY_FIELDS], schema=pa.schema(QUERY_FIELDS))


def reject_rows(raw: pa.Table, rows: np.ndarray, reasons: list[str]) -> pa.Table:
    """Rejects with the raw op as JSON."""
    records = []
    for record in raw.take(pa.array(rows)).to_pylist():
        record["id"] = record.pop("id_text", None) or record["id"]
        records.append(json.dumps({k: v for k, v in record.items() if v is not None}, default=str, ensure_ascii=False))
    return pa.table([reasons, records], schema=REJECTS)


def _one_by_one(rows: np.ndarray, encode: Callable[[int], dict[str, Any]], reasons: dict[int, str]) -> pa.Table:
    encoded = []
    for i, row in enumerate(rows):
        try:
            encoded.append(encode(i))
        except BadInput as error:
            reasons[int(row)] = str(error)
            encoded.append(NOTHING)
    return pa.Table.from_pylist(encoded, schema=pa.schema(QUERY_FIELDS))


def _encode_sql(
    sql: str, op: int, tokenizer: Tokenizer, regions: Mapping[str, Region] | None, longest: int | None
) -> dict[str, Any]:
    statement = parse(sql, tokenizer, regions)
    if op == SUBSCRIBE:
        check_subscription(statement)
        check_window(statement.query, longest)
        return encode_query(statement.query)
    check_search(statement)
    return encode_search(statement.query)


def encode_search(query: Query) -> dict[str, Any]:
    """Where and what a search asks, and as its `window` how far it looks back: for statistics. It is planned from its
    text when it is answered.
    """
    anytime = replace(query, after=None, since=None, until=None)
    try:
        return encode_query(anytime) | {"window": looked_back(query)}
    except QueryError:  # more than a subscription may ask
        return dict(NOTHING)


def looked_back(query: Query) -> int:
    """The length of a search's window in microseconds, NEVER where it has no beginning or no length that is known."""
    begin, end = query.after or query.since, query.until
    if begin is None and end is None:
        window = role_of(query).window(query)
        return NEVER if window is None else window
    if begin and begin.ago is not None and (end is None or end.ago is not None):
        return max(begin.ago - (end.ago or 0 if end else 0), 0)
    return max(end.at - begin.at, 0) if begin and end and begin.at is not None and end.at is not None else NEVER


def check_window(query: Query, longest: int | None) -> None:
    """Standing windows may not be longer than posts are kept."""
    window = role_of(query).window(query)
    if longest is not None and window is not None and window > longest:
        raise BadInput(TOO_LONG)
