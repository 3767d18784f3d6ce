"""What every sink is held to: each result once, whole and in order, whatever fails, crashes and starts again.

A suite for a sink inherits `SinkSuite` and says, by a `Place`, where such a sink writes and what is found there. What
is right is what `MemorySink` has, the simplest sink there is.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.sinks.delivery import Delivery
from nearcast.sinks.protocol import ResultBatch, Sink

Row = dict[str, Any]
inherited = settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])
AWKWARD = ["", "🌊 café", "two\nlines\r\n", "\u2028", 'a "quote" \\', "\x00", "静か", "x" * 100_000]


class Place(Protocol):
    """Where a sink writes, as those see it who read there."""

    def open(self) -> Sink:
        """The sink, as a new process opens it."""

    def delivered(self) -> list[Row]:
        """All that is there, in the order in which it is read."""


class MemorySink(Sink):
    """Results in a list; their number is the cursor."""

    name = "memory"

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def cursor(self) -> int:
        return self.rows[-1]["seq"] + 1 if self.rows else 0

    def write(self, batch: ResultBatch) -> None:
        self.rows += batch.rows


class ListOutbox:
    """An outbox of these texts; the first `oldest` results have expired."""

    def __init__(self, oldest: int = 0) -> None:
        self.oldest = oldest
        self.all: list[Row] = []

    @property
    def next_seq(self) -> int:
        return len(self.all)

    def add(self, *texts: str) -> None:
        for text in texts:
            about = {"query_id": "q", "batch": 3, "kind": "match", "post_id": len(self.all), "text": text}
            self.all.append({**about, "seq": len(self.all), "ts": "2026-05-01T12:00:00Z", "price": None})

    def rows(self, first: int) -> Iterator[Row]:
        assert self.oldest <= first <= self.next_seq
        return iter(self.all[first:])


# -- faults and crashes ------------------------------------------------------------------------------------------------


class Fault(OSError):
    """What a sink meets when something around it fails."""


def fail() -> None:
    raise Fault("injected")


def crash() -> None:
    os._exit(9)


def at_step(number: int, happen: Callable[[], None]) -> Callable[[FrameType, str, Any], None]:
    """A profile function: before the call of a built-in with this number (a write, a rename, a commit), it happens."""
    left = number

    def step(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event == "c_call":
            left -= 1
            if left < 0:
                sys.setprofile(None)
                happen()

    return step


class Disturbed(Sink):
    """A sink in which something happens at a step of its first write."""

    def __init__(self, sink: Sink, step: int, happen: Callable[[], None]) -> None:
        self.sink = sink
        self.name = sink.name
        self.step: int | None = step
        self.happen = happen

    def cursor(self) -> int:
        return self.sink.cursor()

    def write(self, batch: ResultBatch) -> None:
        step, self.step = self.step, None
        sys.setprofile(None if step is None else at_step(step, self.happen))
        try:
            self.sink.write(batch)
        finally:
            sys.setprofile(None)


def in_a_process_that_may_die(work: Callable[[], None]) -> bool:
    """Do it in a copy of this process; whether that lived to the end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 9), "it failed, and not by the crash"
    return code == 0


# -- the suite ---------------------------------------------------------------------------------------------------------


actions = st.lists(
    st.one_of(
        st.tuples(st.just("results"), st.lists(st.sampled_from(AWKWARD), max_size=5)),
        st.tuples(st.just("deliver"), st.integers(1, 4)),
        st.tuples(st.just("fault"), st.integers(0, 60)),
    ),
    max_size=10,
)


class SinkRules:
    """All rules but that of crashes. Inherit `SinkSuite`, and give `place`: somewhere new to write, in an empty folder.

    `repeats` is for a sink that writes before it moves its cursor: a crash between the two doubles the last batch.
    """

    repeats = False

    def place(self, folder: Path) -> Place:
        raise NotImplementedError

    def delivered(self, place: Place) -> list[Row]:
        rows = place.delivered()
        if self.repeats:
            seen = -1
            for row in rows:
                assert row["seq"] <= seen + 1, "nothing is passed over"
                seen = max(seen, row["seq"])
            rows = sorted({row["seq"]: row for row in rows}.values(), key=lambda row: row["seq"])
        return rows

    def test_a_new_one_has_nothing(self, tmp_path: Path) -> None:
        place = self.place(tmp_path)
        assert place.open().cursor() == 0
        Delivery([place.open()]).deliver(ListOutbox())
        assert place.delivered() == []
        assert place.open().cursor() == 0

    @inherited
    @given(actions=actions)
    def test_every_result_is_there_once_and_in_order_whatever_fails(
        self, tmp_path_factory: Any, actions: list[tuple[str, Any]]
    ) -> None:
        place, memory, outbox = self.place(tmp_path_factory.mktemp("place")), MemorySink(), ListOutbox()
        for what, how in actions:
            if what == "results":
                outbox.add(*how)
            elif what == "deliver":
                Delivery([place.open(), memory], most=how).deliver(outbox)
                assert self.delivered(place) == memory.rows == outbox.all
            else:
                Delivery([Disturbed(place.open(), how, fail)], lambda line: None).deliver(outbox)
                rows = self.delivered(place)
                assert rows == outbox.all[: len(rows)]
        Delivery([place.open(), memory]).deliver(outbox)
        assert self.delivered(place) == memory.rows == outbox.all
        assert place.open().cursor() == outbox.next_seq

    def test_huge_texts_and_many_results_come_whole(self, tmp_path: Path) -> None:
        place, outbox = self.place(tmp_path), ListOutbox()
        outbox.add("🌊" * 1_000_000, *(f"text {n}" for n in range(3000)), "x" * 3_000_000)
        Delivery([place.open()], most=1000).deliver(outbox)
        assert self.delivered(place) == outbox.all

    def test_what_has_expired_before_it_was_there_it_never_gets(self, tmp_path: Path) -> None:
        place, outbox, told = self.place(tmp_path), ListOutbox(oldest=4), []
        outbox.add(*"abcdefg")
        Delivery([place.open()], told.append).deliver(outbox)
        assert [row["seq"] for row in place.delivered()] == [4, 5, 6]
        assert place.open().cursor() == 7
        assert ["no longer kept" in line for line in told] == [True]

    def test_two_of_them_do_not_meet(self, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "one").mkdir()
        one, other, outbox = self.place(tmp_path / "one"), self.place(tmp_path / "other"), ListOutbox()
        outbox.add("a", "b")
        Delivery([one.open()]).deliver(outbox)
        assert other.open().cursor() == 0
        Delivery([one.open(), other.open()]).deliver(outbox)
        assert one.delivered() == other.delivered() == outbox.all


class SinkSuite(SinkRules):
    """The rules for a sink that outlives its process: each but one in memory."""

    def test_a_crash_between_any_two_steps_loses_and_doubles_nothing(self, tmp_path: Path) -> None:
        place, outbox = self.place(tmp_path), ListOutbox()
        outbox.add("first")
        Delivery([place.open()]).deliver(outbox)
        for step in range(1000):
            outbox.add(f"🌊 {step}", "more")
            whole = in_a_process_that_may_die(
                lambda step=step: Delivery([Disturbed(place.open(), step, crash)], most=2).deliver(outbox) and None
            )
            rows = self.delivered(place)
            assert rows == outbox.all[: len(rows)]
            assert self.repeats or place.open().cursor() == len(rows)
            if whole:
                break
        assert step > 1, "there were steps to crash at"
        Delivery([place.open()]).deliver(outbox)
        assert self.delivered(place) == outbox.all
