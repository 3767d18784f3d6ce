"""Aggregates by DuckDB: the same posts in a table, and the SQL that means what an AggregateQuery means.

A column of a table has one type, and an attribute may have values of several. So each attribute is five columns
(`price:i`, `:f`, `:t`, `:s`, `:b`), and what is grouped by, compared or ordered by is a `Value`: a rank, by which
numbers come before times before strings before truth values, and a column for each. Words are lists of strings, phrases
parts of a string; regions are spelt out.

Polygons have no equivalent (`Inexpressible`); sums are of doubles, so only those that are exact in doubles agree to the
last digit.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from nearcast.model.expressions import And, Expression, Not, Or, Phrase
from nearcast.model.queries import AggregateQuery, Measure, Predicate, Scalar, TimeBound
from nearcast.model.regions import Circle, Polygon, Rect, Region
from nearcast.sources.raw import json_text
from nearcast.text.tokenizer import Tokenizer
from tests.oracles.aggregates import BASE32, EPOCH, MICROSECOND

Post = Mapping[str, Any]
Row = dict[str, Any]

TYPES = {"i": pa.int64(), "f": pa.float64(), "t": pa.int64(), "s": pa.string(), "b": pa.bool_()}
NUMBER, TIME, STRING, TRUTH = range(4)


class Inexpressible(Exception):
    """DuckDB has no such thing."""


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


# -- values ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """Expressions of which the one that `rank` says has the value; a number is `number` + `rest`, to 64 bits."""

    rank: str
    number: str = "NULL::DOUBLE"
    rest: str = "0::HUGEINT"
    time: str = "NULL::BIGINT"
    string: str = "NULL::VARCHAR"
    truth: str = "NULL::BOOLEAN"
    list: str = "NULL"

    @property
    def parts(self) -> tuple[str, ...]:
        """What tells two values apart, and in which order they come."""
        return self.rank, self.number, self.rest, self.time, self.string, self.truth

    def ordered(self, descending: bool) -> str:
        return ", ".join(f"{part} {'DESC' if descending else 'ASC'} NULLS LAST" for part in self.parts)


def _read(record: Row, number: int) -> Any:
    rank, value, rest, time, string, truth, terms = (record[f"o{number}.{field.name}"] for field in fields(Value))
    if terms is not None:
        return terms
    if rank is None:
        return None
    if rank == NUMBER:
        return int(value) + rest if float(value).is_integer() else value
    return {TIME: time is not None and EPOCH + timedelta(microseconds=time), STRING: string, TRUTH: truth}[rank]


def _attribute(name: str, columns: Collection[str]) -> Value:
    """Of one post: its own value, or else the derived one."""
    own = {kind: f'"{name}:{kind}"' for kind in TYPES if f"{name}:{kind}" in columns}
    kinds = dict(own)
    if name in DERIVED:
        kind, made = DERIVED[name]
        missing = " AND ".join(f"{column} IS NULL" for column in own.values()) or "TRUE"
        kinds[kind] = f"CASE WHEN {missing} THEN {made} ELSE {own.get(kind, 'NULL')} END"
    i, f, t, s, b = (kinds.get(kind, default) for kind, default in NULLS.items())
    return Value(
        rank=f"CASE WHEN ({i}) IS NOT NULL OR ({f}) IS NOT NULL THEN {NUMBER} WHEN ({t}) IS NOT NULL THEN {TIME}"
        f" WHEN ({s}) IS NOT NULL THEN {STRING} WHEN ({b}) IS NOT NULL THEN {TRUTH} END",
        number=f"coalesce(({i})::DOUBLE, ({f}) + 0.0)",
        rest=f"coalesce(({i})::HUGEINT - (({i})::DOUBLE)::HUGEINT, 0)",
        time=t,
        string=s,
        truth=b,
    )


NULLS = {"i": "NULL::BIGINT", "f": "NULL::DOUBLE", "t": "NULL::BIGINT", "s": "NULL::VARCHAR", "b": "NULL::BOOLEAN"}


def _cell() -> str:
    """A geohash of five characters: the bits of the column and of the row of a cell in turn."""
    across, up = (f"least(floor({degrees} / (45.0::DOUBLE / 1024))::INT + {half}, {2 * half - 1})" for degrees, half in
                  (("lon", 4096), ("lat", 2048)))  # fmt: skip
    letters = []
    for character in range(5):
        bits = [
            f"(({across} >> {12 - bit // 2}) & 1)" if bit % 2 == 0 else f"(({up} >> {11 - bit // 2}) & 1)"
            for bit in range(5 * character, 5 * character + 5)
        ]
        number = " + ".join(f"{bit} * {16 >> place}" for place, bit in enumerate(bits))
        letters.append(f"substr('{BASE32}', 1 + {number}, 1)")
    return " || ".join(letters)


DERIVED = {
    "length": ("i", "length(text)"),
    "date": ("t", "epoch_us(date_trunc('day', make_timestamp(ts)))"),
    "hour": ("t", "epoch_us(date_trunc('hour', make_timestamp(ts)))"),
    "minute": ("t", "epoch_us(date_trunc('minute', make_timestamp(ts)))"),
    "weekday": ("i", "isodow(make_timestamp(ts))"),
    "cell": ("s", _cell()),
}

# -- the whole query ---------------------------------------------------------------------------------------------------


def duck_sql(query: AggregateQuery, clock: int, columns: Collection[str], stop: Collection[str] = ()) -> str:
    """Posts that meet the conditions; their groups; the terms of each; then HAVING, order and limit."""
    asked: list[Measure | str] = [each.value for each in query.outputs]
    asked += [each.value for each in query.having]
    asked += [each.value for each in query.order]
    measures = {each: n for n, each in enumerate(dict.fromkeys(each for each in asked if isinstance(each, Measure)))}
    measured = {each.of for each in measures if each.of is not None and each.function != "topk"}
    names = {name: f"a{n}" for n, name in enumerate(sorted({*query.group_by, *measured}))}
    found = [f"{expression} AS {names[name]}_{part}" for name in names for part, expression in
             zip(PARTS, _value_of(name, columns).parts, strict=True)]  # fmt: skip
    where = " AND ".join(f"({each})" for each in _where(query, clock, columns)) or "TRUE"
    keys = [f"{names[name]}_{part}" for name in query.group_by for part in PARTS]
    by = ", ".join(keys)
    grouping = f"GROUP BY {by}" if keys else ""
    sums = ", ".join(f"{expression} AS m{n}_{part}" for each, n in measures.items() if each.function != "topk"
                     for part, expression in zip(PARTS, _measure(each, names).parts, strict=True))  # fmt: skip
    lists = [f"list({{'term': term, 'count': n}} ORDER BY place) FILTER (place <= {each.k}) AS m{n}_list"
             for each, n in measures.items() if each.function == "topk"]  # fmt: skip
    tops = ", ".join(["count(*) AS words", *lists])
    listed = ", ".join(map(_text, stop)) or "NULL"
    same = " AND ".join(f"grouped.{key} IS NOT DISTINCT FROM top.{key}" for key in keys) or "TRUE"

    def value(of: Measure | str) -> Value:
        if isinstance(of, str):
            return Value(*(f"grouped.{names[of]}_{part}" for part in PARTS))
        if of.function == "topk":
            return Value(rank="NULL", list=f"coalesce(m{measures[of]}_list, [])")
        return Value(*(f"m{measures[of]}_{part}" for part in PARTS))

    outputs = [f'{expression} AS "o{n}.{field.name}"' for n, each in enumerate(query.outputs)
               for field, expression in zip(fields(Value), astuple(value(each.value)), strict=True)]  # fmt: skip
    having = [_compared(each.op, value(each.value), each.literal) for each in query.having]
    order = [value(each.value).ordered(each.descending) for each in query.order]
    order += [value(name).ordered(False) for name in query.group_by]
    keyed = f"{by}, " if keys else ""
    partition = f"PARTITION BY {by} " if keys else ""
    return f"""
    WITH found AS (SELECT {", ".join(["ts", "terms", *found])} FROM posts WHERE {where}),
    grouped AS (SELECT {", ".join([*keys, "count(*) AS posts", *filter(None, [sums])])} FROM found {grouping}),
    spoken AS (SELECT {keyed} unnest(terms) AS term FROM found),
    counted AS (SELECT {keyed} term, count(*) AS n FROM spoken
                WHERE coalesce(term NOT IN ({listed}), TRUE) GROUP BY {keyed} term),
    placed AS (SELECT *, row_number() OVER ({partition}ORDER BY n DESC, term) AS place FROM counted),
    top AS (SELECT {keyed} {tops} FROM placed {grouping})
    SELECT {", ".join(outputs)} FROM grouped LEFT JOIN top ON {same}
    WHERE {" AND ".join(f"({each})" for each in having) or "TRUE"}
    {f"ORDER BY {', '.join(order)}" if order else ""} {f"LIMIT {query.limit}" if query.limit is not None else ""}
    """


PARTS = ("rank", "number", "rest", "time", "string", "truth")


def _value_of(name: str, columns: Collection[str]) -> Value:
    return Value(rank=str(TIME), time="ts") if name == "ts" else _attribute(name, columns)


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
    return Value(
        rank=f"CASE WHEN {has[first]} > 0 THEN {first} WHEN {has[second]} > 0 THEN {second} END",
        number=f"{measure.function}({a}_number) {numbers}",
        time=f"{measure.function}({a}_time) FILTER ({a}_rank = {TIME})",
    )


# -- conditions --------------------------------------------------------------------------------------------------------


def _where(query: AggregateQuery, clock: int, columns: Collection[str]) -> Iterator[str]:
    def at(bound: TimeBound) -> int:
        return bound.at if bound.at is not None else clock - (bound.ago or 0)

    if query.after is not None:
        yield f"ts > {at(query.after)}"
        if query.after.ago is not None:
            yield f"ts <= {clock}"
    if query.since is not None:
        yield f"ts >= {at(query.since)}"
    if query.until is not None:
        yield f"ts <= {at(query.until)}"
    if query.region is not None:
        yield _inside(query.region)
    if query.text is not None:
        yield _says(query.text)
    yield from (_holds(predicate, _attribute(predicate.name, columns)) for predicate in query.predicates)


def _inside(region: Region) -> str:
    match region:
        case Rect(west, south, east, north):
            join = "AND" if west <= east else "OR"
            between = f"lon >= {_double(west)} {join} lon <= {_double(east)}"
            return f"({between}) AND lat BETWEEN {_double(south)} AND {_double(north)}"
        case Circle(lon, lat, radius):
            turn = f"least(abs(lon - {_double(lon)}), 360.0::DOUBLE - abs(lon - {_double(lon)}))"
            shrink = f"sin(radians(90 - abs(lat))) * sin(radians(90 - abs({_double(lat)})))"
            chord = f"pow(sin(radians(lat - {_double(lat)}) / 2), 2) + {shrink} * pow(sin(radians({turn}) / 2), 2)"
            return f"2 * 6371.0088::DOUBLE * asin(least(1.0::DOUBLE, sqrt({chord}))) <= {_double(radius)}"
        case Polygon():
            raise Inexpressible("polygons")


def _says(expression: Expression) -> str:
    match expression:
        case And(parts):
            return " AND ".join(f"({_says(part)})" for part in parts)
        case Or(parts):
            return " OR ".join(f"({_says(part)})" for part in parts)
        case Not(part):
            return f"NOT ({_says(part)})"
        case Phrase(_, words):
            if len(words) == 1:
                return f"list_contains(terms, {_text(words[0])})"
            return f"contains(spoken, {_text(' '.join(('', *words, '')))})"


def _holds(predicate: Predicate, value: Value) -> str:
    def any_of(op: str) -> str:
        return " OR ".join(f"({_compared(op, value, literal)})" for literal in predicate.values)

    match predicate.op:
        case "is_null":
            return f"({value.rank}) IS NULL"
        case "is_not_null":
            return f"({value.rank}) IS NOT NULL"
        case "between":
            low, high = predicate.values
            return f"({_compared('>=', value, low)}) AND ({_compared('<=', value, high)})"
        case "in":
            return any_of("=")
        case "not_in":
            return f"({any_of('<>')}) AND NOT ({any_of('=')})"
    return any_of(predicate.op)


def _compared(op: str, value: Value, literal: Scalar) -> str:
    if isinstance(literal, bool):
        return f"({value.rank}) = {TRUTH} AND ({value.truth}) {op} {literal}"
    if isinstance(literal, int | float):
        return f"({value.rank}) = {NUMBER} AND ({value.number}) {op} {_double(literal)}"
    time = f"epoch_us(TRY_CAST({_text(literal)} AS TIMESTAMP))"
    return (
        f"(({value.rank}) = {STRING} AND ({value.string}) {op} {_text(literal)})"
        f" OR (({value.rank}) = {TIME} AND coalesce(({value.time}) {op} {time}, FALSE))"
    )


def _double(number: float) -> str:
    return f"({float(number)!r})::DOUBLE"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
