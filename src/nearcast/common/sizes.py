"""Sizes as people write them, "500 MB" or "1.5 GiB", in bytes: MB is decimal, MiB is binary, everywhere."""

import re

from nearcast.common.errors import BadInput

UNITS = {name: 1000**n for n, name in enumerate(("b", "kb", "mb", "gb", "tb"))}
UNITS |= {name: 1024**n for n, name in enumerate(("kib", "mib", "gib", "tib"), 1)}


def size_of(text: str | int, option: str) -> int:
    """The bytes that `option` was given: '20GB', '500 MiB', or a number.

    A text needs its unit, so that nobody who means 20 gigabytes gets 20 bytes.

    >>> size_of("500 MB", "cache"), size_of("500 MiB", "cache"), size_of(1000, "cache")
    (500000000, 524288000, 1000)
    """
    written = f"{text}b" if isinstance(text, int) else text
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", written.strip().lower())
    if found is None or found[2] not in UNITS or not (size := round(float(found[1]) * UNITS[found[2]])):
        raise BadInput(f"{option} {text!r} is no size: give a number and a unit, such as '20 GB' or '500 MB'")
    return size
