"""A cursor kept in the state, for sinks that have no place for it beside their results."""

import json
from hashlib import blake2b
from pathlib import Path

from nearcast.storage.files import write_text

FOLDER = "deliveries"  # of a state


class KeptCursor:
    """The cursor of the sink `name`, in a file that is replaced at once."""

    def __init__(self, state: Path, name: str) -> None:
        self.name = name
        self.file = state / FOLDER / f"{blake2b(name.encode(), digest_size=8).hexdigest()}.json"

    def read(self) -> int:
        return int(json.loads(self.file.read_text(encoding="utf-8"))["cursor"]) if self.file.exists() else 0

    def move(self, cursor: int) -> None:
        write_text(self.file, json.dumps({"sink": self.name, "cursor": cursor}) + "\n")
