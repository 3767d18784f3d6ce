"""A state directory as Python sees it: `nearcast.open`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearcast.language import parse
from nearcast.reader.explain import Explained, explain
from nearcast.reader.reader import Found, Reader
from nearcast.reader.results import follow_results, read_results
from nearcast.reader.status import Status, read_status
from nearcast.reader.subscriptions import Subscriptions
from nearcast.state.directory import StateDirectory


class State:
    """Reads a state, without Spark, while it rests or while a run writes it.

    Every call looks at the newest committed batch; what it returns belongs to that batch.
    """

    def __init__(self, path: str | Path) -> None:
        self.directory = StateDirectory(path)
        self._reader = Reader(self.directory)

    @property
    def reader(self) -> Reader:
        """A reader of the newest batch; opened segments are kept for as long as no other is committed."""
        newest = self.directory.newest()
        if newest.version != self._reader.manifest.version:
            self._reader = Reader(self.directory, newest)
        return self._reader

    def search(self, sql: str) -> Found | Explained:
        """The rows of a SELECT, or the plan of an EXPLAIN SELECT."""
        reader = self.reader
        statement = parse(sql, reader.tokenizer)
        return explain(reader, statement) if statement.explain else reader.search(sql)

    def results(
        self, query: str | int | None = None, since_seq: int = 0, follow: bool = False
    ) -> Iterator[dict[str, Any]]:
        """The results in order, of one query or of all; with `follow`, those to come too."""
        if follow:
            return follow_results(self.directory, query, since_seq)
        return read_results(self.reader, query, since_seq)

    def subscriptions(self) -> Subscriptions:
        """The subscriptions that stand."""
        return Subscriptions(self.reader)

    def status(self) -> Status:
        return read_status(self.reader)

    def __repr__(self) -> str:
        return f"nearcast.open({str(self.directory.root)!r})"
