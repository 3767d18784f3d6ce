"""The whole way through Spark, as a user goes it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

POSTS = [
    {"id": 1, "created": "2026-05-01T12:00:00Z", "lat": 40.7, "lon": -74.0, "text": "flood in the subway", "price": 3},
    {"id": "b", "created": "2026-05-01T12:01:00Z", "lat": 40.8, "lon": -74.0, "text": "coffee time"},
    {"id": 3, "created": "2026-05-01T12:02:00Z", "lat": 95, "lon": -74.0, "text": "nowhere"},
]
OPS = [
    {"op": "subscribe", "id": "q1", "sql": "SELECT * FROM stream WHERE text CONTAINS 'flood'"},
    {"op": "subscribe", "id": "q2", "sql": "SELECT * FROM stream WHERE text CONTAIN 'x'"},
]


def nearcast(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from nearcast.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.spark
def test_a_run_until_drained_leaves_results_rows_and_rejects_and_a_quiet_terminal(tmp_path: Path) -> None:
    posts, ops, state = tmp_path / "posts", tmp_path / "ops.jsonl", tmp_path / "state"
    posts.mkdir()
    (posts / "a.jsonl").write_text("".join(json.dumps(post) + "\n" for post in POSTS) + "broken\n")
    ops.write_text("".join(json.dumps(op) + "\n" for op in OPS))

    words = ["run", "--posts", posts, "--queries", ops, "--state", state, "--until-drained", "--map", "ts=created"]
    words += ["--router", "qt-text"]
    done = nearcast(*words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert all(line.startswith("nearcast: ") for line in done.stderr.splitlines()[:-1]), done.stderr
    assert "2 posts, 1 results" in done.stderr.splitlines()[-1]

    (row,) = [
        json.loads(line) for line in nearcast("results", "--state", state, "--format", "json").stdout.splitlines()
    ]
    assert {name: row[name] for name in ("query_id", "seq", "kind", "post_id", "ts", "price")} == {
        "query_id": "q1", "seq": 0, "kind": "match", "post_id": 1, "ts": "2026-05-01T12:00:00Z", "price": 3,
    }  # fmt: skip
    found = nearcast("search", "--state", state, "SELECT id FROM stream", "--format", "json")
    assert found.stdout == '{"id": "b"}\n{"id": 1}\n'
    facts = json.loads(nearcast("status", "--state", state, "--format", "json").stdout)
    assert facts["counts"]["rejects"] == 3 == sum(facts["rejects"].values())
    assert facts["backlog"] == {"posts": 0, "ops": 0}
    assert facts["router"] == "qt-text"

    if not os.environ.get("NEARCAST_THOROUGH"):
        return
    sql = "SELECT id FROM stream WHERE text CONTAINS 'coffee'"
    assert nearcast("subscribe", "--state", state, "--id", "q3", sql, "--ts", "2026-05-01T00:00:00Z").stdout == "q3\n"
    again = nearcast("run", "--state", state, "--until-drained", "--router", "agrid", "--workers", 3)
    assert again.returncode == 0, again.stderr
    rows = [json.loads(line) for line in nearcast("results", "--state", state, "--format", "json").stdout.splitlines()]
    assert [(row["query_id"], row["post_id"]) for row in rows] == [("q1", 1), ("q3", "b")]  # q3 caught up, q1 once
    assert json.loads(nearcast("status", "--state", state, "--format", "json").stdout)["router"] == "agrid"
