"""What makes no sense in a search, in a subscription, or where no post has such attributes."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from nearcast.common.errors import QueryError
from nearcast.common.queries import Query, Scalar, Statement
from nearcast.kinds.aggregates.query import AggregateQuery, Measure
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language.grammar import FUNCTIONS
from nearcast.language.messages import Span, nearest, pointed, shown
from nearcast.language.relevance import WINDOWS
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

_SHOWN = 8  # names of attributes in a message
_SLIDES = "time AFTER '1 hour ago'"


def check_subscription(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a subscription, which looks ahead."""
    query = statement.query
    if isinstance(query, TermsQuery | AggregateQuery):
        _check_reports(statement, query)
        return
    if isinstance(query, RelevantQuery):
        _check_relevance(statement, query)
        return
    bounds = (query.after, query.since, query.until)
    if any(bound and bound.ago is not None for bound in bounds):
        message = "a subscription looks ahead, so nothing in it can be so long ago; end it with FOR"
        raise _at(statement, _first_ago(statement.sql), message, "a fixed time, or FOR 72 HOURS at the end")
    if isinstance(query, NearestQuery) and query.k < 1:
        raise _at(
            statement, _clause(statement.sql, "LIMIT"), "a subscription keeps at least one post", "LIMIT 1 or more"
        )
    if isinstance(query, RangeQuery) and query.limit is not None:
        message = "a subscription gives every post that matches; LIMIT is for searches"
        raise _at(statement, _clause(statement.sql, "LIMIT"), message, "FOR 72 HOURS to end it, or nothing")


def check_search(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a search, which looks back.

    SYNC makes sense: the same text asked once is the report of this moment.
    """
    if statement.query.life is not None:
        message = "a search looks back and is answered once; FOR is for subscriptions"
        raise _at(statement, _clause(statement.sql, "FOR"), message, "time AFTER '72 hours ago', or nothing")


def check_attributes(statement: Statement, known: Collection[str]) -> None:
    """Raises QueryError where the WHERE or an aggregate uses an attribute that is not among `known`, pointing at the
    first. The columns of a SELECT of posts are not looked at: they are null where a post has none.
    """
    unknown = _attributes(statement.query) - set(known)
    if not unknown:
        return
    name = next((name for name in _names(_read(statement.sql)) if name.text in unknown), None)
    word = name.text if name else min(unknown)
    near = sorted(known)[:_SHOWN]
    more = f" and {len(known) - len(near)} more" if len(known) > len(near) else ""
    expected = f"an attribute's name ({', '.join(near)}{more})" if near else "an attribute that posts have"
    message = f"no post has an attribute {shown(word)}"
    if name is None:
        raise QueryError(message)
    raise pointed(statement.sql, name.span, message, expected, nearest(word, known))


def check_numbers(statement: Statement, kinds: Mapping[str, Collection[str]]) -> None:
    """Raises QueryError where an aggregate of numbers is of an attribute that has none, pointing at it. `kinds` has
    those of the values of each attribute (`common.post_schema`).
    """
    query = statement.query
    if not isinstance(query, AggregateQuery):
        return
    values = [*(each.value for each in query.outputs), *(each.value for each in query.having)]
    for value in (*values, *(each.value for each in query.order)):
        if not isinstance(value, Measure) or value.function in ("count", "topk") or value.of in (None, "ts"):
            continue
        wanted, what = ("ift", "numbers or times") if value.function in ("min", "max") else ("if", "numbers")
        have = kinds.get(value.of or "", "")
        if have and not set(have) & set(wanted):
            name = next((name for name in _names(_read(statement.sql)) if name.text == value.of), None)
            are = "times" if "t" in have else "strings" if {*have} <= {"s", "j"} else "no numbers"
            message = f"{FUNCTIONS[value.function]} is of {what}, and the values of {value.of} are {are}"
            raise _at(statement, name.span if name else None, message, f"Count({value.of}), or an attribute of {what}")


def check_kinds(statement: Statement, kinds: Mapping[str, Collection[str]]) -> None:
    """Raises QueryError where the WHERE compares an attribute of `kinds` with a value that none of its own is ever
    compared with (an hour, which is a time, with 8), pointing at it: such a condition is true of no post.
    """
    for number, predicate in enumerate(statement.query.predicates):
        have = set(kinds.get(predicate.name, ""))
        odd = [at for at, value in enumerate(predicate.values) if not have & _compared_with(value)]
        if not have or not odd or (predicate.op in ("in", "not_in") and len(odd) < len(predicate.values)):
            continue
        what, example = _KINDS["t" if "t" in have else "s" if have <= {"s", "j"} else "i"]
        select = _read(statement.sql)
        tests = [each for each in (select.where if select else ()) if isinstance(each, Condition)]
        span = tests[number].values[odd[0]].span if tests else None
        raise _at(statement, span, f"{predicate.name} is {what}, and is not compared with this", example)


_KINDS = {
    "t": ("a time", "a time such as '2026-05-01T08:00'"),
    "i": ("a number", "a number"),
    "s": ("a string", "a string in quotes"),
}


def _compared_with(value: Scalar) -> set[str]:
    """The kinds of attributes (`common.post_schema`) whose values a literal is compared with."""
    if isinstance(value, bool):
        return {"b"}
    if not isinstance(value, str):
        return {"i", "f"}
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return {"s", "j"}
    return {"s", "j", "t"}


def _attributes(query: Query) -> set[str]:
    """The names of attributes that an answer depends on."""
    used: list[Measure | str] = [each.name for each in query.predicates]
    if isinstance(query, AggregateQuery):
        used += query.group_by
        used += [each.value for each in query.outputs]
        used += [each.value for each in query.having]
        used += [each.value for each in query.order]
    names = {each.of if isinstance(each, Measure) else each for each in used}
    return {name for name in names if name is not None} - {"text", "ts"}


def _check_reports(statement: Statement, query: TermsQuery | AggregateQuery) -> None:
    """Reports come on a beat, over a window that slides (SSTD §3.1: δ and T; STAR §5.2), or of aggregates with
    no time since the start.
    """
    sql, terms = statement.sql, isinstance(query, TermsQuery)
    what = "frequent terms" if terms else "aggregates"
    if query.since or query.until:
        message = "the window of a subscription slides: AFTER gives its length, FOR ends the subscription"
        raise _at(statement, _during(sql, 2), message, f"{_SLIDES} in place of BETWEEN")
    if query.after is None and terms:
        message = "a subscription to frequent terms counts over a window, and this one has none"
        raise _at(statement, _function(sql), message, f"{_SLIDES} in the WHERE")
    if query.after is not None and query.after.ago is None:
        message = "the window of a subscription slides, so it cannot begin at a fixed time"
        raise _at(statement, _during(sql, 1), message, "a length of time such as '1 hour ago'")
    if query.after is not None and query.after.ago is not None and query.after.ago <= 0:
        raise _at(statement, _first_ago(sql), "this window has no length", "a length of time such as '1 hour ago'")
    if isinstance(query, TermsQuery) and query.k < 1:
        raise _at(statement, _function(sql), "a report has at least one term", "TopK(text, 10)")
    if isinstance(query, AggregateQuery) and query.approximate:
        select = _read(sql)
        message = "the reports of a subscription are exact; APPROXIMATE is for searches"
        raise _at(statement, select.approximate if select else None, message, "no APPROXIMATE")
    if query.beat is None:
        message = f"a subscription to {what} reports on a beat, and this one has none"
        raise _at(statement, _function(sql), message, "SYNC 1 minute at the end")


def _check_relevance(statement: Statement, query: RelevantQuery) -> None:
    """The most relevant are kept over a window that slides (Skype §3)."""
    sql = statement.sql
    if query.after or query.since or query.until:
        message = "the posts of this subscription are those of a window that slides, and no time bounds them"
        raise _at(statement, next((each.span for each in _times(sql)), None), message, f"{WINDOWS} at the end")
    if query.window_posts is None and query.window is None:
        message = "a subscription to the most relevant is over a window that slides, and this one has none"
        raise _at(statement, _clause(sql, "LIMIT"), message, f"{WINDOWS} after the LIMIT")


def _at(statement: Statement, span: Span | None, message: str, expected: str) -> QueryError:
    return pointed(statement.sql, span, message, expected) if span else QueryError(message)


def _read(sql: str) -> Select | None:
    """The text again, to find the word: a statement keeps its meaning only."""
    try:
        return read_select(sql)
    except QueryError:  # a statement that was not made from a text
        return None


def _clause(sql: str, word: str) -> Span | None:
    select = _read(sql)
    return next((clause.span for clause in select.clauses if clause.word == word), None) if select else None


def _function(sql: str) -> Span | None:
    select = _read(sql)
    items = (select.items or ()) if select else ()
    calls = [item.operand for item in items if isinstance(item.operand, Call)]
    return next((span_of(operand) for operand in (*calls, *(item.operand for item in items))), None)


def _first_ago(sql: str) -> Span | None:
    moments = (each for during in _times(sql) for each in during.moments)
    return next((each.span for each in moments if moment(sql, each).ago is not None), None)


def _during(sql: str, moments: int) -> Span | None:
    """Where the time of AFTER stands (one moment), or the words time BETWEEN (two)."""
    for during in _times(sql):
        if len(during.moments) == moments:
            return during.moments[0].span if moments == 1 else during.span
    return None


def _times(sql: str) -> Iterator[During]:
    select = _read(sql)
    yield from (condition for condition in (select.where if select else ()) if isinstance(condition, During))


def _names(node: Any) -> Iterator[Name]:
    """The names in a query that may be attributes', in the order of the text."""
    match node:
        case Name():
            yield node
        case Item(operand=operand):
            yield from _names(operand)
        case Call(arguments=arguments):
            yield from _names(arguments)
        case tuple():
            for each in node:
                yield from _names(each)
        case Select() | Condition() | Clause() | Test() | Order():
            for field in fields(node):
                yield from _names(getattr(node, field.name))
