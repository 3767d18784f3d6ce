"""Aggregates by DuckDB: the same posts in a table, and the SQL that means what an AggregateQuery means.

A column of a table has one type, and an attribute may have values of several. So each attribute is five columns
(`price:i`, `:f`, `:t`, `:s`, `:b`), and what is grouped by, compared or ordered by is a `Value`: a rank, by which
numbers come before times before strings before truth values, and a column for each. Words are lists of strings, phrases
parts of a string; regions are spelled out.

Polygons have no equivalent (`Inexpressible`); sums are of doubles, so only those that are exact in doubles agree to the
last digit.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, fields
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.query import AggregateQuery, Measure
from nearcast.sources.raw import json_text
from tests.oracles.aggregates import EPOCH, MICROSECOND
from tests.oracles.duck_values import (
    NUMBER,
    PARTS,
    STRING,
    TIME,
    TRUTH,
    Inexpressible,
    Value,
    all_of,
    as_columns,
    attribute,
    attribute_columns,
    compared,
    listed,
    of_columns,
    text,
    where,
)

__all__ = ["Duck", "Inexpressible", "duck_sql"]

Post = Mapping[str, Any]
Row = dict[str, Any]

TYPES = {"i": pa.int64(), "f": pa.float64(), "t": pa.int64(), "s": pa.string(), "b": pa.bool_()}

_database = duckdb.connect(config={"threads": 1})


class Duck:
    """Posts in a table of their own, to be asked again and again."""

    def __init__(self, posts: Sequence[Post], tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.table = posts_table(posts, tokenizer)
        self.connection = _database.cursor()
        self.connection.register("posts", self.table)

    def rows(self, query: AggregateQuery, clock: int, stop_words: Collection[str] = ()) -> list[Row]:
        """The rows of the answer, in order."""
        stop = [word for each in stop_words for word, _ in self.tokenizer.tokens(each)]
        sql = duck_sql(query, clock, self.table.column_names, stop)
        cursor = self.connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        records = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        return [{o.name: _read(record, n) for n, o in enumerate(query.outputs)} for record in records]


# -- posts -------------------------------------------------------------------------------------------------------------


def posts_table(posts: Sequence[Post], tokenizer: Tokenizer) -> pa.Table:
    """`terms` are the distinct words and tags; `spoken` is the words in a row, with a blank on either side."""
    texts = [post.get("text") or "" for post in posts]
    words = [[word for word, _ in tokenizer.tokens(text)] for text in texts]
    spoken = [f" {' '.join(word for word in row if word[0] not in '#@')} " for row in words]
    columns: dict[str, pa.Array] = {
        "ts": pa.array([post["ts"] for post in posts], pa.int64()),
        "lon": pa.array([post["lon"] for post in posts], pa.float64()),
        "lat": pa.array([post["lat"] for post in posts], pa.float64()),
        "text": pa.array(texts, pa.string()),
        "terms": pa.array([sorted(set(row)) for row in words], pa.list_(pa.string())),
        "spoken": pa.array(spoken, pa.string()),
    }
    for name in sorted({name for post in posts for name in post} - {"id", "ts", "lon", "lat", "text"}):
        values = [_stored(post.get(name)) for post in posts]
        for kind, column in TYPES.items():
            of_kind = [value if of == kind else None for of, value in values]
            if any(value is not None for value in of_kind):
                columns[f"{name}:{kind}"] = pa.array(of_kind, column)
    return pa.table(columns)


def _stored(value: Any) -> tuple[str, Any]:
    match value:
        case bool():
            return "b", value
        case int():
            return "i", value
        case float():
            return "f", None if value != value else value
        case datetime():
            return "t", (value - EPOCH) // MICROSECOND
        case list() | dict():
            return "s", json_text(value)
    return "s", value


def _read(record: Row, number: int) -> Any:
    rank, value, rest, time, string, truth, terms = (record[f"o{number}.{field.name}"] for field in fields(Value))
    if terms is not None:
        return terms
    if rank is None:
        return None
    if rank == NUMBER:
        return int(value) + rest if float(value).is_integer() else value
    return {TIME: time is not None and EPOCH + timedelta(microseconds=time), STRING: string, TRUTH: truth}[rank]


# -- the whole query ---------------------------------------------------------------------------------------------------


def duck_sql(query: AggregateQuery, clock: int, stored: Collection[str], stop: Collection[str] = ()) -> str:
    """Posts that meet the conditions; their groups; the terms of each; then HAVING, order and limit."""
    asked: list[Measure | str] = [each.value for each in query.outputs]
    asked += [each.value for each in query.having]
    asked += [each.value for each in query.order]
    measures = {each: f"m{n}" for n, each in enumerate(dict.fromkeys(e for e in asked if isinstance(e, Measure)))}
    tops = {each: name for each, name in measures.items() if each.function == "topk"}
    measured = {each.of for each in measures if each.of is not None and each not in tops}
    names = {name: f"a{n}" for n, name in enumerate(sorted({*query.group_by, *measured}))}
    attributes = sorted({*names, *(predicate.name for predicate in query.predicates)} - {"ts"})

    def value(of: Measure | str) -> Value:
        if isinstance(of, str):
            return of_columns(f"grouped.{names[of]}")
        return Value(rank="NULL", list=f"coalesce({tops[of]}_list, [])") if of in tops else of_columns(measures[of])

    valued = [each for name in attributes for each in attribute_columns(name, stored)]
    found = [each for name, column in names.items() for each in as_columns(_value_of(name), column)]
    sums = [
        each for of, column in measures.items() if of not in tops for each in as_columns(_measure(of, names), column)
    ]
    lists = [
        f"list({{'term': term, 'count': n}} ORDER BY place) FILTER (place <= {of.k}) AS {column}_list"
        for of, column in tops.items()
    ]
    keys = [f"{names[name]}_{part}" for name in query.group_by for part in PARTS]
    grouping, partition = (f"{words} BY {', '.join(keys)}" if keys else "" for words in ("GROUP", "PARTITION"))
    having = [compared(each.op, value(each.value), each.literal) for each in query.having]
    order = [value(each.value).ordered(each.descending) for each in query.order]
    order += [value(name).ordered(False) for name in query.group_by]
    outputs = [
        f'{expression} AS "o{n}.{field.name}"'
        for n, each in enumerate(query.outputs)
        for field, expression in zip(fields(Value), astuple(value(each.value)), strict=True)
    ]
    words = listed(*map(text, stop))
    counting = f""",
    said AS (SELECT {listed(*keys, "unnest(terms) AS term")} FROM found),
    counted AS (SELECT {listed(*keys, "term", "count(*) AS n")} FROM said
                WHERE NOT list_contains([{words}]::VARCHAR[], term) GROUP BY {listed(*keys, "term")}),
    placed AS (SELECT *, row_number() OVER ({partition} ORDER BY n DESC, term) AS place FROM counted),
    top AS (SELECT {listed(*keys, *lists)} FROM placed {grouping})"""
    joined = f"LEFT JOIN top ON {all_of(f'grouped.{key} IS NOT DISTINCT FROM top.{key}' for key in keys)}"
    return f"""
    WITH valued AS (SELECT {listed("ts", "lon", "lat", "terms", "spoken", *valued)} FROM posts),
    found AS (SELECT {listed("ts", "terms", *found)} FROM valued WHERE {all_of(where(query, clock))}),
    grouped AS (SELECT {listed(*keys, "count(*) AS posts", *sums)} FROM found {grouping}){counting if tops else ""}
    SELECT {listed(*outputs)} FROM grouped {joined if tops else ""}
    WHERE {all_of(having)}
    {f"ORDER BY {listed(*order)}" if order else ""} {f"LIMIT {query.limit}" if query.limit is not None else ""}
    """


def _value_of(name: str) -> Value:
    return Value(rank=str(TIME), time="ts") if name == "ts" else attribute(name)


def _measure(measure: Measure, names: Mapping[str, str]) -> Value:
    """Over the posts of a group."""
    if measure.of is None:
        return Value(rank=str(NUMBER), number="count(*)::DOUBLE")
    a = names[measure.of]
    numbers = f"FILTER ({a}_rank = {NUMBER})"
    many = f"count(*) {numbers}"
    total = f"(fsum({a}_number) {numbers} + (sum({a}_rest) {numbers})::DOUBLE)"
    if measure.function == "count":
        return Value(rank=str(NUMBER), number=f"count({a}_rank)::DOUBLE")
    if measure.function in ("sum", "avg"):
        number = total if measure.function == "sum" else f"{total} / {many}"
        return Value(rank=f"CASE WHEN {many} > 0 THEN {NUMBER} END", number=number)
    times = f"count(*) FILTER ({a}_rank = {TIME})"
    first, second = (NUMBER, TIME) if measure.function == "min" else (TIME, NUMBER)
    has = {NUMBER: many, TIME: times}
    best = {NUMBER: f"{measure.function}({a}_number) {numbers}"}
    best[TIME] = f"{measure.function}({a}_time) FILTER ({a}_rank = {TIME})"
    best[second] = f"CASE WHEN {has[first]} = 0 THEN {best[second]} END"
    rank = f"CASE WHEN {has[first]} > 0 THEN {first} WHEN {has[second]} > 0 THEN {second} END"
    return Value(rank=rank, number=best[NUMBER], time=best[TIME])
