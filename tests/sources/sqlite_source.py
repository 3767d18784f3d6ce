"""Rows of an SQLite table as a source: `sqlite:FILE?TABLE`. Rows are only ever added to the table."""

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.common.schemes import Scheme
from nearcast.sources.protocol import Source, SourceContext
from nearcast.sources.raw import Raw


@dataclass(frozen=True)
class SqliteSplit:
    file: str
    query: str

    def read(self) -> Iterator[Raw]:
        connection = sqlite3.connect(self.file)
        connection.row_factory = sqlite3.Row
        yield Raw.of(pa.Table.from_pylist([dict(row) for row in connection.execute(self.query)]))


class SqliteSource(Source):
    """A position is a rowid: that of the last row which lies behind."""

    def __init__(self, file: str, table: str) -> None:
        self.file, self.table, self.name = file, table, f"sqlite:{file}?{table}"

    def identity(self) -> str:
        return str(os.stat(self.file).st_ino)  # another file of the same name counts anew

    def beginning(self) -> int:
        return 0

    def limit(self, start: int, drain: bool = False) -> int:
        newest = sqlite3.connect(self.file).execute(f"SELECT max(rowid) FROM {self.table}").fetchone()[0]
        return newest or 0

    def advance(self, start: int, limit: int, rows: int) -> int:
        return max(start, min(limit, start + rows))

    def splits(self, start: int, stop: int, parts: int) -> list[SqliteSplit]:
        edges = sorted({start + (stop - start) * part // parts for part in range(parts + 1)})
        query = f"SELECT * FROM {self.table} WHERE rowid > {{}} AND rowid <= {{}} ORDER BY rowid"
        return [SqliteSplit(self.file, query.format(*ends)) for ends in pairwise(edges)]


def open_sqlite(rest: str, context: SourceContext) -> SqliteSource:
    file, _, table = rest.partition("?")
    if not os.path.exists(file) or not table.isidentifier():
        raise BadInput(f"sqlite:{rest}: give a file and a table, such as sqlite:posts.db?posts")
    return SqliteSource(os.path.abspath(file), table)


SCHEME = Scheme("sqlite", open_sqlite)
