"""The state's inbox: ops from the command line, which the source of ops reads as files."""

from pathlib import Path

from nearcast.common.errors import NearcastError
from nearcast.sources.file_log import Entry, FileLog
from nearcast.sources.file_source import FileSource
from nearcast.sources.protocol import OPS
from nearcast.storage.checkpoint import batch_offset, last_batch, position
from nearcast.storage.directory import StateDirectory


def waiting_in_inbox(state: StateDirectory) -> int:
    """How many ops left in the inbox are not in a committed batch."""
    files = {path.name for path in state.inbox.glob("*.jsonl")}
    return len(files - {Path(entry.path).name for entry in _read(state, state.newest().batch)}) if files else 0


def empty_inbox(state: StateDirectory) -> None:
    """Remove ops of the inbox that a committed batch has taken in: a Spark commit lies behind each of them."""
    done = last_batch(state)
    for entry in _read(state, done) if done is not None else ():
        path = Path(entry.path)
        if path.parent == state.inbox:
            path.unlink(missing_ok=True)


def _read(state: StateDirectory, batch: int) -> list[Entry]:
    """The files of ops that were read by the end of a batch."""
    done = position(batch_offset(state, batch), OPS, FileSource.name) or 0
    try:
        log = FileLog(state.source, OPS, read_only=True)
    except NearcastError:
        return []
    end, read = 0, []
    for entry in log.entries:
        end += entry.units
        if end <= done:
            read.append(entry)
    return read
