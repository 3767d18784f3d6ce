"""Writing files so that they are there whole or not at all.

Data files go through `pyarrow.fs`; what needs more than a file system promises (an exclusive link, a lock) is local.
"""

import os
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

LOCAL = pyarrow.fs.LocalFileSystem()


def sync(path: Path) -> None:
    """Force a file, or a folder's list of names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_table(path: Path, table: pa.Table, compression: str | None = None, rows: int | None = None) -> int:
    """An Arrow IPC file, in record batches of `rows`; returns its size. The name must be new."""
    LOCAL.create_dir(str(path.parent))
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with LOCAL.open_output_stream(str(path)) as out, pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    sync(path)
    return path.stat().st_size


def write_parquet(path: Path, table: pa.Table) -> int:
    LOCAL.create_dir(str(path.parent))
    pq.write_table(table, str(path), filesystem=LOCAL, compression="zstd")
    sync(path)
    return path.stat().st_size


def write_text(path: Path, text: str) -> None:
    """Replace a small file at once."""
    aside = _write_aside(path, text)
    os.replace(aside, path)
    sync(path.parent)


def create_exclusively(path: Path, text: str) -> bool:
    """Create a file whole under a name that must not exist yet: written aside, then linked. False if it exists."""
    aside = _write_aside(path, text)
    try:
        os.link(aside, path)
    except FileExistsError:
        return False
    finally:
        aside.unlink()
    sync(path.parent)
    return True


def _write_aside(path: Path, text: str) -> Path:
    """A file with the text beside `path`, on the disk. Where it cannot be written, nothing is left of it."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    aside.parent.mkdir(parents=True, exist_ok=True)
    try:
        aside.write_text(text, encoding="utf-8")
        sync(aside)
    except OSError as error:
        aside.unlink(missing_ok=True)
        error.filename = str(path)  # which one that tells of a full disk lacks
        raise
    return aside


def open_table(path: Path) -> pa.Table:
    """An Arrow IPC file, memory-mapped."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def folder_size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.exists() else 0
