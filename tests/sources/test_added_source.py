"""A source of one's own: it passes the suite, and a run reads it like any other."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import nearcast as nc
from nearcast.common.errors import BadInput
from nearcast.sources import registry
from nearcast.sources.protocol import Source, SourceContext
from nearcast.sources.registry import open_source
from tests.sources import sqlite_source
from tests.sources.conformance import Feed, SourceSuite
from tests.sources.sqlite_source import SCHEME, SqliteSource


class SqliteFeed:
    """A table that rows are added to."""

    context = SourceContext()

    def __init__(self, folder: Path) -> None:
        self.file = folder / "posts.db"
        self.count = 0
        with sqlite3.connect(self.file) as connection:
            connection.execute("CREATE TABLE posts (id INTEGER, ts INTEGER, lat REAL, lon REAL, text TEXT)")

    def open(self) -> Source:
        return SqliteSource(str(self.file), "posts")

    def grow(self, count: int) -> list[int]:
        ids = list(range(self.count, self.count + count))
        self.count += count
        with sqlite3.connect(self.file) as connection:
            rows = [(id_, 0, 1.0, 2.0, f"flood {id_}") for id_ in ids]
            connection.executemany("INSERT INTO posts VALUES (?, ?, ?, ?, ?)", rows)
        return ids


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line in the registry, an entry point or NEARCAST_SOURCES does."""
    monkeypatch.setitem(registry.schemes(), SCHEME.name, SCHEME)


class TestSqliteSource(SourceSuite):
    def feed(self, folder: Path) -> Feed:
        return SqliteFeed(folder)


def test_a_spec_that_makes_no_sense_is_told_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="give a file and a table"):
        open_source(f"sqlite:{tmp_path}/nothing.db?posts", SourceContext())


def test_the_page_shows_this_source_and_this_suite() -> None:
    page = (Path(__file__).parents[2] / "docs" / "extending" / "source.md").read_text(encoding="utf-8")
    own = Path(__file__).read_text(encoding="utf-8")
    assert Path(sqlite_source.__file__).read_text(encoding="utf-8") in page
    assert own[own.index("class SqliteFeed") : own.index("@pytest.fixture")].strip() in page
    assert own[own.index("class TestSqliteSource") : own.index("def test_a_spec_that")].strip() in page


PROGRAM = """
import sys, nearcast as nc
from pyspark.sql import SparkSession

posts, ops, state = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
nc.run(spark, posts=posts, queries=ops, state=state, batch_posts=40, drain=True)
"""


@pytest.mark.spark
def test_a_run_reads_it_and_the_next_goes_on(tmp_path: Path) -> None:
    feed = SqliteFeed(tmp_path)
    (tmp_path / "ops.jsonl").write_text('{"id": "all", "sql": "SELECT * FROM stream WHERE text CONTAINS \'flood\'"}\n')
    specs = [f"sqlite:{feed.file}?posts", tmp_path / "ops.jsonl", tmp_path / "state"]
    environment = {"NEARCAST_SOURCES": "tests.sources.sqlite_source:SCHEME", "PYTHONPATH": os.getcwd()}
    right: list[int] = []
    for _ in range(2):
        right += feed.grow(100)
        command = [sys.executable, "-c", PROGRAM, *map(str, specs)]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        assert sorted(row["post_id"] for row in nc.open(tmp_path / "state").results("all")) == right
