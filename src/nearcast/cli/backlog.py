"""What a state has been given and has not worked on yet, from its checkpoint and its logs of files."""

import json
from dataclasses import dataclass

from nearcast.common.errors import NearcastError
from nearcast.sources.file_log import FileLog
from nearcast.storage.directory import StateDirectory


@dataclass(frozen=True)
class Backlog:
    """About how many posts and ops of the files given are still to be read."""

    posts: int
    ops: int


def backlog(state: StateDirectory, batch: int) -> Backlog | None:
    """What is left after a committed batch, or None where the checkpoint does not tell."""
    done = position(state, batch)
    if done is None:
        return None
    try:
        logs = {name: FileLog(state.source, name, read_only=True) for name in ("posts", "ops")}
    except NearcastError:
        return None
    left = {name: log.rows_estimate(int(done[name]), log.total) for name, log in logs.items()}
    return Backlog(left["posts"], left["ops"])


def position(state: StateDirectory, batch: int) -> dict[str, int] | None:
    """The offsets that a batch ended at."""
    try:
        lines = (state.checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
        found = json.loads(lines[2])
        return found if isinstance(found, dict) and {"ops", "posts"} <= found.keys() else None
    except (OSError, ValueError, IndexError):
        return None


def waiting_in_inbox(state: StateDirectory) -> int:
    """How many ops left in the inbox are not in a committed batch."""
    files = {path.name for path in state.inbox.glob("*.jsonl")}
    if not files:
        return 0
    done = position(state, state.newest().batch)
    try:
        log = FileLog(state.source, "ops", read_only=True)
    except NearcastError:
        return len(files)
    end, taken = 0, set()
    for entry in log.entries:
        end += entry.units
        if done is not None and end <= int(done["ops"]):
            taken.add(entry.path.rsplit("/", 1)[-1])
    return len(files - taken)
