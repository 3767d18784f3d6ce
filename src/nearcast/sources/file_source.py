"""Files and folders as a source: positions are those of the state's log of files (`sources.file_log`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nearcast.sources.file_log import FileLog, data_files
from nearcast.sources.formats import ENDINGS, FilePart, read_raw, whole_file
from nearcast.sources.op_records import OP_TEXT
from nearcast.sources.protocol import OPS, Source, SourceContext
from nearcast.sources.raw import Raw
from nearcast.sources.records import text_fields
from nearcast.storage.directory import StateDirectory

MOST_HEADS = 8


@dataclass(frozen=True)
class FileSplit:
    """A part of a file, and which of its fields are text even if CSV could read them as numbers."""

    part: FilePart
    text: frozenset[str]
    id_name: str

    def read(self) -> Iterator[Raw]:
        return read_raw(self.part, self.text, self.id_name)


class FileSource(Source):
    """Files and folders given to a state, in the order of its log. One for ops reads the state's inbox too."""

    name = "files:"

    def __init__(self, paths: Sequence[str], context: SourceContext) -> None:
        self.paths = [str(Path(path).absolute()) for path in paths]
        self.state = None if context.state is None else StateDirectory(context.state)
        self.role = context.role
        self.text, self.id_name = (OP_TEXT, "id") if context.role == OPS else text_fields(context.mapping)

    @cached_property
    def log(self) -> FileLog:
        assert self.state is not None, "a log of files needs a state"
        return FileLog(self.state.source, self.role)

    def identity(self) -> str:
        return self.log.uuid

    def beginning(self) -> int:
        return 0

    def limit(self, start: int, drain: bool = False) -> int:
        inbox = [str(self.state.inbox)] if self.state is not None and self.role == OPS else []
        self.log.extend([*self.paths, *inbox], patient=not drain)
        return self.log.total

    def advance(self, start: int, limit: int, rows: int) -> int:
        return self.log.advance(start, rows, limit)

    def splits(self, start: int, stop: int, parts: int) -> list[FileSplit]:
        return [self._split(part) for part in self.log.splits(start, stop, parts)]

    def rows(self, start: int, stop: int) -> int:
        return self.log.rows_estimate(start, stop)

    def heads(self) -> list[Iterator[Raw]]:
        """The beginnings of its first files, without the log."""
        files = list(data_files(self.paths))[:MOST_HEADS]
        return [self._split(whole_file(path)).read() for path in files]

    def advice(self) -> str | None:
        if not self.paths or any(True for _ in data_files(self.paths)):
            return None
        return f"nothing to read yet: no file there ends in {', '.join(ENDINGS)}"

    def _split(self, part: FilePart) -> FileSplit:
        return FileSplit(part, self.text, self.id_name)


def open_files(paths: Sequence[str], context: SourceContext) -> FileSource:
    """What does not exist, or has no known format, is told at once."""
    for _ in data_files(paths):
        pass
    return FileSource(paths, context)
