"""What a task tells the driver when it is done: a few numbers and the names of the files it wrote."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from nearcast.storage.manifest import SegmentRef


@dataclass
class TaskResult:
    """`segments` are new and `gone` are names of segments that leave; `spooled` are files for the second round and
    `notes` numbers for it, by what they are (a kind's own names); `searches` are those that came with the stream.
    """

    worker: int
    segments: list[SegmentRef] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    clock: int | None = None
    ops: int = 0
    searches: list[dict[str, Any]] = field(default_factory=list)
    spooled: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, list[int]] = field(default_factory=dict)

    def count(self, **counts: int) -> None:
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + int(value)

    def leave(self, what: str, name: str) -> None:
        """Name a file in the spool that the second round is to find."""
        self.spooled.setdefault(what, []).append(name)

    def files(self, what: str) -> list[str]:
        return self.spooled.get(what, [])

    def note(self, what: str, numbers: Sequence[int]) -> None:
        self.notes.setdefault(what, []).extend(numbers)

    def add(self, more: "TaskResult") -> None:
        """What the same worker did in a second round."""
        self.count(**more.counts)
        for stage, seconds in more.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Processor time of a stage, for the profile."""
        begin = time.thread_time()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.thread_time() - begin

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "TaskResult":
        data = json.loads(text)
        data["segments"] = [SegmentRef(**segment) for segment in data["segments"]]
        return cls(**data)


AllWorkers = Callable[[Callable[[int], TaskResult]], list[TaskResult]]  # a function of the worker, done by all of them


def add_round(tasks: Sequence[TaskResult], more: list[TaskResult]) -> list[TaskResult]:
    """A further round, its counts and times added to those of the first."""
    for before, each in zip(tasks, more, strict=True):
        before.add(each)
    return more


def noted(tasks: Sequence[TaskResult], what: str) -> list[int]:
    """The numbers that all tasks have noted."""
    return [number for task in tasks for number in task.notes.get(what, ())]


def files_left(tasks: Sequence[TaskResult], what: str) -> list[str]:
    """The files that all tasks have left."""
    return [name for task in tasks for name in task.files(what)]
