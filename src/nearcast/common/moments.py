"""Points in time as options spell them."""

import re
from datetime import UTC, datetime

from nearcast.common.errors import BadInput


def moment_of(text: str, option: str) -> int:
    """An ISO 8601 time (UTC unless it says otherwise), or milliseconds since the epoch, in microseconds.

    >>> moment_of("1970-01-01T00:00:01Z", "--ts"), moment_of("1000", "--ts")
    (1000000, 1000000)
    """
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text) * 1000
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{option} {text!r} is not a time: give one such as 2026-05-01T12:00:00Z") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1_000_000)
