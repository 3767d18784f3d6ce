"""A crash at any write, link, removal or sync: what was committed stays, what was not is done again, nothing twice.

Without Spark: the process is not killed, but the system call that it would have died at raises, and everything that
it had in memory is given up. A batch that was cut off is run again, as Spark replays it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.engine.warmup import a_range
from nearcast.reader.current_answer import read_current
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.storage import files
from nearcast.storage.directory import StateDirectory
from nearcast.storage.sweep import sweep
from tests.engine.harness import ops_table
from tests.marks import slow

SQL = a_range()
BATCHES = 12
A_BATCH = 60
STRIPS = [f"SELECT * FROM stream WHERE loc INSIDE RECT({w}, -90, {w + 40}, 90)" for w in range(-180, 180, 40)]
REPORTS = "SELECT TopK(text, 4) FROM stream WHERE time AFTER '{} seconds ago' SYNC 5 seconds"
AGGREGATES = "SELECT Count(id), Max(likes), weekday FROM stream{} GROUP BY weekday SYNC 5 seconds"
NEAREST = "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT({}, 50)) LIMIT 5"
RELEVANT = "SELECT * FROM stream ORDER BY RELEVANCE(POINT({}, 50), 'coffee train rain the', 0.4) DESC LIMIT 5 WINDOW {}"


class Crash(Exception):
    pass


@contextmanager
def crashing_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let the `step`-th change to the disk fail, before or after it happened, in turn."""
    count = [0]

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **more: Any) -> Any:
            count[0] += 1
            if count[0] == step and step % 2:
                raise Crash
            result = call(*args, **more)
            if count[0] == step:
                raise Crash
            return result

        return instead

    with monkeypatch.context() as patch:
        for name in ("link", "replace", "unlink", "fsync"):
            patch.setattr(os, name, watched(getattr(os, name)))
        patch.setattr(files.pa.ipc, "new_file", watched(files.pa.ipc.new_file))
        yield count


def stream(state: StateDirectory, settings: Settings, until: int = BATCHES) -> None:
    """Go on with the stream from wherever the state is: ops and posts in turn, sweeping now and then."""
    posts, _ = normalise(World(seed=5, rate=10).posts(0, BATCHES * A_BATCH))
    begin(state, settings, posts.slice(0, 50))
    while (batch := state.newest().batch + 1) < until:
        if batch % 2 == 0:
            box = f"SELECT id FROM stream WHERE loc INSIDE RECT(-180, -90, 180, {30 + batch}) AND likes < 50"
            ops = [{"op": "subscribe", "id": f"q{batch}", "sql": SQL if batch % 4 else box}]
            ops += [] if batch else [{"op": "subscribe", "id": f"s{n}", "sql": sql} for n, sql in enumerate(STRIPS)]
            ops += [{"op": "subscribe", "id": f"n{batch % 6}", "sql": NEAREST.format(batch)}]
            span = "200 POSTS" if batch % 4 else "15 SECONDS"
            ops += [{"op": "subscribe", "id": f"r{batch % 6}", "sql": RELEVANT.format(batch, span)}]
            ops += [{"op": "subscribe", "id": f"t{batch % 4}", "sql": REPORTS.format(8 + batch)}]
            window = " WHERE time AFTER '12 seconds ago'" if batch % 4 else ""
            ops += [{"op": "subscribe", "id": f"a{batch % 6}", "sql": AGGREGATES.format(window)}]
            ops += [{"op": "delete", "id": batch * A_BATCH - 7}] if batch else []
            ops += [{"op": "unsubscribe", "id": f"q{batch - 4}"}] if batch >= 4 else []
            run_locally(state, settings, ops=ops_table(ops))
        else:
            run_locally(state, settings, posts=[posts.slice((batch - 1) * A_BATCH, 2 * A_BATCH)])
        if batch % 3 == 0:
            sweep(state, grace=0.0)


def outbox(state: StateDirectory) -> list[tuple[Any, ...]]:
    return [
        (row["query_id"], row["seq"], row["batch"], row.get("post_id"), row.get("window_end"), str(row.get("rows")))
        for row in read_results(state)
    ]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge after every third segment, so that merging is among what is cut off."""
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (3,))
    monkeypatch.setattr("nearcast.storage.compaction_policy.run_to_merge.__defaults__", (3,))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("keep", ["posts", *slow("none")])
def test_a_crash_at_any_step_loses_nothing_and_doubles_nothing(
    keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(workers=2, keep=keep)
    stream(StateDirectory(tmp_path / "warm"), settings)  # what Numba compiles, it keeps by steps of its own
    undisturbed = StateDirectory(tmp_path / "undisturbed")
    with crashing_at(0, monkeypatch) as steps:
        stream(undisturbed, settings)
    expected = outbox(undisturbed)
    counts = undisturbed.newest().counts
    assert len(expected) > 100 and counts["reports"] > 10 and counts["merges"] > 3
    searched = [row["id"] for row in Reader(undisturbed).search(SQL)] if keep == "posts" else []
    thorough = bool(os.environ.get("NEARCAST_THOROUGH"))
    for step in range(1, steps[0] + 1, 37 if thorough else 1021):
        state = StateDirectory(tmp_path / f"step{step}")
        with crashing_at(step, monkeypatch), pytest.raises(Crash):
            stream(state, settings)
        stream(state, settings)
        assert outbox(state) == expected, f"crash at step {step}"
        for name in ("n0", "n2", "n4", "r0", "r2", "r4"):
            assert list(read_current(Reader(state), name)) == list(read_current(Reader(undisturbed), name))
        sweep(state, grace=0.0)
        named = {ref.name for ref in state.newest().segments}
        on_disk = {p.relative_to(state.root).as_posix().partition(".")[0] for p in state.segments.rglob("*.arrow")}
        assert on_disk == {name for name in named if name.startswith("segments")}
        if keep == "posts":
            assert [row["id"] for row in Reader(state).search(SQL)] == searched


def test_a_full_disk_stops_a_batch_and_the_next_try_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(workers=1)
    state = StateDirectory(tmp_path / "state")
    posts, _ = normalise(World(seed=5, rate=10).posts(0, 100))
    begin(state, settings, posts)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.pa.ipc, "new_file", full)
        with pytest.raises(OSError, match="No space left"):
            run_locally(state, settings, posts=[posts])
    assert state.newest().batch == -1
    assert run_locally(state, settings, posts=[posts]).counts["stored"] == 100
