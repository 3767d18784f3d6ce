"""From a query's text to its meaning: what each part of the SELECT stands for, checked where it stands."""

import re
from collections.abc import Mapping

from nearcast.language.dnf import to_dnf
from nearcast.language.keywords import Tokenizer, contains, overlaps
from nearcast.language.messages import either, nearest, pointed, shown
from nearcast.language.places import region_of
from nearcast.language.syntax import (
    Call,
    Clause,
    Condition,
    Constant,
    During,
    Inside,
    Item,
    Name,
    Number,
    Order,
    Select,
    String,
    Words,
    read_select,
    span_of,
)
from nearcast.language.times import duration, moment
from nearcast.model.errors import QueryError
from nearcast.model.expressions import And, Expression
from nearcast.model.queries import Predicate, RangeQuery, Scalar, Statement, TimeBound
from nearcast.model.regions import Region

_COLUMNS = {"id": "id", "ts": "ts", "time": "ts", "lon": "lon", "lat": "lat", "text": "text"}
_AGGREGATES = ("Count", "Sum", "Avg", "Min", "Max")
_LATER = {
    "GROUP": "grouping (GROUP BY)",
    "HAVING": "grouping (HAVING)",
    "SYNC": "reporting on a beat (SYNC)",
    "WINDOW": "a sliding window (WINDOW)",
}
_INT64 = 2**63


def parse(sql: str, tokenizer: Tokenizer, regions: Mapping[str, Region] | None = None) -> Statement:
    """What `sql` means; its words are cut by `tokenizer`, and `regions` are those that have been given a name.

    Raises QueryError, whose message points at the word, for anything that has no meaning or none yet.
    """
    select = read_select(sql)
    _check_kind(sql, select)
    return Statement(_range(sql, select, tokenizer, regions or {}), select.explain, sql)


def _check_kind(sql: str, select: Select) -> None:
    """Refuses the kinds of question other than range."""
    for item in select.items or ():
        if isinstance(item.operand, Call):
            name = item.operand.name
            function = nearest(name.text, ("TopK", *_AGGREGATES))
            if function.lower() != name.text.lower():
                expected = f"a column, TopK, {either(_AGGREGATES)}"
                raise pointed(sql, name.span, f"there is no function {shown(name.text)}", expected, function)
            kind = "a list of frequent terms" if function == "TopK" else "an aggregate"
            raise pointed(sql, name.span, f"{kind} ({function}) is not in this version yet", "* or columns")
    seen = set()
    for clause in select.clauses:
        if clause.word in seen:
            raise pointed(sql, clause.span, f"{clause.word} is given twice", f"one {clause.word}")
        seen.add(clause.word)
        if clause.word == "ORDER":
            _check_order(sql, clause)
        elif clause.word in _LATER:
            raise pointed(sql, clause.span, f"{_LATER[clause.word]} is not in this version yet")


def _check_order(sql: str, clause: Clause) -> None:
    order: Order = clause.body[0]
    if isinstance(order.operand, Call):
        name = order.operand.name
        function = nearest(name.text, ("DISTANCE", "RELEVANCE", *_AGGREGATES))
        if function.lower() != name.text.lower():
            message = f"there is no function {shown(name.text)}"
            raise pointed(sql, name.span, message, "time DESC", function)
        kinds = {"DISTANCE": "nearest (ORDER BY DISTANCE)", "RELEVANCE": "most relevant (ORDER BY RELEVANCE)"}
        raise pointed(sql, name.span, f"{kinds.get(function, f'an aggregate ({function})')} is not in this version yet")
    newest_first = order.operand.text.lower() in ("time", "ts") and order.descending
    if len(clause.body) > 1 or not newest_first:
        operand = order.operand if not newest_first else clause.body[1].operand
        raise pointed(sql, span_of(operand), "posts come newest first, in no other order", "time DESC, or no ORDER BY")


def _range(sql: str, select: Select, tokenizer: Tokenizer, regions: Mapping[str, Region]) -> RangeQuery:
    region: Region | None = None
    texts: list[Words] = []
    predicates: list[Predicate] = []
    times: dict[str, TimeBound] = {}
    for condition in select.where:
        match condition:
            case Inside(span=span, region=node):
                if region is not None:
                    message = "a query has one region; join two into one POLYGON, or ask twice"
                    raise pointed(sql, span, message, "one loc INSIDE")
                region = region_of(sql, node, regions)
            case Words():
                texts.append(condition)
            case During():
                _add_times(sql, condition, times)
            case Condition():
                predicates.append(_predicate(sql, condition))
    clauses = {clause.word: clause.body[0] for clause in select.clauses}
    return RangeQuery(
        region=region,
        text=_expression(sql, texts, tokenizer),
        predicates=tuple(predicates),
        **times,
        life=duration(sql, clauses["FOR"]) if "FOR" in clauses else None,
        columns=None if select.items is None else _columns(sql, select.items),
        limit=_limit(sql, clauses["LIMIT"]) if "LIMIT" in clauses else None,
    )


def _expression(sql: str, texts: list[Words], tokenizer: Tokenizer) -> Expression | None:
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
    return Predicate(name.text, condition.operator, tuple(_scalar(sql, value) for value in condition.values))


def _scalar(sql: str, node: Number | String | Constant) -> Scalar:
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


def _columns(sql: str, items: tuple[Item, ...]) -> tuple[str, ...]:
    columns: dict[str, None] = {}
    for item in items:
        if item.alias:
            raise pointed(sql, item.alias.span, "a column keeps its name here", "',' or FROM")
        assert isinstance(item.operand, Name)
        name = item.operand
        if name.text.lower() == "loc" and not name.quoted:
            raise pointed(sql, name.span, "the place is two columns", "lon, lat")
        column = name.text if name.quoted else _COLUMNS.get(name.text.lower(), name.text)
        if column in columns:
            raise pointed(sql, name.span, f"the column {shown(column)} is given twice", "each column once")
        columns[column] = None
    return tuple(columns)


def _limit(sql: str, number: Number) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,18}", number.text):
        raise pointed(sql, number.span, "LIMIT takes a whole number of posts", "a whole number from 0 up")
    return int(number.text)
