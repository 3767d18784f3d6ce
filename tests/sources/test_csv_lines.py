"""CSV: a value's spelling is its kind, and a bad row costs only itself."""

import pytest

from nearcast.sources import lines
from nearcast.sources.formats import count_units
from tests.sources.reading import HEADER, attributes, csv_bytes, read


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
