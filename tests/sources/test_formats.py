"""Files and splits of them: every format, and any cutting, give the same posts."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.sources import formats, lines, records
from nearcast.sources.formats import FilePart, count_units, read_split, whole_file
from tests.sources.reading import GOOD, HEADER, csv_bytes, line, read, rows


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
        pieces = [piece for a, b in pairwise(bounds) for piece in read_split(FilePart(str(path), form, a, b))]
    assert rows(pieces) == whole
    assert len(whole[0]) == (sum(i % 5 != 4 for i in range(count)) if form == "jsonl" else count)


def test_a_split_sees_nothing_outside_its_part_of_a_growing_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(line(id=1) + b"\n" + line(id=2) + b"\n" + line(id=3))
    first = len(line(id=1)) + 1
    torn = first + 9
    assert [p["id"] for p in rows(read_split(FilePart(str(path), "jsonl", 0, first, 0, first)))[0]] == [1]
    assert rows(read_split(FilePart(str(path), "jsonl", 0, torn, 0, torn)))[1] == [
        ("broken JSON", line(id=2)[:9].decode())
    ]
    end = path.stat().st_size
    assert [p["id"] for p in rows(read_split(FilePart(str(path), "jsonl", first, end, first, end)))[0]] == [2, 3]


def test_a_file_that_is_gone_or_has_shrunk_is_bad_input(tmp_path):
    for form in ("jsonl", "parquet", "csv"):
        path = _write(tmp_path, form, [1, 2])
        split = whole_file(str(path))
        with pytest.raises(BadInput, match="has shrunk"):
            list(read_split(FilePart(split.path, split.format, 0, split.stop + 1)))
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
        for post in rows(read_split(FilePart(str(path), "parquet", i * 100, i * 100 + 100)))[0]
    ]
    assert posts == list(range(1000))
    assert len(decoded) == 1


def test_pieces_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_ROWS", 4)
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
