"""Queries as the columns that a worker matches by (`common.op_schema.QUERY_FIELDS`)."""

import json
from collections.abc import Sequence
from typing import Any

from nearcast.common.errors import QueryError
from nearcast.common.expressions import Conjunction, Expression, Literal
from nearcast.common.geo import containment as regions
from nearcast.common.op_schema import BEGINNING, CODE_LAST, CODE_LENGTH_MASK, CODE_NEGATIVE, NEVER, NOTHING_ASKED
from nearcast.common.queries import Query, TimeBound
from nearcast.language.dnf import to_dnf
from nearcast.language.known_kinds import kind_of, role_of


def encode_query(query: Query, clock: int | None = None) -> dict[str, Any]:
    """The values of QUERY_FIELDS for a query of any kind: what it asks of a post.

    Times relative to the stream's clock need `clock`; ValueError without it. The one exception is a window that slides
    with a subscription, which no clock is known for: it does not bound its posts. A query that nothing can match has
    the empty time [0, 0).
    """
    kind = kind_of(query)
    return {**encode_conditions(query, clock), **NOTHING_ASKED, "asks": kind.code, **kind.query.encode(query)}


def columns_text(columns: Any) -> str | None:
    """The column `columns` of an op: what a SELECT asks for, as JSON; None for everything."""
    return None if columns is None else json.dumps(columns)


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
    window = role_of(query).window(query)
    slides = window is not None and clock is None
    if query.after and not slides:
        starts.append(_absolute(query.after, clock) + 1)
    if window is not None and clock is not None:
        starts.append(max(clock - window, BEGINNING) + 1)
    if query.since:
        starts.append(_absolute(query.since, clock))
    return max(starts), _absolute(query.until, clock) + 1 if query.until else NEVER


def _absolute(bound: TimeBound, clock: int | None) -> int:
    if bound.at is not None:
        return bound.at
    if clock is None or bound.ago is None:
        raise ValueError("a time relative to the stream's clock can only be encoded with the clock")
    return clock - bound.ago
