"""Aggregate queries, and the text that means them."""

import math
from typing import Any

from hypothesis import strategies as st

from nearcast.common.geo.shapes import Circle, Rect
from nearcast.common.queries import Predicate, Scalar, TimeBound
from nearcast.kinds.aggregates.query import AggregateQuery, Having, Measure, Ordering, Output

PLAIN = ("topic", "streetName", "minute", "Größe", "price2", "approximate", "stream", "distinct", "count")
ODD = ("limit", "a b", "time", "loc", "it's", "count(id)", "x, y", "東京")  # what can stand in backticks only
SECOND = 1_000_000
FLAT = ("count", "sum", "avg", "min", "max")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")

names = st.sampled_from(PLAIN + ODD)
flat_measures = st.one_of(
    st.just(Measure("count")),
    st.builds(Measure, st.sampled_from(FLAT), names),
    st.builds(Measure, st.sampled_from(("min", "max")), st.just("ts")),
)
measures = st.one_of(flat_measures, st.builds(Measure, st.just("topk"), st.just("text"), st.integers(1, 10**17)))
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
scalars = st.one_of(numbers, st.booleans(), st.text(st.characters(codec="utf-8"), max_size=8))
regions = st.one_of(
    st.builds(Rect, st.floats(-180, 180), st.floats(-90, 0), st.floats(-180, 180), st.floats(0, 90)),
    st.builds(Circle, st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 1e4)),
)
lengths = st.integers(1, 10**6).map(lambda seconds: seconds * SECOND)
bounds = st.one_of(lengths.map(lambda ago: TimeBound(ago=ago)), lengths.map(lambda at: TimeBound(at=at)))


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    name = draw(names)
    op = draw(st.sampled_from((*COMPARISONS, "between", "in", "not_in", "is_null", "is_not_null")))
    count = {"between": 2, "is_null": 0, "is_not_null": 0}.get(op, 1)
    most = 3 if op in ("in", "not_in") else count
    return Predicate(name, op, tuple(draw(st.lists(scalars, min_size=count, max_size=most))))


@st.composite
def aggregates(draw: st.DrawFn) -> AggregateQuery:
    group_by = draw(st.lists(names, unique=True, max_size=3))
    values: list[Measure | str] = [*group_by, *draw(st.lists(measures, min_size=not group_by, max_size=4))]
    outputs: dict[str, Measure | str] = {}
    for value in draw(st.permutations(values)):
        name = own_name(value)
        if name in outputs or draw(st.booleans()):
            name = draw(st.text("abcXYZ ,'", min_size=1, max_size=6).filter(lambda name: name not in outputs))
        outputs[name] = value
    alone = len(values) == 1 and isinstance(values[0], Measure) and values[0].function == "topk"
    listed = any(isinstance(value, Measure) and value.function == "topk" for value in values)
    ordered: st.SearchStrategy[Any] = st.one_of(flat_measures, st.sampled_from(group_by) if group_by else flat_measures)
    return AggregateQuery(
        region=draw(st.none() | regions),
        predicates=tuple(draw(st.lists(predicates(), max_size=2))),
        after=draw(st.none() | bounds),
        life=draw(st.none() | lengths),
        outputs=tuple(Output(name, value) for name, value in outputs.items()),
        group_by=tuple(group_by),
        having=tuple(draw(st.lists(ordered.flatmap(havings), max_size=2))),
        order=tuple(draw(st.lists(st.builds(Ordering, ordered, st.booleans()), max_size=2))),
        limit=draw(st.none() | st.integers(0, 10**17)),
        sync=draw(st.none() | lengths),
        approximate=alone or (listed and draw(st.booleans())),
    )


def havings(value: Measure | str) -> st.SearchStrategy[Having]:
    literals: st.SearchStrategy[Scalar] = scalars
    if isinstance(value, Measure):
        times = st.datetimes().map(lambda moment: moment.isoformat())
        literals = times if value.of == "ts" else numbers | times if value.function in ("min", "max") else numbers
    return st.builds(Having, st.just(value), st.sampled_from(COMPARISONS), literals)


def own_name(value: Measure | str) -> str:
    """The name of a column that has no AS."""
    if isinstance(value, str):
        return value
    if value.function == "topk":
        return "topk(text)" if value.k == 10 else f"topk(text,{value.k})"
    return f"{value.function}({'time' if value.of == 'ts' else value.of or 'id'})".lower()


def write(query: AggregateQuery) -> str:
    columns = {output.value: output.name for output in reversed(query.outputs)}

    def ranked(value: Measure | str) -> str:
        """By the name of its column, which wins where an attribute has the same; or as it is."""
        return _name(columns[value]) if value in columns else _value(value)

    items = [_value(each.value) + _as(each) for each in query.outputs]
    text = f"SELECT {'APPROXIMATE ' * query.approximate}{', '.join(items)} FROM stream"
    where = [f"loc INSIDE {_region(query.region)}"] if query.region else []
    where += [_predicate(each) for each in query.predicates]
    where += [f"time AFTER {_moment(query.after)}"] if query.after else []
    if where:
        text += f" WHERE {' AND '.join(where)}"
    if query.group_by:
        text += f" GROUP BY {', '.join(map(_name, query.group_by))}"
    if query.having:
        tests = (f"{ranked(each.value)} {each.op} {_literal(each.literal)}" for each in query.having)
        text += f" HAVING {' AND '.join(tests)}"
    if query.order:
        text += f" ORDER BY {', '.join(ranked(each.value) + ' DESC' * each.descending for each in query.order)}"
    text += "" if query.limit is None else f" LIMIT {query.limit}"
    text += "" if query.sync is None else f" SYNC {query.sync // SECOND} seconds"
    return text + ("" if query.life is None else f" FOR {query.life // SECOND} secs")


def _name(name: str) -> str:
    return name if name in PLAIN and name != "approximate" else f"`{name}`"


def _value(value: Measure | str) -> str:
    if isinstance(value, str):
        return _name(value)
    if value.function == "topk":
        return "TopK(text)" if value.k == 10 else f"TopK(text, {value.k})"
    of = "id" if value.of is None else "time" if value.of == "ts" else _name(value.of)
    return f"{value.function.capitalize()}({of})"


def _as(output: Output) -> str:
    return "" if output.name == own_name(output.value) else f" AS `{output.name}`"


def _region(region: Any) -> str:
    if isinstance(region, Rect):
        return f"RECT({region.min_lon!r}, {region.min_lat!r}, {region.max_lon!r}, {region.max_lat!r})"
    return f"CIRCLE({region.lon!r}, {region.lat!r}, {region.radius_km!r} km)"


def _moment(bound: TimeBound) -> str:
    return f"'{bound.ago // SECOND} seconds ago'" if bound.ago is not None else str((bound.at or 0) // 1000)


def _predicate(predicate: Predicate) -> str:
    name, values = _name(predicate.name), [_literal(value) for value in predicate.values]
    match predicate.op:
        case "between":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        case "in" | "not_in":
            return f"{name} {predicate.op.replace('_', ' ').upper()} ({', '.join(values)})"
        case "is_null" | "is_not_null":
            return f"{name} {predicate.op.replace('_', ' ').upper()}"
    return f"{name} {predicate.op} {values[0]}"


def _literal(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    assert not isinstance(value, float) or math.isfinite(value)
    return repr(value)
