"""Ops from files, or rejects with a reason."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.sources.formats import FilePart, whole_file
from nearcast.sources.op_records import RAW_OPS, SAID_TWICE, read_ops


def read(path: Path) -> tuple[list[dict], list[str]]:
    ops, rejects = read_ops(whole_file(str(path)))
    assert ops.schema.names[: len(RAW_OPS)] == RAW_OPS.names
    set_values = [
        {k: v for k, v in row.items() if v is not None and k != "id"} | {"id": row["id"]} for row in ops.to_pylist()
    ]
    return set_values, rejects["reason"].to_pylist()


def read_lines(folder: Path, *records) -> tuple[list[dict], list[str]]:
    path = folder / "ops.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records))
    return read(path)


def test_every_op_of_the_interface_is_read(tmp_path):
    ops, rejects = read_lines(
        tmp_path,
        {"op": "subscribe", "id": "q1", "sql": "SELECT 1", "ts": "2024-01-01T00:00:00Z"},
        {"op": " Unsubscribe", "id": "q1", "ts": 5},
        {"op": "search", "id": 7, "sql": "SELECT 2"},
        {"op": "delete", "id": 17},
        {"id": 8, "sql": "SELECT 3"},
    )
    assert rejects == []
    assert [op["op"] for op in ops] == ["subscribe", "unsubscribe", "search", "delete", "subscribe"]
    assert [op.get("id_text", op["id"]) for op in ops] == ["q1", "q1", 7, 17, 8]
    assert [op.get("ts") for op in ops] == [1704067200000000, 5000, None, None, None]
    assert [op.get("sql") for op in ops] == ["SELECT 1", None, "SELECT 2", None, "SELECT 3"]
    assert ops[0]["id"] == ops[1]["id"] != 0


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"op": "frobnicate", "id": 1, "sql": "x"}, "unknown op"),
        ({"op": 5, "id": 1, "sql": "x"}, "unknown op"),
        ({"op": "", "id": 1, "sql": "x"}, "unknown op"),
        ({"id": 1}, "no op"),
        ({}, "no op"),
        ({"op": "subscribe", "sql": "x"}, "no id"),
        ({"op": "unsubscribe", "id": None}, "no id"),
        ({"op": "delete", "id": True}, "bad id"),
        ({"op": "subscribe", "id": 1, "sql": "x", "ts": "soon"}, "bad time"),
        ({"op": "subscribe", "id": 1, "sql": "x", "ts": "40000-01-01"}, "time out of range"),
        ({"op": "subscribe", "id": 1, "sql": 5}, "sql is not a string"),
        ({"op": "subscribe", "id": 1}, "no query"),
        ({"op": "search", "id": 1}, "no query"),
        ({"op": "subscribe", "id": 1, "sql": "SELECT * FROM stream", "text": "rain"}, SAID_TWICE),
        ({"op": "subscribe", "id": 1, "sql": "SELECT * FROM stream", "for_seconds": 60}, SAID_TWICE),
        ({"id": 1, "min_lon": "west", "text": "x"}, "bad min_lon"),
        ({"id": 1, "text": 5}, "bad text"),
        ('{"op": "subscribe"', "broken JSON"),
        ("[]", "not an object"),
    ],
)
def test_what_is_no_op_is_rejected_and_its_neighbours_are_not(tmp_path, bad, reason):
    good = {"op": "delete", "id": 1}
    ops, rejects = read_lines(tmp_path, good, bad, good)
    assert (len(ops), rejects) == (2, [reason])


def test_the_raw_record_of_a_rejected_op_is_its_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"op": "x",  "id": 1}\n')
    _, rejects = read_ops(whole_file(str(tmp_path / "a.jsonl")))
    assert rejects.to_pylist() == [{"reason": "unknown op", "raw": '{"op": "x",  "id": 1}'}]


def test_bulk_subscriptions_need_no_op_and_keep_their_columns(tmp_path):
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "min_lon": pa.array([1.5, None, None, None], pa.float32()),
            "text": ["flood", None, None, None],
            "polygon": [None, "POLYGON((0 0, 1 0, 1 1, 0 0))", None, None],
            "radius_km": [None, None, 5, None],
            "for_seconds": [60, 60, 60, 60],
            "k": pa.array([1, 2, 3, 4], pa.int16()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    ops, rejects = read_ops(whole_file(str(tmp_path / "a.parquet")))
    assert rejects["reason"].to_pylist() == ["no op"]  # nothing but a life is no query
    assert ops["op"].to_pylist() == ["subscribe"] * 3
    assert ops["min_lon"].to_pylist() == [1.5, None, None]
    assert ops.schema.field("min_lon").type == ops.schema.field("radius_km").type == pa.float64()
    assert ops["k"].to_pylist() == [1.0, 2.0, 3.0]


def test_bulk_numbers_of_mixed_spelling_are_one_column(tmp_path):
    ops, rejects = read_lines(tmp_path, {"id": 1, "min_lon": 5, "x": 1}, {"id": 2, "min_lon": 5.5, "x": 1.5})
    assert rejects == []
    assert [(op["min_lon"], op["x"]) for op in ops] == [(5.0, 1.0), (5.5, 1.5)]


def test_splits_of_a_file_of_ops_give_each_op_once(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"op": "delete", "id": i}) + "\n" for i in range(20)))
    size = path.stat().st_size
    for cut in range(0, size, 13):
        parts = [read_ops(FilePart(str(path), "jsonl", a, b))[0]["id"].to_pylist() for a, b in ((0, cut), (cut, size))]
        assert parts[0] + parts[1] == list(range(20))


def test_a_file_without_ops_has_none(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n")
    assert read(tmp_path / "a.jsonl") == ([], [])
