"""Raw columns of any kind become posts, or rejects with a reason."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.common.kernels.hashing import hash_strings
from nearcast.common.post_schema import BASE_FIELDS, REJECTS
from nearcast.sources.iso_times import parse_times, parse_times_one_by_one
from nearcast.sources.records import normalise
from nearcast.sources.values import string_buffers

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN = float("nan")


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def table(**columns) -> pa.Table:
    rows = max((len(column) for column in columns.values()), default=1)
    good = {"id": list(range(rows)), "ts": [0] * rows, "lat": [1.5] * rows, "lon": [2.5] * rows, "text": ["hi"] * rows}
    return pa.table({**good, **columns})


def one(**values) -> dict:
    """The single post of a table of one row."""
    posts, rejects = normalise(
        table(**{name: value if isinstance(value, pa.Array) else [value] for name, value in values.items()})
    )
    assert rejects.num_rows == 0, rejects.to_pylist()
    return posts.to_pylist()[0]


def reason(**values) -> str:
    posts, rejects = normalise(
        table(**{name: value if isinstance(value, pa.Array) else [value] for name, value in values.items()})
    )
    assert posts.num_rows == 0
    return rejects["reason"][0].as_py()


def test_posts_have_the_models_columns_then_attributes_by_name():
    posts, rejects = normalise(table(zoo=[1], bar=["x"], **{"a:b": [True]}))
    assert posts.column_names == [*(field.name for field in BASE_FIELDS), "a:b:b", "bar:s", "zoo:i"]
    assert [posts.schema.field(i) for i in range(len(BASE_FIELDS))] == list(BASE_FIELDS)
    assert rejects.schema == REJECTS


def test_an_empty_table_gives_no_posts_and_no_rejects():
    posts, rejects = normalise(table().slice(0, 0))
    assert (posts.num_rows, rejects.num_rows) == (0, 0)


@pytest.mark.parametrize(
    ("given_id", "expected"),
    [
        (pa.array([7], pa.int8()), 7),
        (pa.array([7], pa.uint64()), 7),
        (pa.array([-(2**63)], pa.int64()), -(2**63)),
        (pa.array([7.0], pa.float32()), 7),
        (pa.array([Decimal("12345678901234567")], pa.decimal128(38, 0)), 12345678901234567),
        (pa.array([Decimal("7.00")], pa.decimal128(10, 2)), 7),
    ],
)
def test_a_whole_number_is_its_own_id(given_id, expected):
    post = one(id=given_id)
    assert (post["id"], post["id_text"]) == (expected, None)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["ü1"]),
        pa.array(["ü1"], pa.large_string()),
        pa.array(["ü1"]).dictionary_encode(),
        pa.array(["ü1".encode()], pa.binary()),
        pa.array(["x", "ü1"])[1:],
    ],
)
def test_a_string_id_is_kept_and_hashed(column):
    post = one(id=column)
    assert post["id_text"] == "ü1"
    assert post["id"] == _hash("ü1")


def _hash(text: str) -> int:
    wrap = 2**64 - 1
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & wrap
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & wrap
    h = (h ^ h >> 27) * 0x94D049BB133111EB & wrap
    h ^= h >> 31
    return h - 2**64 if h >= 2**63 else h


def test_the_hash_of_a_string_is_the_same_for_ever():
    strings = ["", "a", "ü", "x" * 1000, None, "17"]
    hashes = hash_strings(*string_buffers(pa.array(["skipped", *strings])[1:]))
    assert hashes.tolist() == [_hash(text or "") for text in strings]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"id": None}, "no id"),
        ({"id": ""}, "no id"),
        ({"id": NAN}, "no id"),
        ({"id": True}, "bad id"),
        ({"id": 1.5}, "bad id"),
        ({"id": float("inf")}, "bad id"),
        ({"id": [1]}, "bad id"),
        ({"id": datetime(2024, 1, 1)}, "bad id"),
        ({"id": 1e19}, "id out of range"),
        ({"id": pa.array([2**63], pa.uint64())}, "id out of range"),
        ({"id": pa.array([b"\xff"])}, "not UTF-8"),
        ({"ts": None}, "no time"),
        ({"ts": ""}, "no time"),
        ({"ts": NAN}, "no time"),
        ({"ts": "yesterday"}, "bad time"),
        ({"ts": "2024-02-30"}, "bad time"),
        ({"ts": "2024-01-01T25:00:00Z"}, "bad time"),
        ({"ts": "2024-01-01T00:00:00+99:00"}, "bad time"),
        ({"ts": True}, "bad time"),
        ({"ts": float("inf")}, "bad time"),
        ({"ts": {"a": 1}}, "bad time"),
        ({"ts": "40000-01-01T00:00:00Z"}, "time out of range"),
        ({"ts": "-0044-03-15"}, "time out of range"),
        ({"ts": "0000-01-01T00:00:00Z"}, "time out of range"),
        ({"ts": "9999-12-31T23:59:59-05:00"}, "time out of range"),
        ({"ts": "9" * 30}, "time out of range"),
        ({"ts": 2**62}, "time out of range"),
        ({"ts": -1e300}, "time out of range"),
        ({"ts": pa.array([2**64 - 1], pa.uint64())}, "time out of range"),
        ({"ts": pa.array([2**40], pa.timestamp("s"))}, "time out of range"),
        ({"ts": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}, "time out of range"),
        ({"lat": None}, "no coordinates"),
        ({"lon": ""}, "no coordinates"),
        ({"lat": NAN}, "bad coordinates"),
        ({"lon": float("-inf")}, "bad coordinates"),
        ({"lat": "north"}, "bad coordinates"),
        ({"lat": "nan"}, "bad coordinates"),
        ({"lon": True}, "bad coordinates"),
        ({"lon": [1.0]}, "bad coordinates"),
        ({"lat": 91}, "latitude out of range"),
        ({"lat": "-90.0001"}, "latitude out of range"),
        ({"lon": 180.5}, "longitude out of range"),
        ({"text": 5}, "text is not a string"),
        ({"text": ["a"]}, "text is not a string"),
        ({"text": pa.array([b"\xff"])}, "not UTF-8"),
        ({"text": "x" * ((4 << 20) + 1)}, "text too long"),
    ],
)
def test_what_is_no_post_is_rejected_with_its_reason(values, expected):
    assert reason(**values) == expected


def test_a_missing_column_is_a_missing_value():
    for name, expected in [("id", "no id"), ("ts", "no time"), ("lat", "no coordinates"), ("lon", "no coordinates")]:
        _, rejects = normalise(table().drop_columns([name]))
        assert rejects["reason"].to_pylist() == [expected]
    posts, _ = normalise(table().drop_columns(["text"]))
    assert posts["text"].to_pylist() == [""]


@pytest.mark.parametrize(
    ("ts", "expected"),
    [
        (1700000000000, 1700000000000000),
        (1700000000000.25, 1700000000000250),
        (-1.5, -1500),
        ("1700000000000", 1700000000000000),
        ("-5", -5000),
        ("2024-01-02T03:04:05Z", micros(datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC))),
        ("2024-01-02 03:04:05", micros(datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC))),
        (" 2024-01-02T03:04:05.123456789Z ", micros(datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC))),
        ("2024-01-02 03:04:05 UTC", micros(datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC))),
        ("2024-01-02T03:04:05+05:30", micros(datetime(2024, 1, 1, 21, 34, 5, tzinfo=UTC))),
        ("2024-01-02T03:04-0100", micros(datetime(2024, 1, 2, 4, 4, tzinfo=UTC))),
        ("2024-01-02T03+01", micros(datetime(2024, 1, 2, 2, tzinfo=UTC))),
        ("2024-02-29", micros(datetime(2024, 2, 29, tzinfo=UTC))),
        ("1969-12-31T23:59:59.5Z", -500_000),
        ("2016-12-31T23:59:60Z", micros(datetime(2017, 1, 1, tzinfo=UTC))),
        ("0001-01-01", micros(datetime(1, 1, 1, tzinfo=UTC))),
        ("9999-12-31T23:59:59.999999Z", micros(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))),
        (date(2024, 1, 2), micros(datetime(2024, 1, 2, tzinfo=UTC))),
        (pa.array([-1], pa.timestamp("ns")), -1),
        (pa.array([5], pa.timestamp("s", "Asia/Tokyo")), 5_000_000),
        (pa.array([5], pa.timestamp("ms")), 5_000),
        (pa.array([86_400_000], pa.int64()).cast(pa.date64()), 86_400_000_000),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), 1500),
    ],
)
def test_a_time_in_any_writing_is_microseconds(ts, expected):
    assert one(ts=ts)["ts"] == expected


def _styles(moment: datetime, style: int) -> str:
    zoned = moment.astimezone(timezone(timedelta(minutes=330)))
    return [
        moment.isoformat().replace("+00:00", "Z"),
        moment.replace(tzinfo=None).isoformat(" "),
        zoned.isoformat(),
        moment.strftime("%Y-%m-%dT%H:%M:%S.%f000+0000"),
    ][style]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), st.integers(0, 3)), max_size=20))
def test_times_in_mixed_styles_agree_with_pythons(cases):
    strings = pa.array([_styles(moment.replace(tzinfo=UTC), style) for moment, style in cases], pa.string())
    expected = [micros(moment.replace(tzinfo=UTC)) for moment, _ in cases]
    us, bad = parse_times_one_by_one(strings)
    assert us.tolist() == expected and not bad.any()
    for style in range(4):
        uniform = pa.array([_styles(moment.replace(tzinfo=UTC), style) for moment, _ in cases], pa.string())
        assert parse_times(uniform)[0].tolist() == expected


def test_coordinates_may_be_numbers_of_any_type_or_numeric_text():
    for lat in (5, "5", " +5.0 ", "5e0", Decimal("5.0"), pa.array([5], pa.uint8()), pa.array([5], pa.float16())):
        assert one(lat=lat)["lat"] == 5.0
    assert one(lat=-90.0, lon=180)["lon"] == 180.0


def test_a_post_without_text_is_a_post_and_a_megabyte_is_fine():
    assert one(text=None)["text"] == ""
    assert len(one(text="é" * (1 << 19))["text"]) == 1 << 19


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pa.array([5], pa.int16()), {"a:i": 5}),
        (pa.array([5], pa.uint64()), {"a:i": 5}),
        (pa.array([2**64 - 1], pa.uint64()), {"a:f": float(2**64 - 1)}),
        (pa.array([1.5], pa.float32()), {"a:f": 1.5}),
        (NAN, {}),
        (float("inf"), {"a:f": float("inf")}),
        (Decimal("1.25"), {"a:f": 1.25}),
        (True, {"a:b": True}),
        ("5", {"a:s": "5"}),
        (pa.array(["x"]).dictionary_encode(), {"a:s": "x"}),
        (pa.array(["x"], pa.string_view()), {"a:s": "x"}),
        (b"\xff\x01", {"a:s": "ff01"}),
        (datetime(2024, 1, 2), {"a:t": datetime(2024, 1, 2, tzinfo=UTC)}),
        (date(2024, 1, 2), {"a:t": datetime(2024, 1, 2, tzinfo=UTC)}),
        ([1, None, "2"][:2], {"a:j": "[1,null]"}),
        ({"k": "é"}, {"a:j": '{"k":"é"}'}),
        (pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(["[1]"])), {"a:j": "[1]"}),
        (timedelta(seconds=1), {"a:s": "0:00:01"}),
        (None, {}),
        (
            pa.array([{"t": 2**40}], pa.struct([("t", pa.timestamp("s"))])),
            {"a:j": '{"t":"<value out of range: 1099511627776>"}'},
        ),
    ],
)
def test_an_attributes_kind_is_that_of_its_value(value, expected):
    assert {name: v for name, v in one(a=value).items() if ":" in name} == expected


def test_columns_of_one_name_are_values_of_several_types():
    base = table(id=[1, 2, 3])
    columns = {
        "id": pa.array([None, "b", None]),
        "price": pa.array([5, None, None]),
        "text": pa.array(["u", None, "w"]),
    }
    raw = pa.Table.from_arrays(
        [
            pa.array([1, None, 3]),
            columns["id"],
            *(base[n] for n in ("ts", "lat", "lon")),
            columns["text"],
            columns["price"],
            pa.array([None, "5", "6"]),
            pa.array([9.5, None, None]),
        ],
        ["id", "id", "ts", "lat", "lon", "text", "price", "price", "price"],
    )
    posts, rejects = normalise(raw)
    assert rejects.num_rows == 0
    assert posts["id_text"].to_pylist() == [None, "b", None]
    assert posts["id"].to_pylist() == [1, _hash("b"), 3]
    assert posts["price:i"].to_pylist() == [5, None, None]
    assert posts["price:s"].to_pylist() == [None, "5", "6"]
    assert "price:f" not in posts.column_names  # the first value of a row counts


def test_attributes_set_only_in_rejected_rows_are_dropped():
    posts, rejects = normalise(table(lat=[1.0, 91.0], a=[None, 5]))
    assert "a:i" not in posts.column_names
    assert json.loads(rejects["raw"][0].as_py()) == {"id": 1, "ts": 0, "lat": 91.0, "lon": 2.5, "text": "hi", "a": 5}


def test_the_raw_record_of_a_reject_is_cut_to_64_kb():
    _, rejects = normalise(table(text=["é" * 100_000], lat=[None]))
    raw = rejects["raw"][0].as_py()
    assert 65_000 < len(raw.encode()) <= 65_536


def test_other_names_are_mapped_and_their_own_names_are_attributes_then():
    raw = pa.table({"id": [1], "created_at": [5], "ts": ["x"], "lat": [1], "lon": [2], "body": ["b"]})
    posts, _ = normalise(raw, {"ts": "created_at", "text": "body"})
    assert posts.to_pylist() == [
        {"id": 1, "id_text": None, "ts": 5000, "lon": 2.0, "lat": 1.0, "text": "b", "ts:s": "x"}
    ]
    with pytest.raises(BadInput, match="cannot map 'when'"):
        normalise(raw, {"when": "ts"})


def test_good_rows_keep_their_order_around_bad_ones():
    rng = np.random.default_rng(1)
    lat = rng.uniform(-120, 120, 1000)
    posts, rejects = normalise(table(lat=lat, id=np.arange(1000)))
    assert posts["id"].to_pylist() == np.flatnonzero(np.abs(lat) <= 90).tolist()
    assert rejects.num_rows == (np.abs(lat) > 90).sum()
