"""Lengths of time as options spell them, "30d" or "5m", in microseconds. (Those of a query are the language's.)"""

import re

from nearcast.common.errors import BadInput

UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000}
NO_BOUND = ("none", "never", "forever")


def duration_of(text: str | int, option: str) -> int:
    """The microseconds that `option` was given: '30d', '12h', '5m', '10s', or a number of microseconds.

    >>> duration_of("1.5h", "--lateness"), duration_of(250, "--lateness")
    (5400000000, 250)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*", text) if isinstance(text, str) else None
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        length = text
    elif match is not None:
        length = round(float(match[1]) * UNITS[match[2]])
    else:
        raise BadInput(
            f"{option} {text!r} is not a length of time: give a number and a unit, such as 30d, 12h, 5m or 10s"
        )
    if length > 36_600_000 * UNITS["d"]:
        raise BadInput(f"{option} {text} is longer than 100,000 years")
    return length


def optional_duration_of(text: str | int | None, option: str) -> int | None:
    """A length of time; None for 'none', or where nothing was given."""
    if text is None or (isinstance(text, str) and text.strip().lower() in NO_BOUND):
        return None
    return duration_of(text, option)


def duration_text(length: int) -> str:
    """A length of time as `duration_of` reads it, in the largest unit of which it is a whole number.

    >>> duration_text(5_400_000_000)
    '90m'
    """
    unit = max((name for name in UNITS if length % UNITS[name] == 0), key=lambda name: UNITS[name], default="ms")
    return f"{length / UNITS[unit]:g}{unit}"
