"""The meaning of a SELECT that asks about groups of posts (STAR §3.1): aggregates, GROUP BY, HAVING, ORDER BY.

A name in the HAVING or the ORDER BY is first looked for among the columns of the answer (`AS`), then among the
attributes of the GROUP BY.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nearcast.common.queries import Scalar
from nearcast.kinds.aggregates.measures import Measure, attribute_of, measure_of, written
from nearcast.language.known_kinds import known
from nearcast.language.messages import nearest, pointed, shown
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.syntax import Call, Item, Name, Operand, Order, Test, span_of
from nearcast.language.where import scalar

_Columns = Mapping[str, Measure | str]
_VALUES = "an aggregate, its name (AS) or an attribute of the GROUP BY"


@dataclass(frozen=True)
class Output:
    """A column of the answer: an aggregate, or an attribute of the GROUP BY (its name)."""

    name: str
    value: Measure | str


@dataclass(frozen=True)
class Having:
    """A condition on a group: `op` is one of = <> < <= > >=. False of a null."""

    value: Measure | str
    op: str
    literal: Scalar


@dataclass(frozen=True)
class Ordering:
    value: Measure | str
    descending: bool = False


def aggregate(parsed: ParsedSelect) -> dict[str, Any]:
    """What an AggregateQuery has beside its conditions."""
    sql, items = parsed.sql, parsed.select.items
    if items is None:
        message = "GROUP BY gives one row a group, and SELECT * asks for posts"
        expected = "Count(id) and the attributes of the GROUP BY in place of *"
        raise parsed.error(parsed.clauses["GROUP"].span, message, expected)
    group_by = _group_by(parsed)
    columns = _columns(sql, items, group_by)
    for name in parsed.body("GROUP"):
        if name.text not in columns.values():
            message = f"{shown(name.text)} is in the GROUP BY and not in the SELECT"
            raise parsed.error(name.span, message, f"{shown(name.text)} among what is selected")
    return {
        "outputs": tuple(Output(name, value) for name, value in columns.items()),
        "group_by": group_by,
        "having": tuple(_having(sql, test, columns, group_by) for test in parsed.body("HAVING")),
        "order": tuple(_ordering(sql, order, columns, group_by) for order in parsed.body("ORDER")),
        "limit": parsed.limit("rows"),
        "sync": parsed.sync(),
        "approximate": parsed.select.approximate is not None,
    }


def _group_by(parsed: ParsedSelect) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for operand in parsed.body("GROUP"):
        if isinstance(operand, Call):
            raise parsed.error(operand.name.span, "groups are by attributes, as they are", "an attribute's name")
        name = attribute_of(parsed.sql, operand)
        if name in names:
            raise parsed.error(operand.span, f"{shown(name)} is given twice", "each attribute once")
        names[name] = None
    return tuple(names)


def _columns(sql: str, items: tuple[Item, ...], group_by: tuple[str, ...]) -> dict[str, Measure | str]:
    """The columns of the answer by their names, in order."""
    columns: dict[str, Measure | str] = {}
    for item in items:
        operand = item.operand
        value = measure_of(sql, operand) if isinstance(operand, Call) else _grouped(sql, operand, group_by)
        name = item.alias.text if item.alias else written(operand) if isinstance(operand, Call) else operand.text
        if name in columns:
            span = item.alias.span if item.alias else span_of(operand)
            raise pointed(sql, span, f"the column {shown(name)} is given twice", "each once, or another name with AS")
        columns[name] = value
    return columns


def _grouped(sql: str, name: Name, group_by: tuple[str, ...]) -> str:
    """An attribute that stands beside aggregates, and so has to be in the GROUP BY."""
    attribute = attribute_of(sql, name)
    if attribute not in group_by:
        message = f"{shown(attribute)} is neither an aggregate nor in {'the' if group_by else 'a'} GROUP BY"
        raise pointed(sql, name.span, message, f"GROUP BY {shown(attribute)}", nearest(attribute, group_by))
    return attribute


def _having(sql: str, test: Test, columns: _Columns, group_by: tuple[str, ...]) -> Having:
    value, literal = _value(sql, test.operand, columns, group_by, "compared"), scalar(sql, test.value)
    if isinstance(value, Measure) and (expected := _not_comparable(value, literal)):
        operand = test.operand
        name = written(operand) if isinstance(operand, Call) else operand.text
        message = f"{shown(name)} cannot be compared with this"
        raise pointed(sql, test.value.span, message, expected)
    return Having(value, test.operator, literal)


def _not_comparable(measure: Measure, literal: Scalar) -> str:
    """What a measure can be compared with, where it is not this."""
    if measure.of == "ts":
        return "" if isinstance(literal, str) and _is_time(literal) else "a time such as '2026-05-01T12:00:00Z'"
    if isinstance(literal, bool) or (isinstance(literal, str) and measure.function not in ("min", "max")):
        return "a number"
    return "" if not isinstance(literal, str) or _is_time(literal) else "a number, or a time such as '2026-05-01'"


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _ordering(sql: str, order: Order, columns: _Columns, group_by: tuple[str, ...]) -> Ordering:
    operand = order.operand
    if isinstance(operand, Call) and operand.name.text.upper() in known().post_orders:
        message = f"groups have no {operand.name.text.lower()}, only posts have"
        raise pointed(sql, operand.name.span, message, _VALUES)
    return Ordering(_value(sql, operand, columns, group_by, "ordered"), order.descending)


def _value(sql: str, operand: Operand, columns: _Columns, group_by: tuple[str, ...], verb: str) -> Measure | str:
    """What groups are compared or ordered by."""
    value: Measure | str
    if isinstance(operand, Call):
        value = measure_of(sql, operand)
    elif operand.text in columns:
        value = columns[operand.text]
    elif operand.text in group_by:
        value = operand.text
    else:
        message = f"{shown(operand.text)} is neither a column of the answer nor in the GROUP BY"
        raise pointed(sql, operand.span, message, _VALUES, nearest(operand.text, [*columns, *group_by]))
    if isinstance(value, Measure) and value.function == "topk":
        message = f"TopK is a list of terms, by which groups cannot be {verb}"
        raise pointed(sql, span_of(operand), message, "an aggregate that is one value, such as Count(id)")
    return value
