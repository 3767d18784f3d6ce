"""A sixth kind of question, of less than 250 lines in a folder of its own (`tests/kinds/first_posts`), does all that
ours do: it subscribes, streams through Spark, searches, explains, crashes and shows its results. No line of `src/`
knows it.
"""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent / "first_posts"
SQL = "SELECT First(cell) FROM stream WHERE text CONTAINS 'rain OR flood'"
WORDS = ("rain", "flood", "sun", "coffee")
FILES, POSTS = 6, 400


def nearcast(*arguments: object, folder: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"NEARCAST_KINDS": "tests.kinds.first_posts:KIND", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nearcast", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def told(*arguments: object, folder: Path) -> str:
    process = nearcast(*arguments, folder=folder)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return output


def rows(*arguments: object, folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in told(*arguments, "--format", "json", folder=folder).splitlines()]


def make_posts(folder: Path) -> list[dict[str, Any]]:
    """Some files of posts in and out of order, in 5 x 5 cells."""
    random.seed(7)
    (folder / "posts").mkdir()
    posts: list[dict[str, Any]] = []
    for file in range(FILES):
        some = [
            {
                "id": file * POSTS + n, "ts": 1_777_600_000_000 + random.randrange(3_600_000),
                "lon": random.uniform(0, 5), "lat": random.uniform(40, 45), "text": f"{random.choice(WORDS)} here",
            }
            for n in range(POSTS)
        ]  # fmt: skip
        (folder / "posts" / f"{file}.jsonl").write_text("".join(json.dumps(post) + "\n" for post in some))
        posts += some
    return posts


def first_posts(posts: list[dict[str, Any]]) -> list[int]:
    """The brute-force twin: the id of the earliest post with one of the words in each cell, earliest first."""
    wanted = sorted((post["ts"], post["id"], post) for post in posts if post["text"].split()[0] in ("rain", "flood"))
    firsts: dict[tuple[int, int], tuple[int, int]] = {}
    for ts, number, post in wanted:
        firsts.setdefault((math.floor(post["lon"]), math.floor(post["lat"])), (ts, number))
    return [number for _, number in sorted(firsts.values())]


def test_it_is_small() -> None:
    assert sum(len(file.read_text().splitlines()) for file in HERE.glob("*.py")) < 250


def test_the_page_on_adding_a_kind_shows_these_files() -> None:
    page = (ROOT / "docs" / "extending" / "kind.md").read_text(encoding="utf-8")
    for file in HERE.glob("*.py"):
        assert file.read_text(encoding="utf-8").rstrip() in page, file.name


@pytest.mark.spark
def test_it_subscribes_streams_crashes_searches_and_shows_results(tmp_path: Path) -> None:
    posts = make_posts(tmp_path)
    (tmp_path / "ops.jsonl").write_text(json.dumps({"op": "subscribe", "id": "firsts", "sql": SQL}) + "\n")
    command = (
        "run", "--posts", "posts", "--queries", "ops.jsonl", "--state", "state", "--until-drained",
        "--batch-posts", POSTS, "--workers", 2,
    )  # fmt: skip
    running = nearcast(*command, folder=tmp_path)
    commits = tmp_path / "state" / "checkpoint" / "commits"
    while running.poll() is None and len(list(commits.glob("[0-9]*"))) < 3:
        time.sleep(0.05)
    assert running.poll() is None, running.communicate()[1]
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    told(*command, folder=tmp_path)

    expected = first_posts(posts)
    assert len(expected) == 25
    found = rows("search", "--state", "state", SQL, folder=tmp_path)
    assert [row["id"] for row in found] == expected

    # Each result was, when it came, the first of its cell; of each cell the last that came is the first of all.
    results = rows("results", "--state", "state", "--query", "firsts", folder=tmp_path)
    last = {(math.floor(row["lon"]), math.floor(row["lat"])): row for row in results}
    assert sorted(row["post_id"] for row in last.values()) == sorted(expected)
    assert len({row["post_id"] for row in results}) == len(results), "a result came twice"
    assert [row["seq"] for row in results] == list(range(len(results)))

    explained = told("search", "--state", "state", f"EXPLAIN {SQL}", folder=tmp_path)
    assert "cells" in explained and "25" in explained
    assert SQL in told("subscriptions", "--state", "state", folder=tmp_path)


def test_a_mistake_is_shown_where_it_is(tmp_path: Path) -> None:
    process = nearcast("search", "--state", "nowhere", "SELECT First(city) FROM stream", folder=tmp_path)
    process.communicate(timeout=120)
    assert process.returncode == 2
