"""Raw ops → encoded ops (`common.op_schema.OPS`): SQL texts are parsed one by one, bulk columns all at once."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import chunk, frozen
from nearcast.common.errors import BadInput, QueryError
from nearcast.common.geo.shapes import EVERYWHERE, Region
from nearcast.common.kernels.hashing import hash_strings
from nearcast.common.kernels.lookup import digests
from nearcast.common.kernels.mix import fingerprints
from nearcast.common.op_schema import (
    AGGREGATES,
    BEGINNING,
    NEVER,
    OP_NAMES,
    OPS,
    QUERY_FIELDS,
    RANGE,
    RELEVANT,
    SEARCH,
    SUBSCRIBE,
    TERMS,
)
from nearcast.common.post_schema import REJECTS
from nearcast.common.queries import Query
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.bulk_encoding import TOO_LONG, encode_bulk
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import check_search, check_subscription, encode_query, parse
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.rows import flat_lists

NOTHING: dict[str, Any] = {
    "region_kind": EVERYWHERE, "min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0,
    "shape": [], "code": [], "since": BEGINNING, "until": NEVER, "life": NEVER, "predicates": None, "columns": None,
    "asks": RANGE, "k": 0, "at_lon": 0.0, "at_lat": 0.0, "window": 0, "beat": 0, "words": [], "taste": [],
}  # fmt: skip


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
        texts, kinds = raw["sql"].take(pa.array(rows)).to_pylist(), codes.take(pa.array(rows)).to_pylist()
        parts.append(
            (
                rows,
                _one_by_one(rows, lambda i: _encode_sql(texts[i], kinds[i], tokenizer, regions, longest), reasons),
            )
        )
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


def digests_of(queries: pa.Table) -> np.ndarray:
    """A hash of what each query means, taken before its words are ordered by frequency."""
    shape, shape_offsets = flat_lists(queries["shape"])
    code, code_offsets = flat_lists(queries["code"])
    numbers = [queries[name].to_numpy().view(np.uint64) for name in ("min_lon", "min_lat", "max_lon", "max_lat")]
    numbers += [queries[name].to_numpy().view(np.uint64) for name in ("since", "until", "life")]
    numbers.append(queries["region_kind"].to_numpy().astype(np.uint64))
    extra = np.zeros(len(queries), np.uint64)
    for salt, name in ((3, "predicates"), (5, "columns")):
        if queries[name].null_count < len(queries):
            texts = chunk(queries[name])
            data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
            offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
            hashed = hash_strings(data, offsets.astype(np.int64)).view(np.uint64)
            extra += np.where(texts.is_null().to_numpy(zero_copy_only=False), np.uint64(0), hashed * np.uint64(salt))
    asks, k, lon, lat = (queries[name].to_numpy() for name in ("asks", "k", "at_lon", "at_lat"))
    if asks.any():
        terms = (asks == TERMS) | (asks == AGGREGATES)
        lon = np.where(terms, queries["window"].to_numpy(), lon)
        lat = np.where(terms, queries["beat"].to_numpy(), lat)
        about = fingerprints(*(frozen(each) for each in (k, asks != RANGE, asks.astype(np.int64), lon, lat)))
        extra += np.where(asks != RANGE, about, np.uint64(0))
    if (asks == RELEVANT).any():
        relevant = np.flatnonzero(asks == RELEVANT)
        extra[relevant] = _tastes_digested(queries, relevant)
    return digests(tuple(frozen(each) for each in numbers), shape, shape_offsets, code, code_offsets, extra)


def _tastes_digested(queries: pa.Table, rows: np.ndarray) -> np.ndarray:
    """A hash of what is particular to queries for the most relevant; no others have words or a taste."""
    words, offsets = flat_lists(queries["words"])
    taste = flat_lists(queries["taste"])[0].reshape(-1, 4).T
    place = (queries[name].to_numpy()[rows].astype(np.float64) for name in ("asks", "k", "at_lon", "at_lat"))
    numbers = tuple(frozen((each + 0.0).view(np.uint64)) for each in (*place, *taste))  # -0.0 and 0.0 are one place
    nowhere, none = frozen(np.empty(0)), np.zeros(len(rows) + 1, np.uint32)
    return digests(numbers, nowhere, none, words, np.append(offsets[rows], offsets[-1]), np.zeros(len(rows), np.uint64))


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
    sql: str, kind: int, tokenizer: Tokenizer, regions: Mapping[str, Region] | None, longest: int | None
) -> dict[str, Any]:
    statement = parse(sql, tokenizer, regions)
    if kind == SUBSCRIBE:
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
        encoded = encode_query(anytime)
    except QueryError:  # more than a subscription may ask
        return dict(NOTHING)
    if not isinstance(query, RangeQuery | NearestQuery | RelevantQuery):
        encoded |= {"asks": TERMS, "k": getattr(query, "k", 0)}
    return encoded | {"window": looked_back(query)}


def looked_back(query: Query) -> int:
    """The length of a search's window in microseconds, NEVER where it has no beginning or no length that is known."""
    if isinstance(query, RelevantQuery) and query.window is not None:
        return query.window
    begin, end = query.after or query.since, query.until
    if begin and begin.ago is not None and (end is None or end.ago is not None):
        return max(begin.ago - (end.ago or 0 if end else 0), 0)
    return max(end.at - begin.at, 0) if begin and end and begin.at is not None and end.at is not None else NEVER


def check_window(query: Query, longest: int | None) -> None:
    """Standing windows may not be longer than posts are kept."""
    window = query.after.ago if isinstance(query, TermsQuery | AggregateQuery) and query.after else None
    window = query.window if isinstance(query, RelevantQuery) else window
    if longest is not None and window is not None and window > longest:
        raise BadInput(TOO_LONG)
