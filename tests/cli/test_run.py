"""The whole way through Spark, as a user goes it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def first_run(folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """(state, what the command said) of a run over the posts and ops above."""
    posts, ops, state = folder / "posts", folder / "ops.jsonl", folder / "state"
    posts.mkdir()
    (posts / "a.jsonl").write_text("".join(json.dumps(post) + "\n" for post in POSTS) + "broken\n")
    ops.write_text("".join(json.dumps(op) + "\n" for op in OPS))
    words = ["run", "--posts", posts, "--queries", ops, "--state", state, "--until-drained", "--map", "ts=created"]
    return state, nearcast(*words, "--router", "qt-text")


def in_json(*words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in nearcast(*words, "--format", "json").stdout.splitlines()]


@pytest.mark.spark
def test_a_run_until_drained_leaves_results_rows_and_rejects_and_a_quiet_terminal(tmp_path: Path) -> None:
    state, done = first_run(tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert all(line.startswith("nearcast: ") for line in done.stderr.splitlines()[:-1]), done.stderr
    assert "2 posts, 1 results" in done.stderr.splitlines()[-1]

    (row,) = in_json("results", "--state", state)
    assert {name: row[name] for name in ("query_id", "seq", "kind", "post_id", "ts", "price")} == {
        "query_id": "q1", "seq": 0, "kind": "match", "post_id": 1, "ts": "2026-05-01T12:00:00Z", "price": 3,
    }  # fmt: skip
    found = nearcast("search", "--state", state, "SELECT id FROM stream", "--format", "json")
    assert found.stdout == '{"id": "b"}\n{"id": 1}\n'
    (facts,) = in_json("status", "--state", state)
    assert facts["counts"]["rejects"] == 3 == sum(facts["rejects"].values())
    assert facts["backlog"] == {"posts": 0, "ops": 0}
    assert facts["router"] == "qt-text"


@pytest.mark.slow
@pytest.mark.spark
def test_a_second_run_has_another_router_and_lets_a_subscription_catch_up(tmp_path: Path) -> None:
    state, done = first_run(tmp_path)
    assert done.returncode == 0, done.stderr
    sql = "SELECT id FROM stream WHERE text CONTAINS 'coffee'"
    assert nearcast("subscribe", "--state", state, "--id", "q3", sql, "--ts", "2026-05-01T00:00:00Z").stdout == "q3\n"
    again = nearcast("run", "--state", state, "--until-drained", "--router", "agrid", "--workers", 3)
    assert again.returncode == 0, again.stderr
    rows = in_json("results", "--state", state)
    assert [(row["query_id"], row["post_id"]) for row in rows] == [("q1", 1), ("q3", "b")]  # q3 caught up, q1 once
    assert in_json("status", "--state", state)[0]["router"] == "agrid"
