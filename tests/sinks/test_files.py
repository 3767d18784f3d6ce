"""Results into files: each once, whole, in order, also after a crash between two files."""

import json
from pathlib import Path

from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.results import read_results
from nearcast.sinks.files import cursor, deliver
from nearcast.storage.directory import StateDirectory
from tests.reader.small_state import MINUTE, NOON, ops, posts

EVERYTHING = "SELECT * FROM stream"


def a_state(root: Path, settings: Settings) -> StateDirectory:
    state = StateDirectory(root)
    begin(state, settings, posts((1, 0, "flood", {})))
    run_locally(state, settings, ops=ops({"op": "subscribe", "id_text": "all", "sql": EVERYTHING}))
    return state


def delivered(folder: Path) -> list[dict]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def test_results_are_delivered_once_and_in_order(tmp_path: Path) -> None:
    settings = Settings(workers=2)
    state, folder = a_state(tmp_path / "state", settings), tmp_path / "out"
    for minute in range(4):
        manifest = run_locally(
            state, settings, posts=[posts((minute, minute, "rain", {}), (f"s{minute}", minute, "", {}))]
        )
        deliver(state, manifest, str(folder), most=1)
        deliver(state, manifest, str(folder), most=1)  # again, as after a crash: nothing is written twice
    assert cursor(folder) == 8
    assert [row["seq"] for row in delivered(folder)] == list(range(8))
    assert [row["post_id"] for row in delivered(folder)] == [row["post_id"] for row in read_results(state)]


def test_results_leave_the_outbox_when_their_time_is_over_and_seq_goes_on(tmp_path: Path) -> None:
    #   minute   0   1   2   3   4   5        kept: the last 2 minutes before the clock of the batch before
    #   posts    0   1   2   3   4   5
    settings = Settings(workers=1, keep_results=2 * MINUTE)
    state = a_state(tmp_path / "state", settings)
    for minute in range(6):
        run_locally(state, settings, posts=[posts((minute, minute, "rain", {}))])
    left = list(read_results(state))
    assert [(row["seq"], row["ts"]) for row in left] == [(s, NOON + s * MINUTE) for s in (2, 3, 4, 5)]
    assert deliver(state, state.newest(), str(tmp_path / "late")) == 4
    assert state.newest().counts["expired_results"] == 2
