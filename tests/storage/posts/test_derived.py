"""Derived attributes against their definitions, of segments and of tables, and beside a post's own values."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.post_schema import ATTRIBUTE_KINDS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.storage.posts.derived import DERIVED, attributes_of, cell_names, derive, derive_from, with_derived
from nearcast.storage.posts.post_segment import PostSegment, write_posts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
DAY = 86_400_000_000


def geohash(lon: float, lat: float) -> str:
    """By halving the world in turn, east and west, north and south; what lies on the line is east, or north."""
    bounds = [[-180.0, 180.0], [-90.0, 90.0]]
    bits = ""
    for turn in range(25):
        low, high = bounds[turn % 2]
        middle = (low + high) / 2
        upper = (lon, lat)[turn % 2] >= middle
        bounds[turn % 2] = [middle, high] if upper else [low, middle]
        bits += "1" if upper else "0"
    return "".join(BASE32[int(bits[i : i + 5], 2)] for i in range(0, 25, 5))


def meant(post: dict[str, Any], name: str) -> Any:
    moment = EPOCH + timedelta(microseconds=post["ts"])
    match name:
        case "date":
            return moment.replace(hour=0, minute=0, second=0, microsecond=0)
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "weekday":
            return moment.isoweekday()
        case "length":
            return len(post["text"])
    return geohash(post["lon"], post["lat"])


def table_of(posts: list[dict[str, Any]], **attributes: pa.Array) -> pa.Table:
    """Posts as a segment takes them, each with its number as its id."""
    columns: dict[str, Any] = {
        "id": pa.array(range(len(posts)), pa.int64()),
        "id_text": pa.nulls(len(posts), pa.string()),
        "ts": pa.array([post["ts"] for post in posts], pa.int64()),
        "lon": pa.array([post["lon"] for post in posts], pa.float64()),
        "lat": pa.array([post["lat"] for post in posts], pa.float64()),
        "text": pa.array([post["text"] for post in posts], pa.string()),
        **attributes,
    }
    terms, offsets = Tokenizer(keep_accents=False).terms(pa.chunked_array([columns["text"]]))
    columns["leaf"] = pa.array(np.zeros(len(posts), np.int32))
    columns["terms"] = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms))
    return pa.table(columns)


def post(ts: int = 0, lon: float = 0.0, lat: float = 0.0, text: str = "") -> dict[str, Any]:
    return {"ts": ts, "lon": lon, "lat": lat, "text": text}


EDGES = [k * 45 / 1024 for k in (-4096, -2048, -1, 0, 1, 7, 1999, 2048, 4095)]
BESIDE = [x for edge in EDGES for x in (np.nextafter(edge, -360), edge, np.nextafter(edge, 360))]
posts_of = st.builds(
    post,
    ts=st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999) | st.sampled_from([-1, 0, DAY - 1, DAY]),
    lon=(st.floats(-180, 180) | st.sampled_from(BESIDE)).map(lambda x: min(180.0, max(-180.0, float(x)))),
    lat=(st.floats(-90, 90) | st.sampled_from(BESIDE)).map(lambda x: min(90.0, max(-90.0, float(x)))),
    text=st.text(max_size=12) | st.sampled_from(["", "naïve café", "東京 🗼", "e\u0301"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(posts_of, max_size=6))
def test_a_derived_value_is_what_its_name_says_of_segments_and_of_tables(posts: list[dict[str, Any]]) -> None:
    table = table_of(posts)
    segment = PostSegment.of(table)
    rows = np.arange(len(segment))
    ids = segment.ids(rows).tolist()
    for name, kind in DERIVED.items():
        found, of_table = derive(segment, rows, name), derive_from(table, name)
        assert found.type == of_table.type == ATTRIBUTE_KINDS[kind]
        assert found.to_pylist() == [meant(posts[i], name) for i in ids], name
        assert of_table.to_pylist() == [meant(each, name) for each in posts], name


@pytest.mark.parametrize(
    ("lon", "lat", "name"),
    [
        (-5.60302734375, 42.60498046875, "ezs42"),  # the usual example
        (10.40744, 57.64911, "u4pru"),
        (0.0, 0.0, "s0000"),
        (-0.0, -0.0, "s0000"),
        (-1e-300, -1e-300, "7zzzz"),
        (180.0, 90.0, "zzzzz"),
        (-180.0, -90.0, "00000"),
        (-180.0, 90.0, "bpbpb"),
        (180.0, -90.0, "pbpbp"),
    ],
)
def test_a_cell_is_the_geohash_of_its_place_at_poles_and_the_antimeridian_too(
    lon: float, lat: float, name: str
) -> None:
    assert cell_names(np.array([lon]), np.array([lat])).to_pylist() == [name]


def test_lengths_are_stored_and_counted_where_a_segment_is_older(tmp_path: Path) -> None:
    posts = [post(lon=float(i), text="é" * i) for i in range(300)]
    write_posts(tmp_path / "one", table_of(posts))
    segment = PostSegment(tmp_path / "one")
    rows = np.array([299, 0, 7, 7, 256])
    right = segment.ids(rows).tolist()
    assert segment.lengths(rows).tolist() == right
    del segment.arrays["length"]
    assert segment.lengths(rows).tolist() == right
    assert segment.lengths(rows[:0]).tolist() == []


def test_a_posts_own_value_of_any_kind_wins_over_the_derived_one() -> None:
    posts = [post(lon=float(i), text="abc") for i in range(3)]
    table = table_of(posts, **{"length:i": pa.array([7, None, None]), "length:s": pa.array([None, "long", None])})
    segment = PostSegment.of(table)
    rows = np.arange(3)
    rows = rows[np.argsort(segment.ids(rows))]
    for found in (attributes_of(segment, rows, ["length"]), with_derived(table, ["length"])):
        assert found["length:i"].to_pylist() == [7, None, 3]
        assert found["length:s"].to_pylist() == [None, "long", None]


def test_attributes_of_a_segment_are_stored_ones_and_derived_ones_and_never_forget_how_many_posts_there_are() -> None:
    table = table_of([post(text="abc"), post(lon=1.0)], **{"price:i": pa.array([5, None])})
    segment = PostSegment.of(table)
    found = attributes_of(segment, np.array([0, 1, 0]), ["price", "weekday", "nothing"])
    assert sorted(found["price:i"].to_pylist(), key=str) == [5, 5, None]
    assert found["weekday:i"].to_pylist() == [4, 4, 4]
    assert len(attributes_of(segment, np.array([0, 1, 0]), ["nothing"])) == 3
    assert len(attributes_of(segment, np.empty(0, np.int64), ["weekday"])) == 0


def test_what_is_not_asked_for_is_not_added() -> None:
    table = table_of([post()])
    assert with_derived(table, ["price"]) is table
    assert "hour:t" not in with_derived(table, ["cell"]).column_names
