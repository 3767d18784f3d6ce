"""Delivery: what the outbox has beyond a sink's cursor goes to the sink, after every commit.

Each sink goes on by itself. One that fails is told of and left alone for a while; then it is asked for its cursor and
gets what it lacks. The stream goes on meanwhile, and the results wait in the outbox.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from nearcast.common.errors import BadInput
from nearcast.reader.reader import Reader
from nearcast.reader.results import first_seq, read_results
from nearcast.reader.row_format import json_row
from nearcast.sinks.protocol import ResultBatch, Sink
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import RESULTS, Manifest

MOST = 100_000  # results of a batch
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds after a fault

Tell = Callable[[str], None]


class Outbox(Protocol):
    """Results to deliver: those with the numbers [oldest, next_seq)."""

    oldest: int
    next_seq: int

    def rows(self, first: int) -> Iterator[dict[str, Any]]:
        """The rows from a number on, in order."""


class CommittedOutbox:
    """The outbox of a state as a committed batch left it."""

    def __init__(self, state: StateDirectory, manifest: Manifest) -> None:
        self.state = state
        self.manifest = manifest
        self.next_seq = manifest.next_seq
        self.oldest = min((first_seq(ref) for ref in manifest.of(RESULTS)), default=manifest.next_seq)

    def rows(self, first: int) -> Iterator[dict[str, Any]]:
        return map(json_row, read_results(Reader(self.state, self.manifest), since_seq=first))


def batches(outbox: Outbox, first: int, most: int = MOST) -> Iterator[ResultBatch]:
    """What an outbox has from a number on, in batches."""
    rows = outbox.rows(first) if first < outbox.next_seq else iter(())
    while piece := list(islice(rows, most)):
        stop = int(piece[-1]["seq"]) + 1
        yield ResultBatch(first, stop, piece)
        first = stop


class Delivery:
    """The sinks of a run. `tell` is given a line for each fault, and for each recovery."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        tell: Tell | None = None,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lanes = [Lane(sink, tell or logging.getLogger("nearcast").warning, most, clock) for sink in sinks]

    def begin(self, outbox: Outbox) -> None:
        """Deliver what is there; a sink that another state has written to is refused."""
        for lane in self.lanes:
            lane.check(outbox)
        self.deliver(outbox)

    def deliver(self, outbox: Outbox) -> int:
        """Give each sink what it lacks, unless it has failed a moment ago; the number of results written."""
        return sum(lane.deliver(outbox) for lane in self.lanes)

    def end(self, outbox: Outbox) -> None:
        """Deliver once more, tell of what is left, and close the sinks."""
        for lane in self.lanes:
            lane.until = 0.0
            lane.deliver(outbox)
            if lane.faults:
                lane.tell(f"{lane.sink.name} lacks results: the next run with it goes on where it stopped")
            lane.sink.close()


class Lane:
    """A sink, and what is known of it: its cursor (None: to be asked for), and how it has failed of late."""

    def __init__(self, sink: Sink, tell: Tell, most: int, clock: Callable[[], float]) -> None:
        self.sink = sink
        self.tell = tell
        self.most = most
        self.clock = clock
        self.cursor: int | None = None
        self.faults = 0
        self.until = 0.0  # before then it is left alone

    def check(self, outbox: Outbox) -> None:
        """Refuse a sink that has more than there is: it has the results of another state."""
        try:
            cursor = self.sink.cursor()
        except Exception as fault:
            self._failed(fault)
            return
        if cursor > outbox.next_seq:
            raise BadInput(
                f"{self.sink.name} has {cursor:,} results, and this state only {outbox.next_seq:,}: "
                "they are of another state, so give another sink"
            )
        self.cursor = cursor

    def deliver(self, outbox: Outbox) -> int:
        """Write what the sink lacks; how many results that was."""
        if self.faults and self.clock() < self.until:
            return 0
        written = 0
        try:
            for batch in batches(outbox, self._first(outbox), self.most):
                self.sink.write(batch)
                self.cursor = batch.stop
                written += len(batch.rows)
        except Exception as fault:
            self._failed(fault)
            return written
        if self.faults:
            self.tell(f"{self.sink.name} takes results again")
            self.faults = 0
        return written

    def _first(self, outbox: Outbox) -> int:
        """The first result to write. What the outbox no longer keeps, nobody gets any more; that is told."""
        cursor = self.sink.cursor() if self.cursor is None else self.cursor
        if cursor < outbox.oldest:
            self.tell(f"{self.sink.name}: results {cursor:,} to {outbox.oldest - 1:,} are no longer kept")
            cursor = outbox.oldest
        self.cursor = cursor
        return cursor

    def _failed(self, fault: Exception) -> None:
        """Whether the batch was written is not known now: the cursor says so the next time."""
        self.cursor = None
        if not self.faults:
            self.tell(f"{self.sink.name} failed: {_line(fault)}; results wait for it in the outbox")
        self.until = self.clock() + min(FIRST_PAUSE * 2 ** min(self.faults, 10), LONGEST_PAUSE)
        self.faults += 1


def _line(fault: Exception) -> str:
    lines = str(fault).strip().splitlines()
    return lines[0] if lines else type(fault).__name__
