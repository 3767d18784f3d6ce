"""What can be typed after an option, and what it means."""

import pytest

from nearcast.cli.options import mapping
from nearcast.common.errors import BadInput


def test_a_mapping_names_fields() -> None:
    assert mapping(["ts=created_at,text=comments", "lat = latitude"]) == {
        "ts": "created_at", "text": "comments", "lat": "latitude",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["ts", "ts=", "=x", "when=created_at", "ts=a,ts=b"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--map"):
        mapping([text])
