"""Results into a table of an SQLite file, exactly once: `sqlite:FILE`. The highest `seq` in the table is the cursor."""

import json
import sqlite3
from pathlib import Path

from nearcast.common.errors import BadInput
from nearcast.common.schemes import Scheme
from nearcast.sinks.protocol import ResultBatch, Sink, SinkContext


class SqliteSink(Sink):
    def __init__(self, file: Path) -> None:
        self.name = f"sqlite:{file}"
        self.connection = sqlite3.connect(file, check_same_thread=False)  # Spark commits batches in a thread of its own
        self.connection.execute("CREATE TABLE IF NOT EXISTS results (seq INTEGER PRIMARY KEY, query_id, result)")

    def cursor(self) -> int:
        (cursor,) = self.connection.execute("SELECT coalesce(max(seq) + 1, 0) FROM results").fetchone()
        return int(cursor)

    def write(self, batch: ResultBatch) -> None:
        rows = [(row["seq"], str(row["query_id"]), json.dumps(row, ensure_ascii=False)) for row in batch.rows]
        with self.connection:  # a transaction: all of the batch, or nothing
            self.connection.executemany("INSERT INTO results VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        self.connection.close()


def open_sqlite(rest: str, context: SinkContext) -> SqliteSink:
    if not rest or not Path(rest).absolute().parent.is_dir():
        raise BadInput(f"sqlite:{rest}: give a file in a folder that is there, such as sqlite:results.db")
    return SqliteSink(Path(rest).absolute())


SCHEME = Scheme("sqlite", open_sqlite)
