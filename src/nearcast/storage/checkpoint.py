"""Spark's checkpoint of a state, read: which batches it knows, when each began, and how far each read.

A file `offsets/N` has a line with Spark's version, one with what Spark notes of the batch, and one with the offset of
each source; ours is told from those of a user's DataFrames by its version:

    {"version": 2, "ops": {"files:": {"of": "5f0c…", "at": 1200}}, "posts": {"world:seed=1,…": {"of": "1", "at": 5000}}}

so each source that a state ever read has its position, `at`, and what that counts in, `of`.
"""

import json
from typing import Any, TypeAlias

from nearcast.common.errors import BadInput
from nearcast.storage.directory import StateDirectory

VERSION = 2
ROLES = ("ops", "posts")

Offset: TypeAlias = dict[str, Any]


def empty_offset() -> Offset:
    """Before anything was read."""
    return {"version": VERSION, **{role: {} for role in ROLES}}


def is_offset(found: Any) -> bool:
    """Whether it is an offset of ours."""
    return isinstance(found, dict) and ("version" in found or "ops_log" in found) and set(ROLES) <= found.keys()


def read_offset(found: Offset) -> Offset:
    """An offset as this version writes it. Nearcast 0.1 had one number for all posts, and one for all ops."""
    if "version" not in found:
        old = {role: {"files:": {"of": found[f"{role}_log"], "at": found[role]}} for role in ROLES}
        return {"version": VERSION, **old}
    if found["version"] != VERSION:
        raise BadInput(
            f"the checkpoint has offsets of version {found['version']}, and this program reads version {VERSION}"
        )
    return found


def batch_offset(state: StateDirectory, batch: int) -> Offset | None:
    """How far a batch read, or None where the checkpoint does not say."""
    for line in _lines(state, batch)[2:]:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if is_offset(found):
            return read_offset(found)
    return None


def position(offset: Offset | None, role: str, source: str) -> Any:
    """How far a source was read by an offset, or None if it was not."""
    return None if offset is None else offset[role].get(source, {}).get("at")


def batch_time(state: StateDirectory, batch: int | None = None) -> int | None:
    """The time that Spark logged for a batch (the newest, if none is named), in microseconds."""
    if batch is None:
        batch = max((int(path.name) for path in (state.checkpoint / "offsets").glob("[0-9]*")), default=-1)
    lines = _lines(state, batch)
    return int(json.loads(lines[1])["batchTimestampMs"]) * 1000 if lines else None


def last_batch(state: StateDirectory) -> int | None:
    """The last batch that Spark has noted as done."""
    return max((int(path.name) for path in (state.checkpoint / "commits").glob("[0-9]*")), default=None)


def query_id(state: StateDirectory) -> str | None:
    """The id of the streaming query that the checkpoint belongs to, or None where there is no checkpoint."""
    metadata = state.checkpoint / "metadata"
    return str(json.loads(metadata.read_text(encoding="utf-8"))["id"]) if metadata.exists() else None


def _lines(state: StateDirectory, batch: int) -> list[str]:
    try:
        return (state.checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
