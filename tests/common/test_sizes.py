"""Sizes that options take: decimal for MB, binary for MiB."""

import pytest

from nearcast.common.errors import BadInput
from nearcast.common.sizes import size_of


@pytest.mark.parametrize(
    ("text", "size_"),
    [("20GB", 20 * 10**9), ("500 MiB", 500 << 20), ("1.5kb", 1500), ("7b", 7), (7, 7), ("2tb", 2 * 10**12), ("9 B", 9)],
)
def test_a_size_is_a_number_and_a_unit(text: str | int, size_: int) -> None:
    assert size_of(text, "--keep-size") == size_


@pytest.mark.parametrize("text", ["", "0", "20", " 1.5 ", "0GB", "-1", "GB", "20 gigs", "1e9", "nan", "20GB!"])
def test_what_is_no_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="--keep-size") as error:
        size_of(text, "--keep-size")
    assert "\n" not in str(error.value)
