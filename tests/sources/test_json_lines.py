"""JSON Lines: both ways of reading them give the same posts and rejects."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.sources import lines
from nearcast.sources.formats import FilePart, read_split
from nearcast.sources.json_lines import parse_json_lines, parse_line_by_line, parse_uniform
from nearcast.sources.records import normalise_rows
from tests.sources.reading import GOOD, attributes, line, read, rows


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"id": 1, "lat"', "broken JSON"),
        (b"{'id': 1}", "broken JSON"),
        (b'{"id": 1} {"id": 2}', "broken JSON"),
        (b'{"id": ' + b"9" * 5000 + b"}", "broken JSON"),
        (b"[" * 100_000, "broken JSON"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "broken JSON"),
        (b"[1, 2]", "not an object"),
        (b"null", "not an object"),
        (b"5", "not an object"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b'{"id": "\\ud800"}', "not UTF-8"),
        (b"{}", "no id"),
        (line(lat=None), "no coordinates"),
        (line(lat=91), "latitude out of range"),
        (line(ts="40000-01-01"), "time out of range"),
        (line(text=5), "text is not a string"),
        (b'{"id": 1, "ts": 0, "lat": NaN, "lon": 0}', "bad coordinates"),
        (b'{"id": 1, "ts": 0, "lat": 1e999, "lon": 0}', "bad coordinates"),
    ],
)
def test_a_bad_line_is_a_reject_and_its_neighbours_are_posts(tmp_path, bad, reason):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([line(id=1), bad, b"", b"  \r", line(id=2)]))
    posts, rejects = read(path)
    assert [post["id"] for post in posts] == [1, 2]
    assert [r for r, _ in rejects] == [reason]
    assert rejects[0][1] == bad.decode("utf-8", "replace")[:65_536]


def test_the_type_belongs_to_the_value(tmp_path):
    prices = [5, "5", 5.0, 5.5, True, [1], {"a": None}, None, 2**53 + 1, 2**70, "2024-01-01", 1e300]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(line(price=price) for price in prices))
    posts, _ = read(path)
    assert [attributes(post) for post in posts] == [
        {"price:i": 5},
        {"price:s": "5"},
        {"price:i": 5},
        {"price:f": 5.5},
        {"price:b": True},
        {"price:j": "[1]"},
        {"price:j": '{"a":null}'},
        {},
        {"price:i": 2**53 + 1},
        {"price:f": float(2**70)},
        {"price:s": "2024-01-01"},
        {"price:f": 1e300},
    ]


def test_ids_may_be_numbers_and_strings_in_one_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(line(id=i) for i in [1, "1", 2.0, 2**63 - 1]))
    posts, rejects = read(path)
    assert [post.get("id_text", post["id"]) for post in posts] == [1, "1", 2, 2**63 - 1]
    assert rejects == []


def test_of_a_key_given_twice_the_last_counts_and_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line(a=1)[:-1] + b', "a": 2}\r\n' + line(id=2))
    posts, rejects = read(path)
    assert [attributes(post) for post in posts] == [{"a:i": 2}, {}] and rejects == []


UNIFORM = [
    [{"a": 5}, {"a": 5.5}],
    [{"a": "2024-01-01"}, {"a": "2024-01-01T00:00:00Z"}],
    [{"a": None}] * 25 + [{"a": "2024-01-01"}],
    [{"a": None}, {"b": 'ü\U0001f600 \\ " \n \u0000'}],
    [{"id": "x"}, {"id": "y", "a": -0.0}],
    [{"lat": 91}, {"lat": 5}, {"lat": 5.5}],
    [{"": 1}],
]


@pytest.mark.parametrize("records", UNIFORM)
def test_uniform_lines_take_the_fast_path_and_give_what_the_slow_one_gives(records):
    data = b"\n".join(line(**record) for record in records) + b"\n"
    assert parse_uniform(data) is not None
    assert _posts_of(parse_json_lines(data)) == _posts_of(parse_line_by_line(data))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["", "5", "2024-01-01", "2024-01-01T00:00:00Z", "true", "é", "\U0001f600", "\ud800", "\x00", "a\nb"]
    ),
    st.sampled_from([2**53, 2**53 + 1, 2.0**53, 1e22, -(2**63), 2**63, 10**400, -0.0]),
)
nested = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.sampled_from("xy"), scalars, max_size=2))
names = st.sampled_from(["id", "ts", "lat", "lon", "text", "a", "b", ""])
kinds = st.sampled_from([scalars, nested, st.integers(-9, 9), st.floats(-9, 9), st.text("a2-", max_size=3)])


@st.composite
def json_files(draw) -> bytes:
    fields = draw(st.dictionaries(names, kinds, max_size=5))
    record = st.fixed_dictionaries({}, optional={name: draw(st.just(kind)) for name, kind in fields.items()})
    base = draw(st.sampled_from([{}, GOOD]))
    encoded = st.builds(
        lambda r, ascii: json.dumps({**base, **r}, ensure_ascii=ascii).encode("utf-8", "surrogatepass"),
        record,
        st.booleans(),
    )
    broken = st.sampled_from(
        [b"", b"{}", b"{", b"[]", b'{"a":1}{"a":2}', b'{"a":1,"a":2}', b'{"a":', b"}", b"\xff", b" "]
    )
    lines = draw(st.lists(st.one_of([encoded] * 8 + ([broken] if draw(st.booleans()) else [])), max_size=8))
    return draw(st.sampled_from([b"\n", b"\r\n"])).join(lines) + draw(st.sampled_from([b"", b"\n"]))


def _posts_of(raw):
    normalised = normalise_rows(raw.table)
    rejects = list(zip(normalised.reasons, raw.records(normalised.rejected), strict=True))
    return repr(rows([(normalised.posts, raw.rejects)])), rejects


@settings(max_examples=400, deadline=None)
@given(json_files())
def test_both_json_paths_give_the_same_posts_and_rejects(data):
    assert _posts_of(parse_json_lines(data)) == _posts_of(parse_line_by_line(data))


def test_a_line_over_the_limit_is_one_reject(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 100)
    monkeypatch.setattr(lines, "MAX_LINE", 250)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([line(id=1), line(text="x" * 5000), line(id=2), line(text="y" * 5000)]))
    for split in (FilePart(str(path), "jsonl", 0, path.stat().st_size), FilePart(str(path), "jsonl", 0, 5300)):
        posts, rejects = rows(read_split(split))
        assert [post["id"] for post in posts] == [1, 2]
        assert [reason for reason, _ in rejects] == ["broken JSON"] * 2
