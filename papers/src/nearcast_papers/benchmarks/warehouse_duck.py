"""The same posts and queries in DuckDB, on as many threads as there are cores.

It has what the comparison is about in columns: topic and area, and date, hour and weekday worked out beforehand; words
are the numbers of different words in a list. So it neither tokenises nor compares strings of texts.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nearcast_papers.benchmarks.warehouse_queries import DAY, K, WarehouseQuery

MINUTE = 60_000_000
TABLE = f"""
CREATE TABLE posts AS SELECT ts, lon, lat, topic, area, list_distinct(words::INTEGER[]) AS words,
  ts - ts % {DAY} AS date, ts - ts % {60 * MINUTE} AS hour, (ts // {DAY} + 3) % 7 + 1 AS weekday
FROM read_parquet('{{files}}')
"""


def is_installed() -> bool:
    return find_spec("duckdb") is not None


class Duck:
    def __init__(self, database: Path, copies: Path, numbers: dict[str, int], clock: int) -> None:
        """A database in a file, of the Parquet files in `copies`; `numbers` are those of words."""
        import duckdb

        self.numbers, self.clock = numbers, clock
        self.connection: Any = duckdb.connect(str(database), config={"threads": os.cpu_count() or 1})
        self.connection.execute(TABLE.format(files=copies / "*.parquet"))

    def __call__(self, asked: WarehouseQuery) -> Any:
        """The answer as an Arrow table; the terms of TopK are numbers, one row each."""
        return self.connection.sql(self.sql(asked)).to_arrow_table()

    def sql(self, asked: WarehouseQuery) -> str:
        where = []
        if asked.box is not None:
            west, south, east, north = asked.box
            where.append(f"lon BETWEEN {west:.7f} AND {east:.7f} AND lat BETWEEN {south:.7f} AND {north:.7f}")
        if asked.words:
            where.append(f"list_has_all(words, {[self.numbers[word] for word in asked.words]})")
        if asked.minutes:
            where.append(f"ts > {self.clock - asked.minutes * MINUTE}")
        if asked.topic:
            where.append(f"topic = '{asked.topic}'")
        by, found = ", ".join(asked.by), f"FROM posts WHERE {' AND '.join(where)}"
        if asked.function == "count":
            return f"SELECT {by}, count(*) AS n {found} GROUP BY {by} ORDER BY {by}"
        return (
            f"SELECT {by}, word, count(*) AS n FROM (SELECT {by}, unnest(words) AS word {found}) GROUP BY {by}, word "
            f"QUALIFY row_number() OVER (PARTITION BY {by} ORDER BY n DESC, word) <= {K} ORDER BY {by}, n DESC, word"
        )

    def close(self) -> None:
        self.connection.close()
