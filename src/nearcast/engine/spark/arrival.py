"""When a batch arrived: the one wall-clock time that the logic may use, since it is the same on replay."""

import json

from nearcast.storage.directory import StateDirectory


def logged_arrival(state: StateDirectory, batch: int | None = None) -> int | None:
    """The time that Spark logged for a batch (the newest, if none is named), in microseconds."""
    folder = state.checkpoint / "offsets"
    if batch is None:
        batch = max((int(path.name) for path in folder.glob("[0-9]*")), default=-1)
    path = folder / str(batch)
    if not path.exists():
        return None
    return int(json.loads(path.read_text(encoding="utf-8").splitlines()[1])["batchTimestampMs"]) * 1000
