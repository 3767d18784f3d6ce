"""The WHERE of a query, and its FOR: what every kind of question asks of a post in the same words."""

import re
from collections.abc import Mapping

from nearcast.common.errors import QueryError
from nearcast.common.expressions import And, Expression
from nearcast.common.geo.shapes import Region
from nearcast.common.queries import Predicate, Query, Scalar, TimeBound
from nearcast.language.dnf import to_dnf
from nearcast.language.keywords import TextTokenizer, contains, overlaps
from nearcast.language.messages import pointed
from nearcast.language.places import region_of
from nearcast.language.syntax import Condition, Constant, During, Inside, Number, Select, String, TextCondition
from nearcast.language.times import duration, moment

_INT64 = 2**63


def conditions(sql: str, select: Select, tokenizer: TextTokenizer, regions: Mapping[str, Region]) -> Query:
    """What `select` asks of a post; QueryError, pointing at the word, where that has no meaning."""
    region: Region | None = None
    texts: list[TextCondition] = []
    predicates: list[Predicate] = []
    times: dict[str, TimeBound] = {}
    for condition in select.where:
        match condition:
            case Inside(span=span, region=node):
                if region is not None:
                    message = "a query has one region; join two into one POLYGON, or ask twice"
                    raise pointed(sql, span, message, "one loc INSIDE")
                region = region_of(sql, node, regions)
            case TextCondition():
                texts.append(condition)
            case During():
                _add_times(sql, condition, times)
            case Condition():
                predicates.append(_predicate(sql, condition))
    life = next((clause.body[0] for clause in select.clauses if clause.word == "FOR"), None)
    return Query(
        region=region,
        text=_expression(sql, texts, tokenizer),
        predicates=tuple(predicates),
        **times,
        life=duration(sql, life) if life else None,
    )


def _expression(sql: str, texts: list[TextCondition], tokenizer: TextTokenizer) -> Expression | None:
    """All the text conditions together; their number of alternatives is checked here, where it can be pointed at."""
    parts: list[Expression] = []
    for each in texts:
        part = (contains if each.operator == "CONTAINS" else overlaps)(sql, each.string, tokenizer)
        parts.extend(part.parts if isinstance(part, And) else (part,))
        try:
            to_dnf(And(tuple(parts)))
        except QueryError as problem:
            raise pointed(sql, each.string.span, str(problem)) from None
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _add_times(sql: str, condition: During, times: dict[str, TimeBound]) -> None:
    names = ("after",) if len(condition.moments) == 1 else ("since", "until")
    bounds = [moment(sql, each) for each in condition.moments]
    if names[0] in times:
        raise pointed(sql, condition.span, "this bound on time is given twice", "one AFTER and one BETWEEN at most")
    if len(bounds) == 2:
        first, last = bounds
        if (first.at is not None and last.at is not None and first.at > last.at) or (
            first.ago is not None and last.ago is not None and first.ago < last.ago
        ):
            message = "this is before the time that BETWEEN begins with"
            raise pointed(sql, condition.moments[1].span, message, "the later time last")
    times.update(zip(names, bounds, strict=True))


def _predicate(sql: str, condition: Condition) -> Predicate:
    name = condition.name
    column = name.text if name.quoted else name.text.lower()
    if column in ("lon", "lat"):
        raise pointed(sql, name.span, f"{column} is part of the place", "loc INSIDE RECT(…), CIRCLE(…) or POLYGON(…)")
    if column in ("id", "ts", "text"):
        raise pointed(sql, name.span, f"{column} is no attribute", "loc, text, time or an attribute's name")
    return Predicate(name.text, condition.operator, tuple(scalar(sql, value) for value in condition.values))


def scalar(sql: str, node: Number | String | Constant) -> Scalar:
    """The value that a condition compares with."""
    match node:
        case String(text=text):
            return text
        case Constant(text="NULL"):
            raise pointed(sql, node.span, "nothing is equal to NULL", "a value, or: name IS NULL")
        case Constant(text=text):
            return text == "TRUE"
        case Number(text=text):
            if re.fullmatch(r"[+-]?[0-9]{1,19}", text) and -_INT64 <= int(text) < _INT64:
                return int(text)
            if abs(node.value) == float("inf"):
                raise pointed(sql, node.span, "this number is too large", "a number below 1.8e308")
            return node.value
