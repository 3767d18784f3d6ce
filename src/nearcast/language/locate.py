"""Where the words of a statement stand in its text, for checks: a statement keeps its meaning only."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from nearcast.common.errors import QueryError
from nearcast.common.queries import Statement
from nearcast.language.messages import Span, pointed
from nearcast.language.syntax import (
    Call,
    Clause,
    Condition,
    During,
    Item,
    Name,
    Order,
    Select,
    Test,
    read_select,
    span_of,
)
from nearcast.language.times import moment


def error_at(statement: Statement, span: Span | None, message: str, expected: str) -> QueryError:
    """An error that points at `span`; without it, where the statement was not made from a text."""
    return pointed(statement.sql, span, message, expected) if span else QueryError(message)


def read_again(sql: str) -> Select | None:
    """The SELECT of a text; None where a statement was not made from a text."""
    try:
        return read_select(sql)
    except QueryError:
        return None


def clause_span(sql: str, word: str) -> Span | None:
    """Where a clause begins."""
    select = read_again(sql)
    return next((clause.span for clause in select.clauses if clause.word == word), None) if select else None


def function_span(sql: str) -> Span | None:
    """The first function of the SELECT, or else its first column."""
    select = read_again(sql)
    items = (select.items or ()) if select else ()
    calls = [item.operand for item in items if isinstance(item.operand, Call)]
    return next((span_of(operand) for operand in (*calls, *(item.operand for item in items))), None)


def ago_span(sql: str) -> Span | None:
    """The first time that is so long ago."""
    moments = (each for during in times(sql) for each in during.moments)
    return next((each.span for each in moments if moment(sql, each).ago is not None), None)


def after_span(sql: str) -> Span | None:
    """The time of the AFTER."""
    return next((each.moments[0].span for each in times(sql) if len(each.moments) == 1), None)


def between_span(sql: str) -> Span | None:
    """The words time BETWEEN."""
    return next((each.span for each in times(sql) if len(each.moments) == 2), None)


def times(sql: str) -> Iterator[During]:
    """The conditions on time, in the order of the text."""
    select = read_again(sql)
    yield from (condition for condition in (select.where if select else ()) if isinstance(condition, During))


def name_span(sql: str, name: str) -> Span | None:
    """Where an attribute is named first."""
    return next((each.span for each in names(read_again(sql)) if each.text == name), None)


def names(node: Any) -> Iterator[Name]:
    """The names in a query that may be attributes', in the order of the text."""
    match node:
        case Name():
            yield node
        case Item(operand=operand):
            yield from names(operand)
        case Call(arguments=arguments):
            yield from names(arguments)
        case tuple():
            for each in node:
                yield from names(each)
        case Select() | Condition() | Clause() | Test() | Order():
            for field in fields(node):
                yield from names(getattr(node, field.name))
