"""Times and lengths of time as a query writes them, in microseconds."""

import re
from datetime import UTC, datetime, timedelta
from math import isfinite

from nearcast.common.queries import TimeBound
from nearcast.language.messages import Span, nearest, pointed, shown
from nearcast.language.syntax import Number, Quantity, String

SECOND = 1_000_000
UNITS = {
    **dict.fromkeys(("second", "seconds", "sec", "secs"), SECOND),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), 60 * SECOND),
    **dict.fromkeys(("hour", "hours"), 3600 * SECOND),
    **dict.fromkeys(("day", "days"), 86_400 * SECOND),
    **dict.fromkeys(("week", "weeks"), 7 * 86_400 * SECOND),
}
_LONGEST = 100_000 * 366 * 86_400 * SECOND  # added to any time, still 64 bits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGO = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([^\W\d]+)(?:\s+(\S+))?\s*")
_EXAMPLES = "'72 hours ago' or an ISO 8601 time such as '2026-05-01T12:00:00Z'"


def duration(sql: str, quantity: Quantity) -> int:
    """A length of time greater than 0, as after FOR."""
    length = _length(sql, quantity.number.text, quantity.number.span, quantity.unit.text, quantity.unit.span)
    if length <= 0:
        raise pointed(sql, quantity.number.span, "this is no time at all", "a number greater than 0")
    return length


def moment(sql: str, node: String | Number) -> TimeBound:
    """'72 hours ago', an ISO 8601 time (UTC unless it says otherwise), or a number: milliseconds since the epoch."""
    if isinstance(node, Number):
        return TimeBound(at=_from_milliseconds(sql, node))
    if match := _AGO.fullmatch(node.text):
        if (match[3] or "").lower() != "ago":
            where = node.within(*match.span(3)) if match[3] else node.within(len(node.text), len(node.text) + 1)
            raise pointed(sql, where, "a time before now ends in ago", _EXAMPLES)
        number, unit = node.within(*match.span(1)), node.within(*match.span(2))
        return TimeBound(ago=_length(sql, match[1], number, match[2], unit))
    try:
        at = datetime.fromisoformat(node.text.strip())
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return TimeBound(at=(at - _EPOCH) // timedelta(microseconds=1))
    except (ValueError, OverflowError):
        raise pointed(sql, node.span, "this is not a time", _EXAMPLES) from None


def _length(sql: str, number: str, number_span: Span, unit: str, unit_span: Span) -> int:
    if unit.lower() not in UNITS:
        message = f"{shown(unit)} is no unit of time"
        raise pointed(sql, unit_span, message, "seconds, minutes, hours, days or weeks", nearest(unit, UNITS))
    try:
        length = float(number) * UNITS[unit.lower()]
    except ValueError:
        raise pointed(sql, number_span, f"{shown(number)} is no number", "a number") from None
    if not 0 <= length <= _LONGEST:
        raise pointed(sql, number_span, "no such length of time", "a number from 0 to 100,000 years")
    return round(length)


def _from_milliseconds(sql: str, node: Number) -> int:
    try:
        if isfinite(node.value):
            _EPOCH + timedelta(milliseconds=node.value)
            return round(node.value * 1000)
    except OverflowError:
        pass
    raise pointed(sql, node.span, "no such time", "milliseconds since 1970, in the years 1 to 9999")
