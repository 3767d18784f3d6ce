"""A sink that has no place for its cursor keeps it in the state: each result at least once."""

import json
from pathlib import Path

from nearcast.sinks.kept_cursor import KeptCursor
from nearcast.sinks.protocol import ResultBatch, Sink
from tests.sinks.conformance import Place, Row, SinkSuite


class LogSink(Sink):
    """Lines at the end of a file, which may be doubled there."""

    def __init__(self, folder: Path) -> None:
        self.name = f"log:{folder}"
        self.file = folder / "log.jsonl"
        self.kept = KeptCursor(folder / "state", self.name)

    def cursor(self) -> int:
        return self.kept.read()

    def write(self, batch: ResultBatch) -> None:
        with open(self.file, "a", encoding="utf-8") as out:
            out.write(("" if not self.file.stat().st_size else "\n") + batch.json_lines())
        self.kept.move(batch.stop)


class Log:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> Sink:
        return LogSink(self.folder)

    def delivered(self) -> list[Row]:
        """Whole lines: one that a crash has cut is written again."""
        path = self.folder / "log.jsonl"
        rows = []
        for line in path.read_bytes().decode(errors="ignore").split("\n") if path.exists() else ():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return rows


class TestLogSink(SinkSuite):
    repeats = True

    def place(self, folder: Path) -> Place:
        return Log(folder)


def test_cursors_of_sinks_are_apart(tmp_path: Path) -> None:
    one, other = KeptCursor(tmp_path, "https://a/hook"), KeptCursor(tmp_path, "https://b/hook")
    one.move(7)
    assert (one.read(), other.read(), KeptCursor(tmp_path, "https://a/hook").read()) == (7, 0, 7)
