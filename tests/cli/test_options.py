"""What can be typed after an option, and what it means."""

import pytest

from nearcast.cli.options import mapping, moment, world
from nearcast.common.errors import BadInput

SECOND = 1_000_000


def test_a_mapping_names_fields() -> None:
    assert mapping(["ts=created_at,text=comments", "lat = latitude"]) == {
        "ts": "created_at", "text": "comments", "lat": "latitude",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["ts", "ts=", "=x", "when=created_at", "ts=a,ts=b"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--map"):
        mapping([text])


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:01Z", SECOND), ("1970-01-01T00:00:01", SECOND), ("1970-01-01T01:00:01+01:00", SECOND),
        ("1000", SECOND), ("2026-05-01T12:00:00.000001Z", 1_777_636_800_000_001),
    ],
)  # fmt: skip
def test_a_moment_is_iso_or_milliseconds(text: str, micros: int) -> None:
    assert moment("--ts", text) == micros


def test_what_is_no_moment_is_refused() -> None:
    with pytest.raises(BadInput, match="--ts 'tomorrow' is not a time"):
        moment("--ts", "tomorrow")


def test_a_world_has_seed_rate_and_count() -> None:
    assert world("posts/") is None
    assert world("world") == ({}, 2000.0, None)
    assert world("world:seed=7,rate=500,count=1000") == ({"seed": 7, "rate": 500.0}, 500.0, 1000)
    assert world("world:rate=max,start=1970-01-01T00:00:01Z") == ({"start": SECOND}, None, None)


@pytest.mark.parametrize("text", ["world:size=3", "world:seed=x", "world:count=1.5", "world:rate=fast", "world:seed"])
def test_what_no_world_has_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="world"):
        world(text)
