"""Many searches at once, as a Spark job over the segments of one manifest."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from nearcast.common.errors import BadInput, NearcastError
from nearcast.reader.reader import Reader
from nearcast.reader.row_format import json_row
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import Manifest

A_TASK = 250  # searches: few enough that tasks even out, many enough that opening the state does not count
ANSWERS = pa.schema([("rows", pa.string()), ("error", pa.string())])


def search_many(spark: SparkSession, queries: DataFrame, state: str | Path) -> DataFrame:
    """The answers to all searches of `queries` (columns id and sql), all from the same committed batch.

    Columns: `id` as given, `rows` (a JSON array of what `nearcast search --format json` prints), and `error` where a
    search has none. The state lies on storage that all workers share.
    """
    missing = {"id", "sql"} - set(queries.columns)
    if missing:
        raise BadInput(f"searches in bulk have the columns id and sql: {' and '.join(sorted(missing))} missing")
    directory = StateDirectory(Path(state).absolute())
    manifest = directory.newest()
    kind = queries.schema["id"].dataType.simpleString()
    asked = queries.select("id", "sql").repartition(max(1, -(-queries.count() // A_TASK)))
    return asked.mapInArrow(task(str(directory.root), manifest.to_json()), f"id {kind}, rows string, error string")


def task(root: str, manifest: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(StateDirectory(root), Manifest.from_json(manifest))
        for batch in batches:
            answers = [answer(reader, sql) for sql in batch.column("sql").to_pylist()]
            told = pa.RecordBatch.from_pylist(answers, ANSWERS)
            yield pa.RecordBatch.from_arrays([batch.column("id"), *told.columns], ["id", *ANSWERS.names])

    return run


def answer(reader: Reader, sql: str | None) -> dict[str, str | None]:
    try:
        if sql is None:
            raise BadInput("no sql")
        rows = [json_row(row) for row in reader.search(sql)]
    except NearcastError as error:
        return {"rows": None, "error": str(error)}
    return {"rows": json.dumps(rows, ensure_ascii=False), "error": None}
