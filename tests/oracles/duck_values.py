"""What DuckDB's SQL makes of values and conditions: values of several kinds in one column, words, places, times."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from nearcast.common.expressions import And, Expression, Not, Or, Phrase
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.queries import Predicate, Query, Scalar, TimeBound
from tests.oracles.aggregates import BASE32

NUMBER, TIME, STRING, TRUTH = range(4)
PARTS = ("rank", "number", "rest", "time", "string", "truth")


class Inexpressible(Exception):
    """DuckDB has no such thing."""


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


def attribute_columns(name: str, stored: Collection[str]) -> Iterator[str]:
    """The five columns of an attribute: a post's own value, or else the derived one."""
    own = {kind: f'posts."{name}:{kind}"' for kind in NULLS if f"{name}:{kind}" in stored}
    missing = " AND ".join(f"{column} IS NULL" for column in own.values()) or "TRUE"
    for kind, nothing in NULLS.items():
        value = own.get(kind, nothing)
        if name in DERIVED and DERIVED[name][0] == kind:
            value = f"CASE WHEN {missing} THEN {DERIVED[name][1]} ELSE {value} END"
        yield f'{value} AS "{name}:{kind}"'


def attribute(name: str) -> Value:
    """The value of one post, of those columns."""
    i, f, t, s, b = (f'"{name}:{kind}"' for kind in NULLS)
    return Value(
        rank=f"CASE WHEN {i} IS NOT NULL OR {f} IS NOT NULL THEN {NUMBER} WHEN {t} IS NOT NULL THEN {TIME}"
        f" WHEN {s} IS NOT NULL THEN {STRING} WHEN {b} IS NOT NULL THEN {TRUTH} END",
        number=f"coalesce({i}::DOUBLE, {f} + 0.0)",
        rest=f"coalesce({i}::HUGEINT - ({i}::DOUBLE)::HUGEINT, 0)",
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


def as_columns(value: Value, name: str) -> list[str]:
    return [f"{expression} AS {name}_{part}" for part, expression in zip(PARTS, value.parts, strict=True)]


def of_columns(name: str) -> Value:
    return Value(*(f"{name}_{part}" for part in PARTS))


def listed(*parts: str) -> str:
    return ", ".join(parts)


def all_of(conditions: Iterable[str]) -> str:
    return " AND ".join(f"({each})" for each in conditions) or "TRUE"


# -- conditions --------------------------------------------------------------------------------------------------------


def where(query: Query, clock: int) -> Iterator[str]:
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
    yield from (_holds(predicate, attribute(predicate.name)) for predicate in query.predicates)


def _inside(region: Region) -> str:
    match region:
        case Rect(west, south, east, north):
            join = "AND" if west <= east else "OR"
            between = f"lon >= {_double(west)} {join} lon <= {_double(east)}"
            if west == -180.0 or east == 180.0:  # one meridian
                between += " OR abs(lon) = 180"
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
                return f"list_contains(terms, {text(words[0])})"
            return f"contains(spoken, {text(' '.join(('', *words, '')))})"


def _holds(predicate: Predicate, value: Value) -> str:
    def any_of(op: str) -> str:
        return " OR ".join(f"({compared(op, value, literal)})" for literal in predicate.values)

    match predicate.op:
        case "is_null":
            return f"({value.rank}) IS NULL"
        case "is_not_null":
            return f"({value.rank}) IS NOT NULL"
        case "between":
            low, high = predicate.values
            return f"({compared('>=', value, low)}) AND ({compared('<=', value, high)})"
        case "in":
            return any_of("=")
        case "not_in":
            return f"({any_of('<>')}) AND NOT ({any_of('=')})"
    return any_of(predicate.op)


def compared(op: str, value: Value, literal: Scalar) -> str:
    if isinstance(literal, bool):
        return f"({value.rank}) = {TRUTH} AND ({value.truth}) {op} {literal}"
    if isinstance(literal, int | float):
        return f"({value.rank}) = {NUMBER} AND ({value.number}) {op} {_double(literal)}"
    time = f"epoch_us(TRY_CAST({text(literal)} AS TIMESTAMP))"
    return (
        f"(({value.rank}) = {STRING} AND ({value.string}) {op} {text(literal)})"
        f" OR (({value.rank}) = {TIME} AND coalesce(({value.time}) {op} {time}, FALSE))"
    )


def _double(number: float) -> str:
    return f"({float(number)!r})::DOUBLE"


def text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
