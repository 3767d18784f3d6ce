"""Points in time that options take."""

import pytest

from nearcast.common.errors import BadInput
from nearcast.common.moments import moment_of

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:01Z", SECOND), ("1970-01-01T00:00:01", SECOND), ("1970-01-01T01:00:01+01:00", SECOND),
        ("1000", SECOND), ("2026-05-01T12:00:00.000001Z", 1_777_636_800_000_001),
    ],
)  # fmt: skip
def test_a_moment_is_iso_or_milliseconds(text: str, micros: int) -> None:
    assert moment_of(text, "--ts") == micros


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(BadInput, match="--ts 'tomorrow' is not a time"):
        moment_of("tomorrow", "--ts")
