"""What a task tells the driver when it is done: a few numbers and the names of the files it wrote."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from nearcast.storage.manifest import SegmentRef


@dataclass
class Report:
    worker: int
    segments: list[SegmentRef] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    clock: int | None = None
    ops: int = 0
    searches: list[dict[str, Any]] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)  # files in the spool: what may enter the answers of the nearest
    superseded: list[int] = field(default_factory=list)  # subscriptions to the nearest that others have taken over from
    reports: list[str] = field(default_factory=list)  # files in the spool: reports on a beat
    ranked: list[str] = field(default_factory=list)  # files in the spool: what may enter answers by relevance
    ledger_since: int | None = None  # from which time on the ledger has all posts
    forgotten: list[int] = field(default_factory=list)  # and those that were dropped long after their end

    def count(self, **counts: int) -> None:
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + int(value)

    def add(self, more: "Report") -> None:
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
    def from_json(cls, text: str) -> "Report":
        data = json.loads(text)
        data["segments"] = [SegmentRef(**segment) for segment in data["segments"]]
        return cls(**data)


Round = Callable[[Callable[[int], Report]], list[Report]]  # a function of the worker, done by all of them
