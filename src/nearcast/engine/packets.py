"""Packets: what goes to one worker, as Arrow columns in a binary.

A packet of more than INLINE bytes is left as a file in the state's spool, and only its name goes through Spark's
shuffle: `bench pipeline` at 400,000 posts a batch went from 131,000 to 197,000-223,000 posts/s with it.
Workers map segments that others wrote, so the state is on storage they share; the spool asks for no
more. It is emptied after each commit, and what a crash leaves in it at the next start.
"""

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

INLINE = 64 << 10
MOST_BYTES = 64 << 20
POSTS, OPS, QUERIES, REJECTS, SEEN, PRINTS = "posts", "ops", "queries", "rejects", "seen", "prints"
SCHEMA = pa.schema([("worker", pa.int32()), ("packet", pa.binary())])
SPOOLED = b"file:"


def pack(kind: str, table: pa.Table, order: int, spool: Path | None = None, piece: int = 0) -> Iterator[bytes]:
    """A table as packets; `order` places its rows among those of other splits, which arrive in any order, and `piece`
    among those of its own.
    """
    if not len(table):
        return
    parts = -(-table.nbytes // MOST_BYTES) or 1
    step = -(-len(table) // parts)
    for part, begin in enumerate(range(0, len(table), step)):
        rows = table.slice(begin, step)
        meta = {"kind": kind, "order": f"{order:020d}-{piece:06d}-{part:06d}"}
        spooled = spool is not None and rows.nbytes > INLINE
        path = f"{spool}/{uuid.uuid4().hex}"
        sink = pa.OSFile(path, "wb") if spooled else pa.BufferOutputStream()
        with sink, pa.ipc.new_stream(sink, rows.schema.with_metadata(meta)) as writer:
            writer.write_table(rows)
        yield SPOOLED + path.encode() if spooled else sink.getvalue().to_pybytes()


def to_batches(packets: Iterable[tuple[int, bytes]]) -> Iterator[pa.RecordBatch]:
    """Rows (worker, packet) for Spark."""
    for worker, packet in packets:
        yield pa.record_batch([pa.array([worker], pa.int32()), pa.array([packet], pa.binary())], schema=SCHEMA)


def unpack(packets: Iterable[bytes]) -> dict[str, pa.Table]:
    """The packets of a worker as one table a kind, rows in the order in which the stream had them."""
    found: dict[str, list[tuple[str, pa.Table]]] = {}
    for packet in packets:
        packet = bytes(packet)  # a copy, so that columns are aligned: Numba would compile anew for every other case
        source = pa.memory_map(packet[len(SPOOLED) :].decode()) if packet.startswith(SPOOLED) else packet
        with pa.ipc.open_stream(source) as reader:
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
