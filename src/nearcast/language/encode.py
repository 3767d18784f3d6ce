"""Queries as the columns that a worker matches by (`common.op_schema.QUERY_FIELDS`)."""

import json
from collections.abc import Sequence
from typing import Any

from nearcast.common.errors import QueryError
from nearcast.common.expressions import Conjunction, Expression, Literal
from nearcast.common.geo import containment as regions
from nearcast.common.op_schema import (
    AGGREGATES,
    BEGINNING,
    CODE_LAST,
    CODE_LENGTH_MASK,
    CODE_NEGATIVE,
    NEAREST,
    NEVER,
    RANGE,
    RELEVANT,
    TERMS,
)
from nearcast.common.queries import Query, TimeBound
from nearcast.kinds.aggregates.query import AggregateQuery, Having, Measure, Ordering, Output
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language.dnf import to_dnf


def encode_query(query: Query, clock: int | None = None) -> dict[str, Any]:
    """The values of QUERY_FIELDS for a query of any kind: what it asks of a post.

    Times relative to the stream's clock need `clock`; ValueError without it. The one exception is the window of
    frequent terms, aggregates and the most relevant: it slides with a subscription, which no clock is known for, and
    does not bound its posts. A query that nothing can match has the empty time [0, 0).
    """
    columns: Any = getattr(query, "columns", None)  # frequent terms have none
    if isinstance(query, AggregateQuery):
        columns = _aggregates(query)
    told = None if columns is None else json.dumps(columns)
    return {**encode_conditions(query, clock), "columns": told, **_asked(query)}


def encode_conditions(query: Query, clock: int | None = None) -> dict[str, Any]:
    """As `encode_query`, without what is asked of the posts that meet the conditions: all that a search needs."""
    kind, box, shape = regions.encode(query.region)
    min_lon, min_lat, max_lon, max_lat = box
    since, until = _times(query, clock)
    code = encode_expression(query.text)
    if code is None or since >= until:
        code, since, until = code or [], 0, 0
    predicates = [[each.name, each.op, list(each.values)] for each in query.predicates]
    return {
        "region_kind": kind,
        "min_lon": min_lon,
        "min_lat": min_lat,
        "max_lon": max_lon,
        "max_lat": max_lat,
        "shape": list(shape),
        "code": code,
        "since": since,
        "until": until,
        "life": NEVER if query.life is None else query.life,
        "predicates": json.dumps(predicates) if predicates else None,
    }


def _asked(query: Query) -> dict[str, Any]:
    """What is asked of the posts that meet the conditions."""
    asked: dict[str, Any] = {
        "asks": RANGE, "k": 0, "at_lon": 0.0, "at_lat": 0.0, "window": 0, "beat": 0, "words": [], "taste": []
    }  # fmt: skip
    if isinstance(query, NearestQuery):
        return asked | {"asks": NEAREST, "k": query.k, "at_lon": float(query.lon), "at_lat": float(query.lat)}
    if isinstance(query, RelevantQuery):
        place = {"asks": RELEVANT, "k": query.k, "at_lon": float(query.lon), "at_lat": float(query.lat)}
        taste = [query.alpha, query.reach_km, query.window_posts or 0, query.window or 0]
        return asked | place | {"words": list(query.words), "taste": [float(each) for each in taste]}
    if isinstance(query, TermsQuery) and query.beat is not None and query.after and query.after.ago is not None:
        return asked | {"asks": TERMS, "k": query.k, "window": query.after.ago, "beat": query.beat}
    if isinstance(query, AggregateQuery) and query.beat is not None:
        window = query.after.ago if query.after else 0
        return asked | {"asks": AGGREGATES, "window": window or 0, "beat": query.beat}
    return asked


def _aggregates(query: AggregateQuery) -> dict[str, Any]:
    """What an aggregate asks of each group of posts; `decode_aggregates` is the way back."""
    return {
        "outputs": [[output.name, _value(output.value)] for output in query.outputs],
        "group_by": list(query.group_by),
        "having": [[_value(each.value), each.op, each.literal] for each in query.having],
        "order": [[_value(each.value), each.descending] for each in query.order],
        "limit": query.limit,
    }


def _value(value: Measure | str) -> Any:
    return value if isinstance(value, str) else [value.function, value.of, value.k]


def decode_aggregates(columns: str) -> AggregateQuery:
    """The aggregate of which the `columns` of a subscription tell, without its conditions."""
    told = json.loads(columns)

    def value(written: Any) -> Measure | str:
        return written if isinstance(written, str) else Measure(*written)

    return AggregateQuery(
        outputs=tuple(Output(name, value(written)) for name, written in told["outputs"]),
        group_by=tuple(told["group_by"]),
        having=tuple(Having(value(written), op, literal) for written, op, literal in told["having"]),
        order=tuple(Ordering(value(written), descending) for written, descending in told["order"]),
        limit=told["limit"],
    )


def encode_expression(expression: Expression | None) -> list[int] | None:
    """The `code` of a keyword expression: empty if it is always true, None if it never is."""
    if expression is None:
        return []
    conjunctions = to_dnf(expression)
    return [word for each in conjunctions for word in _encode_conjunction(each)] if conjunctions else None


def decode_code(code: Sequence[int]) -> tuple[Conjunction, ...]:
    """The conjunctions of a `code`; of an empty one, which is always true, the empty conjunction."""
    conjunctions: list[Conjunction] = []
    literals: list[Literal] = []
    at = 0
    while at < len(code):
        header = int(code[at])
        end = at + 1 + (header & CODE_LENGTH_MASK)
        literals.append(Literal(tuple(int(term) for term in code[at + 1 : end]), bool(header & CODE_NEGATIVE)))
        if header & CODE_LAST:
            conjunctions.append(tuple(literals))
            literals = []
        at = end
    return tuple(conjunctions) or ((),)


def _encode_conjunction(conjunction: Conjunction) -> list[int]:
    literals = sorted(conjunction, key=lambda literal: literal.negative)  # a positive one first: it can hold the key
    code: list[int] = []
    for place, literal in enumerate(literals):
        if len(literal.terms) > CODE_LENGTH_MASK:
            raise QueryError(f"a phrase has at most {CODE_LENGTH_MASK:,} words")
        last = CODE_LAST if place == len(literals) - 1 else 0
        code.append(len(literal.terms) | last | (CODE_NEGATIVE if literal.negative else 0))
        code.extend(literal.terms)
    return code


def _times(query: Query, clock: int | None) -> tuple[int, int]:
    """[since, until) of the bounds, of which `after` excludes its moment and `until` includes it."""
    starts = [BEGINNING]
    sliding = (
        isinstance(query, TermsQuery | AggregateQuery) and clock is None and query.after and query.after.ago is not None
    )
    if query.after and not sliding:
        starts.append(_absolute(query.after, clock) + 1)
    if isinstance(query, RelevantQuery) and query.window is not None and clock is not None:
        starts.append(max(clock - query.window, BEGINNING) + 1)
    if query.since:
        starts.append(_absolute(query.since, clock))
    return max(starts), _absolute(query.until, clock) + 1 if query.until else NEVER


def _absolute(bound: TimeBound, clock: int | None) -> int:
    if bound.at is not None:
        return bound.at
    if clock is None or bound.ago is None:
        raise ValueError("a time relative to the stream's clock can only be encoded with the clock")
    return clock - bound.ago
