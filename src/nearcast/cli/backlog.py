"""What a state has been given and has not worked on yet, from its checkpoint and its logs of files."""

from dataclasses import dataclass

from nearcast.common.errors import NearcastError
from nearcast.sources.file_log import FileLog
from nearcast.sources.file_source import FileSource
from nearcast.sources.protocol import OPS, POSTS
from nearcast.storage.checkpoint import Offset, batch_offset, position
from nearcast.storage.directory import StateDirectory


@dataclass(frozen=True)
class Backlog:
    """About how many posts and ops of the files given are still to be read."""

    posts: int
    ops: int


def backlog(state: StateDirectory, batch: int) -> Backlog | None:
    """What is left after a committed batch, or None where the checkpoint does not tell."""
    done = batch_offset(state, batch)
    if done is None:
        return None
    return Backlog(*(_left(state, done, role) for role in (POSTS, OPS)))


def _left(state: StateDirectory, done: Offset, role: str) -> int:
    """About how many rows of files are left; none where a role has had no files."""
    try:
        log = FileLog(state.source, role, read_only=True)
    except NearcastError:
        return 0
    return log.rows_estimate(position(done, role, FileSource.name) or 0, log.total)
