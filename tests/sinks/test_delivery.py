"""Delivery: each sink goes on by itself, is left alone after a fault, and then gets what it lacks."""

from pathlib import Path

import pytest

from nearcast.common.errors import BadInput
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.results import read_results
from nearcast.sinks.delivery import CommittedOutbox, Delivery
from nearcast.sinks.folder import FolderSink
from nearcast.sinks.protocol import ResultBatch
from nearcast.storage.directory import StateDirectory
from tests.reader.small_state import MINUTE, NOON, ops, posts
from tests.sinks.conformance import ListOutbox, MemorySink, Place, SinkRules
from tests.sinks.test_folder import Folder

EVERYTHING = "SELECT * FROM stream"


class TestMemorySink(SinkRules):
    def place(self, folder: Path) -> Place:
        return Memory()


class Memory:
    def __init__(self) -> None:
        self.sink = MemorySink()

    def open(self) -> MemorySink:
        return self.sink

    def delivered(self) -> list[dict]:
        return self.sink.rows


class Failing(MemorySink):
    """Fails while `broken`, before it has written, or after."""

    name = "failing"

    def __init__(self, after: bool = False) -> None:
        super().__init__()
        self.broken = True
        self.after = after
        self.attempts = 0

    def write(self, batch: ResultBatch) -> None:
        self.attempts += 1
        if self.after or not self.broken:
            super().write(batch)
        if self.broken:
            raise ConnectionError("nobody there\nand more")


@pytest.mark.parametrize("after", [False, True])
def test_a_sink_that_fails_stops_neither_the_others_nor_the_stream(after: bool) -> None:
    #   seconds    0    1    2    3    4         pauses of 1 and 2 seconds after the first faults
    #   attempts   x    x         x    (fixed)
    now, told, failing, memory, outbox = [0.0], [], Failing(after), MemorySink(), ListOutbox()
    delivery = Delivery([failing, memory], told.append, most=1, clock=lambda: now[0])
    attempts = []
    for second in range(4):
        now[0] = float(second)
        outbox.add(f"text {second}")
        delivery.deliver(outbox)
        attempts.append(failing.attempts)
        assert memory.rows == outbox.all
    assert attempts == [1, 2, 2, 3]
    assert told == ["failing failed: nobody there; results wait for it in the outbox"]
    failing.broken, now[0] = False, 7.0
    delivery.deliver(outbox)
    assert failing.rows == outbox.all, "each once, also where the write was done before the fault"
    assert told[1:] == ["failing takes results again"]


def test_at_the_end_a_sink_is_tried_once_more_and_what_it_lacks_is_told() -> None:
    told, failing, outbox = [], Failing(), ListOutbox()
    outbox.add("a")
    delivery = Delivery([failing], told.append, clock=lambda: 0.0)
    delivery.begin(outbox)
    delivery.end(outbox)
    assert failing.attempts == 2 and "lacks results" in told[-1]
    failing.broken = False
    delivery.end(outbox)
    assert failing.rows == outbox.all and "takes results again" in told[-1]


def test_a_sink_with_the_results_of_another_state_is_refused_at_the_start() -> None:
    sink, outbox = MemorySink(), ListOutbox()
    outbox.add("a", "b")
    Delivery([sink]).deliver(outbox)
    with pytest.raises(BadInput, match="memory has 2 results, and this state only 0"):
        Delivery([sink]).begin(ListOutbox())


# -- the outbox of a state ---------------------------------------------------------------------------------------------


def a_state(root: Path, settings: Settings) -> StateDirectory:
    state = StateDirectory(root)
    begin(state, settings, posts((1, 0, "flood", {})))
    run_locally(state, settings, ops=ops({"op": "subscribe", "id_text": "all", "sql": EVERYTHING}))
    return state


def test_results_are_delivered_once_and_in_order(tmp_path: Path) -> None:
    settings = Settings(workers=2)
    state, place = a_state(tmp_path / "state", settings), Folder(tmp_path / "out")
    for minute in range(4):
        batch = posts((minute, minute, "rain 🌧", {}), (f"s{minute}", minute, "", {}))
        outbox = CommittedOutbox(state, run_locally(state, settings, posts=[batch]))
        for _ in range(2):  # the second time as after a crash: nothing is written twice
            Delivery([place.open()], most=1).deliver(outbox)
    assert [row["seq"] for row in place.delivered()] == list(range(8))
    assert [row["post_id"] for row in place.delivered()] == [row["post_id"] for row in read_results(state)]


def test_results_leave_the_outbox_when_their_time_is_over_and_seq_goes_on(tmp_path: Path) -> None:
    #   minute   0   1   2   3   4   5        kept: the last 2 minutes before the clock of the batch before
    #   posts    0   1   2   3   4   5
    settings = Settings(workers=1, keep_results=2 * MINUTE)
    state = a_state(tmp_path / "state", settings)
    for minute in range(6):
        run_locally(state, settings, posts=[posts((minute, minute, "rain", {}))])
    left = list(read_results(state))
    assert [(row["seq"], row["ts"]) for row in left] == [(s, NOON + s * MINUTE) for s in (2, 3, 4, 5)]
    told: list[str] = []
    assert Delivery([FolderSink(tmp_path / "late")], told.append).deliver(CommittedOutbox(state, state.newest())) == 4
    assert told == [f"{tmp_path / 'late'}: results 0 to 1 are no longer kept"]
    assert state.newest().counts["expired_results"] == 2
