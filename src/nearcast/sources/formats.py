"""Files of posts: what their endings mean, how they are cut into splits, and how a split becomes posts.

| ending | format | units |
|---|---|---|
| .parquet | parquet | rows |
| .jsonl .ndjson .json | jsonl | bytes |
| .csv | csv | bytes; csv.whole, one unit, where a value may hold a newline, so that lines are not records |
| .jsonl.gz .ndjson.gz .json.gz, .csv.gz | jsonl.gz, csv.gz | one: compressed text cannot be entered in the middle |
"""

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.common.errors import BadInput
from nearcast.sources import records
from nearcast.sources.csv_lines import header_names, parse_csv
from nearcast.sources.json_lines import parse_json_lines
from nearcast.sources.lines import (
    BLOCK,
    MAX_LINE,
    has_quoted_newlines,
    line_blocks,
    record_blocks,
    record_ends,
    stream_blocks,
)
from nearcast.sources.raw import Raw, reject_table
from nearcast.sources.records import NO_MAPPING

ENDINGS = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".jsonl.gz": "jsonl.gz",
    ".ndjson.gz": "jsonl.gz",
    ".json.gz": "jsonl.gz",
    ".csv.gz": "csv.gz",
}
WHOLE_FORMATS = frozenset({"csv.whole", "jsonl.gz", "csv.gz"})
_PIECE_BYTES = 64 << 20
_MAX_CACHED_BYTES = 512 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class FilePart:
    """A part of a file: the rows [start, stop) of a Parquet file, or the lines that start in bytes [start, stop).

    A text split sees only the bytes [begin, end) of its file (`end` None: all), so what is appended to a growing file
    later changes nothing about it.
    """

    path: str
    format: str
    start: int
    stop: int
    begin: int = 0
    end: int | None = None


def format_of(path: str) -> str | None:
    """The format that the ending of a name means, if any."""
    name = os.path.basename(path).lower()
    matches = [ending for ending in ENDINGS if name.endswith(ending)]
    return ENDINGS[max(matches, key=len)] if matches else None


def count_units(path: str) -> tuple[str, int]:
    """(format, units) of a file."""
    form = format_of(path)
    if form is None:
        raise BadInput(f"cannot tell the format of {path}: known endings are {', '.join(ENDINGS)}")
    with readable(path):
        if form == "parquet":
            return form, pq.read_metadata(path).num_rows
        if form in WHOLE_FORMATS:
            return form, 1
        if form == "csv":
            with open(path, "rb") as stream:
                if has_quoted_newlines(stream):
                    return "csv.whole", 1
        return form, os.path.getsize(path)


def whole_file(path: str) -> FilePart:
    """The split that is all of a file."""
    form, units = count_units(path)
    return FilePart(path, form, 0, units)


def read_split(part: FilePart, mapping: Mapping[str, str] = NO_MAPPING) -> Iterator[tuple[pa.Table, pa.Table]]:
    """(posts, rejects) of a part of a file."""
    return records.posts_of(read_raw(part, *records.text_fields(mapping)), mapping)


def read_raw(split: FilePart, text: Set[str], id_name: str) -> Iterator[Raw]:
    """The rows of a split as the file gives them; in CSV, fields in `text` stay text, and `id_name` is the id's."""
    with readable(split.path):
        if split.format == "parquet":
            for table in _parquet_tables(split):
                yield Raw.of(table)
            return
        try:
            with _opened(split) as stream:
                is_csv = split.format.startswith("csv")
                yield from _csv(split, stream, text, id_name) if is_csv else _json(split, stream)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            nothing = pa.table({"id": pa.nulls(0)})
            yield Raw(nothing, reject_table(["broken gzip file"], [f"{split.path}: {error}"]), lambda rows: [])


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turns the ways in which a file cannot be read into one clear line."""
    try:
        yield
    except FileNotFoundError:
        raise BadInput(f"{path} is missing: put it back, or start a new state") from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, (gzip.BadGzipFile, pa.ArrowMemoryError)):
            raise
        raise BadInput(f"cannot read {path}: {str(error).splitlines()[0]}") from None


def _opened(split: FilePart) -> BinaryIO:
    if split.format.endswith(".gz"):
        return cast(BinaryIO, gzip.open(split.path, "rb"))
    if split.format not in WHOLE_FORMATS:
        _require(split, os.path.getsize(split.path), "bytes")
    return open(split.path, "rb")


def _require(split: FilePart, size: int, unit: str) -> None:
    needed = max(split.stop, split.end or 0)
    if size < needed:
        raise BadInput(f"{split.path} has shrunk to {size} {unit} since it was first read: {needed} are needed")


def _json(split: FilePart, stream: BinaryIO) -> Iterator[Raw]:
    if split.format == "jsonl":
        blocks = line_blocks(stream, split.start, split.stop, split.begin, _end(split))
    else:
        blocks = stream_blocks(stream)
    first = split.start == 0
    for block in blocks:
        yield parse_json_lines(block.removeprefix(_BOM) if first else block)
        first = False


def _csv(split: FilePart, stream: BinaryIO, text: Set[str], id_name: str) -> Iterator[Raw]:
    if split.format == "csv":
        names, begin = _csv_header(stream)
        blocks = line_blocks(stream, max(split.start, begin), split.stop, max(split.begin, begin), _end(split))
    else:
        blocks = record_blocks(stream)
        first = next(blocks, b"")
        cut = int(next(iter(record_ends(first)), len(first)))
        names = header_names(first[:cut])
        if not names:
            return
        yield parse_csv(first[cut:], names, text, id_name)
    if names:
        for block in blocks:
            yield parse_csv(block, names, text, id_name)


def _csv_header(stream: BinaryIO) -> tuple[list[str], int]:
    data = b""
    while len(data) < MAX_LINE and (chunk := stream.read(BLOCK if data else 1 << 16)):
        data += chunk
        ends = record_ends(data)
        if ends.size:
            return header_names(data[: ends[0]]), int(ends[0])
    return header_names(data), len(data)


def _end(split: FilePart) -> int:
    return os.path.getsize(split.path) if split.end is None else split.end


_last_group: tuple[tuple[str, int, int, int], pa.Table] | None = None


def _parquet_tables(split: FilePart) -> Iterator[pa.Table]:
    status = os.stat(split.path)
    with pq.ParquetFile(split.path) as file:
        _require(split, file.metadata.num_rows, "rows")
        base = 0
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            start, stop = max(split.start - base, 0), min(split.stop - base, about.num_rows)
            base += about.num_rows
            if start >= stop:
                continue
            rows = min(records.MAX_ROWS, max(1024, _PIECE_BYTES * about.num_rows // max(about.total_byte_size, 1)))
            if stop - start == about.num_rows or about.total_byte_size > _MAX_CACHED_BYTES:
                yield from _streamed(file, group, start, stop, rows)
                continue
            table = _cached_group(file, (split.path, status.st_mtime_ns, status.st_size, group))
            for at in range(start, stop, rows):
                yield table.slice(at, min(rows, stop - at))


def _streamed(file: pq.ParquetFile, group: int, start: int, stop: int, rows: int) -> Iterator[pa.Table]:
    at = 0
    for batch in file.iter_batches(batch_size=rows, row_groups=[group], use_threads=False):
        first, last = max(start - at, 0), min(stop - at, batch.num_rows)
        if first < last:
            yield pa.Table.from_batches([batch.slice(first, last - first)])
        at += batch.num_rows
        if at >= stop:
            return


def _cached_group(file: pq.ParquetFile, key: tuple[str, int, int, int]) -> pa.Table:
    """A decoded row group; the last one is kept, because a file read in many batches asks for it many times."""
    global _last_group
    if _last_group is None or _last_group[0] != key:
        _last_group = None
        _last_group = key, file.read_row_group(key[3], use_threads=False)
    return _last_group[1]
