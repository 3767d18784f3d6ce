"""Packets: what goes to one worker, as a binary of Arrow columns, at most about 8 MB each.

(Packets of 200 MB kill a default JVM; a shuffle moves 110-170 MB/s.)
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

MOST_BYTES = 6 << 20
POSTS, OPS, REJECTS, SEEN = "posts", "ops", "rejects", "seen"
SCHEMA = pa.schema([("worker", pa.int32()), ("packet", pa.binary())])


def pack(kind: str, table: pa.Table, order: int) -> Iterator[bytes]:
    """A table as packets; `order` places its rows among those of other splits, which arrive in any order."""
    if not len(table):
        return
    parts = -(-table.nbytes // MOST_BYTES) or 1
    step = -(-len(table) // parts)
    for part, begin in enumerate(range(0, len(table), step)):
        batch = table.slice(begin, step).combine_chunks().to_batches()[0]
        meta = {"kind": kind, "order": f"{order:020d}-{part:06d}"}
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema.with_metadata(meta)) as writer:
            writer.write_batch(batch)
        yield sink.getvalue().to_pybytes()


def to_batches(packets: Iterable[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Rows (worker, packet) for Spark, one packet a batch: none grows past what the JVM takes."""
    for worker, packet in packets:
        yield pa.record_batch([pa.array([worker], pa.int32()), pa.array([packet], pa.binary())], schema=SCHEMA)


def unpack(packets: Iterable[bytes]) -> dict[str, pa.Table]:
    """The packets of a worker as one table a kind, rows in the order in which the stream had them."""
    found: dict[str, list[tuple[str, pa.Table]]] = {}
    for packet in packets:
        with pa.ipc.open_stream(packet) as reader:
            meta = reader.schema.metadata
            table = reader.read_all().replace_schema_metadata(None)
        found.setdefault(meta[b"kind"].decode(), []).append((meta[b"order"].decode(), table))
    tables = {}
    for kind, parts in found.items():
        parts.sort(key=lambda part: part[0])
        tables[kind] = pa.concat_tables([table for _, table in parts], promote_options="default")
    return tables


def by_worker(table: pa.Table, workers: np.ndarray, count: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each worker, in order."""
    if count == 1:
        yield 0, table
        return
    for worker in range(count):
        mask = workers == worker
        if mask.all():
            yield worker, table
        elif mask.any():
            yield worker, table.filter(pa.array(mask))
