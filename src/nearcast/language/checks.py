"""What makes no sense in a search, or in a subscription."""

from nearcast.language.messages import Span, pointed
from nearcast.language.syntax import During, Select, read_select
from nearcast.language.times import moment
from nearcast.model.errors import QueryError
from nearcast.model.queries import Statement


def check_subscription(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a subscription, which looks ahead."""
    query = statement.query
    bounds = (query.after, query.since, query.until)
    if any(bound and bound.ago is not None for bound in bounds):
        message = "a subscription looks ahead, so nothing in it can be so long ago; end it with FOR"
        raise _at(statement, _first_ago(statement.sql), message, "a fixed time, or FOR 72 HOURS at the end")
    if query.limit is not None:
        message = "a subscription gives every post that matches; LIMIT is for searches"
        raise _at(statement, _clause(statement.sql, "LIMIT"), message, "FOR 72 HOURS to end it, or nothing")


def check_search(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a search, which looks back."""
    if statement.query.life is not None:
        message = "a search looks back and is answered once; FOR is for subscriptions"
        raise _at(statement, _clause(statement.sql, "FOR"), message, "time AFTER '72 hours ago', or nothing")


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


def _first_ago(sql: str) -> Span | None:
    select = _read(sql)
    for condition in select.where if select else ():
        if isinstance(condition, During):
            for each in condition.moments:
                if moment(sql, each).ago is not None:
                    return each.span
    return None
