"""A state directory on disk: creating, locking, naming and finding its files."""

import fcntl
import json
import os
import socket
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

from nearcast.common.errors import BadInput
from nearcast.storage.files import create_exclusively, write_text
from nearcast.storage.manifest import Manifest, newest, path_of


class StateDirectory:
    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.manifests = self.root / "manifest"
        self.segments = self.root / "segments"
        self.archive = self.root / "archive"
        self.inbox = self.root / "inbox"
        self.source = self.root / "source"
        self.checkpoint = self.root / "checkpoint"
        self.spool = self.root / "spool"

    def exists(self) -> bool:
        return any(self.manifests.glob("[0-9]*.json"))

    def create(self, settings: dict[str, Any]) -> Manifest:
        """Make an empty state, unless there is one already."""
        if not self.exists():
            self.refuse_if_not_a_state()
            for folder in (self.manifests, self.segments, self.inbox, self.source, self.spool):
                folder.mkdir(parents=True, exist_ok=True)
            create_exclusively(path_of(self.manifests, 0), Manifest(settings=settings).to_json())
        return self.newest()

    def refuse_if_not_a_state(self) -> None:
        """A directory that holds something else is left alone."""
        if self.root.exists() and not self.manifests.exists():
            if not self.root.is_dir():
                raise BadInput(f"{self.root} is a file, not a directory")
            if any(not path.name.startswith(("lock", "regions")) for path in self.root.iterdir()):
                raise BadInput(f"{self.root} is not empty and not a Nearcast state: choose another directory")

    def newest(self) -> Manifest:
        return newest(self.manifests)

    def path(self, name: str, ending: str = ".arrow") -> Path:
        return self.root / f"{name}{ending}"

    def new_name(self, kind: str, batch: int, worker: int) -> str:
        """A name that carries the attempt: only names that a finished task reported count."""
        folder = "rejects" if kind == "rejects" else f"segments/{kind}"
        return f"{folder}/b{batch:09d}-w{worker:03d}-{uuid.uuid4().hex[:12]}"

    def add_to_inbox(self, op: dict[str, Any]) -> None:
        """Leave an op for the next batch. It is there whole or not at all; names sort by arrival.

        Each carries a key of its own: files are recognised by content, and the same op may be meant twice.
        """
        if not self.exists():
            raise BadInput(f"{self.root} is not a Nearcast state directory: start one with nearcast run")
        key = uuid.uuid4().hex
        text = json.dumps({**op, "inbox_key": key}, ensure_ascii=False) + "\n"
        create_exclusively(self.inbox / f"{time.time_ns():020d}-{key[:12]}.jsonl", text)


class WriterLock:
    """One writer at a time. The lock dies with its process; its file says who holds it, and an epoch that only
    grows.
    """

    def __init__(self, state: StateDirectory) -> None:
        self.path = state.root / "lock"
        self._file: Any = None

    def __enter__(self) -> "WriterLock":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            holder = self.path.with_name("lock.holder")
            who = holder.read_text(encoding="utf-8").strip() if holder.exists() else "another process"
            raise BadInput(f"{self.path.parent} is being written by {who}: stop that run first") from None
        epoch = self._epoch() + 1
        write_text(
            self.path.with_name("lock.holder"), f"process {os.getpid()} on {socket.gethostname()}, epoch {epoch}\n"
        )
        return self

    def _epoch(self) -> int:
        holder = self.path.with_name("lock.holder")
        if not holder.exists():
            return 0
        last = holder.read_text(encoding="utf-8").rsplit(" ", 1)[-1].strip()
        return int(last) if last.isdigit() else 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
