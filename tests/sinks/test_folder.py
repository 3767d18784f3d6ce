"""Results into files: the suite, and what a reader of the folder sees."""

import json
from pathlib import Path

import pytest

from nearcast.common.errors import BadInput
from nearcast.sinks.delivery import Delivery
from nearcast.sinks.folder import FolderSink
from nearcast.sinks.protocol import Sink, SinkContext
from nearcast.sinks.registry import open_sink, open_sinks
from tests.sinks.conformance import ListOutbox, MemorySink, Place, Row, SinkSuite


class Folder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> Sink:
        return open_sink(str(self.folder), SinkContext(self.folder))

    def delivered(self) -> list[Row]:
        texts = [path.read_bytes().decode() for path in sorted(self.folder.glob("*.jsonl"))]
        return [json.loads(line) for text in texts for line in text.split("\n")[:-1]]


class TestFolderSink(SinkSuite):
    def place(self, folder: Path) -> Place:
        return Folder(folder / "out")


def test_files_are_named_by_the_results_in_them(tmp_path: Path) -> None:
    outbox = ListOutbox()
    outbox.add("a", "b", "c")
    Delivery([FolderSink(tmp_path)], most=2).deliver(outbox)
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == ["000000000000000-000000000000002.jsonl", "000000000000002-000000000000003.jsonl"]


def test_specs_of_sinks(tmp_path: Path) -> None:
    context, memory = SinkContext(tmp_path), MemorySink()
    (tmp_path / "file").write_text("")
    assert open_sinks(None, context) == []
    assert [sink.name for sink in open_sinks(f"files:{tmp_path}", context)] == [str(tmp_path)]
    assert open_sinks([tmp_path / "a", memory], context)[1] is memory
    for given, message in (
        ([str(tmp_path), f"files:{tmp_path}"], "given twice"),
        ("amqp://host/queue", "there is no sink amqp"),
        (str(tmp_path / "file"), "is no folder"),
    ):
        with pytest.raises(BadInput, match=message):
            open_sinks(given, context)
