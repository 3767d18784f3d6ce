"""A sink of one's own: it passes the suite, and a run delivers to it like to any other."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import nearcast as nc
from nearcast.common.errors import BadInput
from nearcast.reader.row_format import json_row
from nearcast.sinks import registry
from nearcast.sinks.protocol import Sink, SinkContext
from nearcast.sinks.registry import open_sink
from tests.sinks import sqlite_sink
from tests.sinks.conformance import Place, Row, SinkSuite
from tests.sinks.sqlite_sink import SCHEME, SqliteSink


class Table:
    """A file with the results, read as somebody else would."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def open(self) -> Sink:
        return SqliteSink(self.file)

    def delivered(self) -> list[Row]:
        with sqlite3.connect(self.file) as connection:
            return [json.loads(text) for (text,) in connection.execute("SELECT result FROM results ORDER BY seq")]


class TestSqliteSink(SinkSuite):
    def place(self, folder: Path) -> Place:
        return Table(folder / "results.db")


def test_a_spec_that_makes_no_sense_is_told_when_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.schemes(), SCHEME.name, SCHEME)
    with pytest.raises(BadInput, match="give a file in a folder that is there"):
        open_sink(f"sqlite:{tmp_path}/nowhere/results.db", SinkContext(tmp_path))


def test_the_page_shows_this_sink_and_this_suite() -> None:
    page = (Path(__file__).parents[2] / "docs" / "extending" / "sink.md").read_text(encoding="utf-8")
    own = Path(__file__).read_text(encoding="utf-8")
    assert Path(sqlite_sink.__file__).read_text(encoding="utf-8") in page
    assert own[own.index("class Table") : own.index("def test_a_spec_that")].strip() in page


@pytest.mark.spark
def test_a_run_delivers_to_it_and_to_a_folder(tmp_path: Path) -> None:
    (tmp_path / "ops.jsonl").write_text('{"id": "all", "sql": "SELECT id FROM stream"}\n')
    run = ["run", "--posts", "world:count=300", "--queries", tmp_path / "ops.jsonl", "--state", tmp_path / "state"]
    sinks = ["--deliver", f"sqlite:{tmp_path / 'results.db'}", "--deliver", tmp_path / "folder"]
    environment = {"NEARCAST_SINKS": "tests.sinks.sqlite_sink:SCHEME", "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-m", "nearcast.cli", *map(str, [*run, "--until-drained", *sinks])]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = [json_row(row) for row in nc.open(tmp_path / "state").results()]
    files = sorted((tmp_path / "folder").glob("*.jsonl"))
    assert Table(tmp_path / "results.db").delivered() == results and len(results) == 300
    assert [json.loads(line) for file in files for line in file.read_text().split("\n")[:-1]] == results
