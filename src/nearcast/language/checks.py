"""What makes no sense in a search, or in a subscription."""

from collections.abc import Iterator

from nearcast.language.messages import Span, pointed
from nearcast.language.syntax import Call, During, Select, read_select, span_of
from nearcast.language.times import moment
from nearcast.model.errors import QueryError
from nearcast.model.queries import NearestQuery, RangeQuery, Statement, TermsQuery


def check_subscription(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a subscription, which looks ahead."""
    query = statement.query
    if isinstance(query, TermsQuery):
        _check_reports(statement, query)
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


def _check_reports(statement: Statement, query: TermsQuery) -> None:
    """Frequent terms are reported on a beat over a window that slides (seed 000 §3.1: δ and T)."""
    sql = statement.sql
    if query.since or query.until:
        message = "the window of a subscription slides: AFTER gives its length, FOR ends the subscription"
        raise _at(statement, _during(sql, 2), message, "time AFTER '1 hour ago' in place of BETWEEN")
    if query.after is None:
        message = "a subscription to frequent terms counts over a window, and this one has none"
        raise _at(statement, _function(sql), message, "time AFTER '1 hour ago' in the WHERE")
    if query.after.ago is None:
        message = "the window of a subscription slides, so it cannot begin at a fixed time"
        raise _at(statement, _during(sql, 1), message, "a length of time such as '1 hour ago'")
    if query.after.ago <= 0:
        raise _at(statement, _first_ago(sql), "this window has no length", "a length of time such as '1 hour ago'")
    if query.k < 1:
        raise _at(statement, _function(sql), "a report has at least one term", "TopK(text, 10)")
    if query.beat is None:
        message = "a subscription to frequent terms reports on a beat, and this one has none"
        raise _at(statement, _function(sql), message, "SYNC 1 minute at the end")


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
    return next((span_of(item.operand) for item in items if isinstance(item.operand, Call)), None)


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
