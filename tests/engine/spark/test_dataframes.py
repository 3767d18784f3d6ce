"""What a user of Spark calls: `nearcast.run` with DataFrames of their own, and searches in bulk."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearcast
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.row_format import json_row
from nearcast.reader.state import State
from nearcast.sources.records import normalise
from nearcast.storage.directory import StateDirectory

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TEXTS = ["flood here", "coffee there", "flood again", "nothing", "a flood of coffee"]
POSTS = [
    {"id": i, "ts": f"2026-05-01T12:0{i}:00Z", "lon": float(i), "lat": 10.0, "text": text, "likes": i}
    for i, text in enumerate(TEXTS)
]
OPS = [{"op": "subscribe", "id": "q", "sql": "SELECT * FROM stream WHERE text CONTAINS 'flood' AND likes > 0"}]
SEARCHES = [
    {"id": "all", "sql": "SELECT id FROM stream WHERE text CONTAINS 'flood'"},
    {"id": 7, "sql": "SELECT id FROM stream ORDER BY DISTANCE(loc, POINT(3, 10)) LIMIT 2"},
    {"id": "terms", "sql": "SELECT TopK(text, 2) FROM stream"},
    {"id": "bad", "sql": "SELECT nothing"},
]
PROGRAM = """
import sys, nearcast as nc
from pyspark.sql import SparkSession

folder, searches = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
fields = "id long, ts string, lon double, lat double, text string, likes long"
posts = spark.readStream.schema(fields).option("maxFilesPerTrigger", 1).json(folder + "/posts")
ops = spark.readStream.schema("op string, id string, sql string").json(folder + "/ops")
for _ in range(2):  # the second time there is nothing left to read
    nc.run(spark, posts=posts, queries=ops, state=folder + "/state", workers=2, drain=True)
many = nc.search_many(spark, spark.read.schema("id string, sql string").json(searches), folder + "/state")
print([(row.id, row.rows, (row.error or "")[:7]) for row in sorted(many.collect())])
"""


def written(folder: Path) -> Path:
    """Posts, ops and searches as files; returns the searches."""
    for name, records in (("posts", POSTS), ("ops", OPS)):
        (folder / name).mkdir()
        for number, record in enumerate(records):
            (folder / name / f"{number}.json").write_text(json.dumps(record) + "\n")
    searches = folder / "searches.jsonl"
    searches.write_text("".join(json.dumps(search) + "\n" for search in SEARCHES))
    return searches


def right_answers(state: State) -> list[list[dict[str, Any]]]:
    return [[json_row(row) for row in state.search(str(each["sql"]))] for each in SEARCHES[:3]]


def test_dataframes_of_ones_own_are_matched_once_and_searched_in_bulk(tmp_path: Path) -> None:
    searches = written(tmp_path)
    run = [sys.executable, "-c", PROGRAM, str(tmp_path), str(searches)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    state = nearcast.open(tmp_path / "state")
    assert sorted(row["post_id"] for row in state.results("q")) == [2, 4]
    assert state.status().counts["posts"] == len(POSTS)

    right = right_answers(state)
    assert [[row["id"] for row in rows] for rows in right[:2]] == [[4, 2, 0], [3, 2]]
    told = {name: (rows, error) for name, rows, error in ast.literal_eval(done.stdout.strip().splitlines()[-1])}
    assert [json.loads(told[str(each["id"])][0]) for each in SEARCHES[:3]] == right
    assert told["bad"] == (None, "the que")


@pytest.mark.slow
def test_the_command_line_answers_many_searches_in_the_order_of_their_file(tmp_path: Path) -> None:
    searches = written(tmp_path)
    state = StateDirectory(tmp_path / "state")
    begin(state, Settings())
    run_locally(state, Settings(), posts=[normalise(pa.Table.from_pylist(POSTS))[0]])
    command = [sys.executable, "-c", "from nearcast.cli import main; main()", "search", "--state", str(state.root)]
    printed = subprocess.run([*command, "--bulk", str(searches)], capture_output=True, text=True, timeout=300)
    assert printed.returncode == 0, printed.stderr
    answers = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [search["id"] for search in SEARCHES]
    assert [answer["rows"] for answer in answers[:3]] == right_answers(nearcast.open(state.root))
    assert "error" in answers[3]
