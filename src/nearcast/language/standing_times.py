"""What a subscription may say of time: posts to come, or a window that slides with the clock and reports on a tick."""

from nearcast.common.queries import Statement
from nearcast.language.locate import after_span, ago_span, between_span, error_at, function_span

SLIDES = "time AFTER '1 hour ago'"


def check_looks_ahead(statement: Statement) -> None:
    """Raises QueryError where a subscription asks for posts from before it."""
    query = statement.query
    if any(bound and bound.ago is not None for bound in (query.after, query.since, query.until)):
        message = "a subscription looks ahead, so nothing in it can be so long ago; end it with FOR"
        raise error_at(statement, ago_span(statement.sql), message, "a fixed time, or FOR 72 HOURS at the end")


def check_slides(statement: Statement) -> None:
    """Raises QueryError where the window of a subscription that reports on a tick does not slide: its length is that
    of the AFTER (SSTD §3.1: T; STAR §5.2).
    """
    query, sql = statement.query, statement.sql
    if query.since or query.until:
        message = "the window of a subscription slides: AFTER gives its length, FOR ends the subscription"
        raise error_at(statement, between_span(sql), message, f"{SLIDES} in place of BETWEEN")
    if query.after is None:
        return
    if query.after.ago is None:
        message = "the window of a subscription slides, so it cannot begin at a fixed time"
        raise error_at(statement, after_span(sql), message, "a length of time such as '1 hour ago'")
    if query.after.ago <= 0:
        raise error_at(statement, ago_span(sql), "this window has no length", "a length of time such as '1 hour ago'")


def check_sync(statement: Statement, sync: int | None, what: str) -> None:
    """Raises QueryError where a subscription to `what` does not say how often it reports (SSTD §3.1: δ)."""
    if sync is None:
        message = f"a subscription to {what} reports on a beat, and this one has none"
        raise error_at(statement, function_span(statement.sql), message, "SYNC 1 minute at the end")
