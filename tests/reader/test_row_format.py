"""Times as people read them."""

import pytest

from nearcast.reader.row_format import iso

YEAR = 31_556_952_000_000


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (1_500_000, "1970-01-01T00:00:01.5Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        (253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
        (253_402_300_800_000_000, "10000-01-01T00:00:00.000000Z"),
        (100_000 * YEAR, "101970-01-01T00:00:00.000000Z"),
    ],
)
def test_a_time_is_iso_8601_however_far_away(micros: int, text: str) -> None:
    assert iso(micros) == text
