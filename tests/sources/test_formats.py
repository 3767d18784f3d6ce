"""Files and splits of them: every format, both JSON paths, and any cutting, give the same posts."""

import csv
import gzip
import io
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.model.errors import BadInput
from nearcast.sources import formats, lines
from nearcast.sources.formats import Split, count_units, read_split, whole_file
from nearcast.sources.json_lines import parse_json_lines, parse_line_by_line, parse_uniform
from nearcast.sources.records import normalise_rows

GOOD = {"id": 1, "ts": 0, "lat": 1, "lon": 2, "text": "hi"}


def rows(pieces) -> tuple[list[dict], list[tuple[str, str]]]:
    """(what is set in each post, (reason, raw) of each reject) of pieces."""
    posts, rejects = [], []
    for table, refused in pieces:
        posts += [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
        rejects += [(row["reason"], row["raw"]) for row in refused.to_pylist()]
    return posts, rejects


def read(path: Path, mapping=None):
    return rows(read_split(whole_file(str(path)), mapping or {}))


def line(**values) -> bytes:
    return json.dumps({**GOOD, **values}).encode()


def attributes(post: dict) -> dict:
    return {name: value for name, value in post.items() if ":" in name}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.parquet", "parquet"),
        ("a.JSONL", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.json", "jsonl"),
        ("a.csv", "csv"),
        ("a.jsonl.gz", "jsonl.gz"),
        ("a.csv.gz", "csv.gz"),
        ("a.txt", None),
        ("a.gz", None),
        ("parquet", None),
    ],
)
def test_the_ending_of_a_name_is_its_format(name, form):
    assert formats.format_of(name) == form


def test_an_unknown_ending_and_an_unreadable_file_are_bad_input(tmp_path):
    with pytest.raises(BadInput, match=r"known endings are .parquet"):
        count_units(str(tmp_path / "a.txt"))
    with pytest.raises(BadInput, match="is missing"):
        count_units(str(tmp_path / "a.parquet"))
    (tmp_path / "b.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(BadInput, match="cannot read"):
        count_units(str(tmp_path / "b.parquet"))


# --- JSON Lines


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
    for split in (Split(str(path), "jsonl", 0, path.stat().st_size), Split(str(path), "jsonl", 0, 5300)):
        posts, rejects = rows(read_split(split))
        assert [post["id"] for post in posts] == [1, 2]
        assert [reason for reason, _ in rejects] == ["broken JSON"] * 2


# --- CSV


def csv_bytes(*records, terminator="\n") -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=terminator).writerows(records)
    return out.getvalue().encode()


HEADER = ["id", "ts", "lat", "lon", "text", "a"]


def test_a_csv_values_spelling_is_its_kind(tmp_path):
    spellings = [
        "5",
        "-5",
        "007",
        "-0",
        "5.0",
        "1e3",
        ".5",
        "true",
        "FALSE",
        "yes",
        "",
        "x",
        "9" * 19,
        str(2**63 - 1),
        " 5",
    ]
    path = tmp_path / "a.csv"
    path.write_bytes(csv_bytes(HEADER, *([i, 0, 1, 2, "5", a] for i, a in enumerate(spellings))))
    posts, rejects = read(path)
    assert rejects == [] and {post["text"] for post in posts} == {"5"}
    assert [attributes(post) for post in posts] == [
        {"a:i": 5},
        {"a:i": -5},
        {"a:s": "007"},
        {"a:s": "-0"},
        {"a:f": 5.0},
        {"a:f": 1000.0},
        {"a:s": ".5"},
        {"a:b": True},
        {"a:b": False},
        {"a:s": "yes"},
        {},
        {"a:s": "x"},
        {"a:s": "9" * 19},
        {"a:i": 2**63 - 1},
        {"a:s": " 5"},
    ]


def test_csv_ids_are_canonical_integers_or_text(tmp_path):
    path = tmp_path / "a.csv"
    ids = ["0", "17", "-3", "017", "+1", "q1", "1234567890123456789", ""]
    path.write_bytes(csv_bytes(HEADER, *([i, "2024-01-01", "1.5", " 2 ", "", ""] for i in ids)))
    posts, rejects = read(path)
    given = [post.get("id_text", post["id"]) for post in posts]
    assert given == [0, 17, -3, "017", "+1", "q1", 1234567890123456789]
    assert [reason for reason, _ in rejects] == ["no id"]


@pytest.mark.parametrize("terminator", ["\n", "\r\n"])
def test_a_csv_row_with_the_wrong_number_of_fields_is_a_reject(tmp_path, terminator):
    path = tmp_path / "a.csv"
    path.write_bytes(
        csv_bytes(
            HEADER,
            [1, 0, 1, 2, "t", ""],
            [2, 0],
            [],
            [3, 0, 1, 2, "t", "", 7],
            [4, 0, 1, 2, "t", ""],
            terminator=terminator,
        )
    )
    posts, rejects = read(path)
    assert [post["id"] for post in posts] == [1, 4]
    assert rejects == [("wrong number of fields", "2,0"), ("wrong number of fields", "3,0,1,2,t,,7")]


def test_csv_bytes_that_are_no_utf8_cost_only_their_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(csv_bytes(HEADER) + b"1,0,1,2,\xe9t\xe9,\n2,0,1,2,ok,x\n3,0\n")
    posts, rejects = read(path)
    assert [post["text"] for post in posts] == ["ok"]
    assert [reason for reason, _ in rejects] == ["not UTF-8", "wrong number of fields"]


def test_a_csv_with_newlines_in_quotes_is_read_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 64)
    texts = ["two\nlines", 'say "hi"\n', "plain", "a,b", "\n\n", "five"] * 5
    path = tmp_path / "a.csv"
    path.write_bytes(csv_bytes(HEADER, *([i, 0, 1, 2, text, i] for i, text in enumerate(texts))))
    assert count_units(str(path)) == ("csv.whole", 1)
    posts, rejects = read(path)
    assert [post["text"] for post in posts] == texts and rejects == []


def test_quotes_alone_do_not_make_a_csv_unsplittable(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(csv_bytes(HEADER, [1, 0, 1, 2, 'say "hi", you', ""]))
    assert count_units(str(path)) == ("csv", path.stat().st_size)
    assert read(path)[0][0]["text"] == 'say "hi", you'


@pytest.mark.parametrize("content", [b"", b"\n", b"id,ts,lat,lon,text", b"id,ts,lat,lon,text\n"])
def test_a_csv_without_rows_has_no_posts(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    assert read(tmp_path / "a.csv") == ([], [])


# --- compressed text


def test_gzip_is_one_unit_and_reads_like_the_plain_file(tmp_path):
    contents = {
        "a.jsonl": b"\n".join([line(id=1), b"{", line(id=2)]),
        "a.csv": csv_bytes(HEADER, [1, 0, 1, 2, "x\ny", 5], [2]),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        (tmp_path / (name + ".gz")).write_bytes(gzip.compress(data))
        assert count_units(str(tmp_path / (name + ".gz")))[1] == 1
        assert read(tmp_path / (name + ".gz")) == read(tmp_path / name)


def test_a_broken_gzip_file_is_a_reject_after_what_could_be_read(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(line() + b"\n")[:-4])
    (tmp_path / "b.jsonl.gz").write_bytes(b"not gzip")
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        _, rejects = read(tmp_path / name)
        assert [reason for reason, _ in rejects] == ["broken gzip file"]


# --- splits


def _write(folder: Path, form: str, ids: list[int]) -> Path:
    path = folder / f"a.{form}"
    records = [{**GOOD, "id": i, "text": "ü" * (i % 7), "a": i if i % 3 else str(i)} for i in ids]
    if form == "jsonl":
        path.write_bytes(b"\n".join(b"" if r["id"] % 5 == 4 else json.dumps(r).encode() for r in records))
    elif form == "csv":
        path.write_bytes(csv_bytes(HEADER, *([r[name] for name in HEADER] for r in records)))
    else:
        table = pa.table(
            {
                "id": ids,
                "ts": [0] * len(ids),
                "lat": [1.0] * len(ids),
                "lon": [2] * len(ids),
                "a": [str(i) for i in ids],
            }
        )
        pq.write_table(table, path, row_group_size=7)
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.floats(0, 1), max_size=6), count=st.integers(0, 30), block=st.sampled_from([10, 100, 10_000]))
def test_any_cutting_of_a_file_gives_its_posts_once_and_in_order(tmp_path_factory, form, cuts, count, block):
    path = _write(tmp_path_factory.mktemp("cut"), form, list(range(count)))
    _, units = count_units(str(path))
    whole = read(path)
    bounds = sorted([0, units, *(round(cut * units) for cut in cuts)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", block)
        pieces = [piece for a, b in pairwise(bounds) for piece in read_split(Split(str(path), form, a, b))]
    assert rows(pieces) == whole
    assert len(whole[0]) == (sum(i % 5 != 4 for i in range(count)) if form == "jsonl" else count)


def test_a_split_sees_nothing_outside_its_part_of_a_growing_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line(id=1) + b"\n" + line(id=2) + b"\n" + line(id=3))
    first = len(line(id=1)) + 1
    torn = first + 9
    assert [p["id"] for p in rows(read_split(Split(str(path), "jsonl", 0, first, 0, first)))[0]] == [1]
    assert rows(read_split(Split(str(path), "jsonl", 0, torn, 0, torn)))[1] == [
        ("broken JSON", line(id=2)[:9].decode())
    ]
    end = path.stat().st_size
    assert [p["id"] for p in rows(read_split(Split(str(path), "jsonl", first, end, first, end)))[0]] == [2, 3]


def test_a_file_that_is_gone_or_has_shrunk_is_bad_input(tmp_path):
    for form in ("jsonl", "parquet", "csv"):
        path = _write(tmp_path, form, [1, 2])
        split = whole_file(str(path))
        with pytest.raises(BadInput, match="has shrunk"):
            list(read_split(Split(split.path, split.format, 0, split.stop + 1)))
        path.unlink()
        with pytest.raises(BadInput, match="is missing"):
            list(read_split(split))


def test_many_splits_of_one_row_group_decode_it_once(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(1000), "ts": [0] * 1000, "lat": [0.0] * 1000, "lon": [0.0] * 1000}), path)
    decoded = []
    original = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *a, **k: decoded.append(1) or original(*a, **k))
    posts = [
        post["id"]
        for i in range(10)
        for post in rows(read_split(Split(str(path), "parquet", i * 100, i * 100 + 100)))[0]
    ]
    assert posts == list(range(1000))
    assert len(decoded) == 1


def test_pieces_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_ROWS", 4)
    for form in ("jsonl", "parquet", "csv"):
        path = _write(tmp_path, form, list(range(11)))
        sizes = [posts.num_rows for posts, _ in read_split(whole_file(str(path)))]
        assert max(sizes) <= 4 and sum(sizes) == (9 if form == "jsonl" else 11)


def test_names_are_mapped_in_every_format(tmp_path):
    record = {"key": "007", "when": "2024-01-01", "lat": "1", "lon": "2", "body": "5"}
    mapping = {"id": "key", "ts": "when", "text": "body"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    (tmp_path / "a.csv").write_bytes(csv_bytes(list(record), list(record.values())))
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "a.parquet")
    results = [read(tmp_path / f"a.{form}", mapping) for form in ("jsonl", "csv", "parquet")]
    assert results[0] == results[1] == results[2]
    assert results[0][0][0]["text"] == "5" and results[0][0][0]["id_text"] == "007"


def test_the_real_notes_are_all_posts():
    path = Path(__file__).parents[3] / "shared/data/noaa_storms.parquet"
    if not path.exists():
        pytest.skip("no shared data here")
    posts, rejects = read(path)
    assert len(posts) == count_units(str(path))[1] and rejects == []
