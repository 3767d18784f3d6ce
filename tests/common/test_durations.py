"""Lengths of time that options take."""

import pytest

from nearcast.common.durations import duration_of, optional_duration_of
from nearcast.common.errors import BadInput

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("10s", 10 * SECOND), ("5m", 300 * SECOND), ("12h", 43_200 * SECOND), ("30d", 30 * 86_400 * SECOND),
        ("1.5h", 5_400 * SECOND), ("250ms", SECOND // 4), ("2 w", 14 * 86_400 * SECOND), ("0s", 0),
    ],
)  # fmt: skip
def test_a_duration_is_a_number_and_a_unit(text: str, length: int) -> None:
    assert duration_of(text, "--lateness") == length


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 fortnights", "1e9d", "5M", "99999999999d", "nan s"])
def test_what_is_no_duration_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="--lateness") as error:
        duration_of(text, "--lateness")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("text", "length"), [(None, None), ("none", None), ("None", None), ("1m", 60 * SECOND)])
def test_a_bound_can_be_lifted(text: str | None, length: int | None) -> None:
    assert optional_duration_of(text, "--max-future") == length


def test_a_number_is_microseconds() -> None:
    assert duration_of(250, "lateness") == 250
    with pytest.raises(BadInput, match="lateness -1"):
        duration_of(-1, "lateness")
