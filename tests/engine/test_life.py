"""A subscription's whole life: it starts, has results, ends by FOR or by unsubscribing, and leaves nothing behind."""

from pathlib import Path
from typing import Any

import pytest

from nearcast.engine.settings import Settings
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ENDS, NEAREST, PARTIALS, SUBSCRIPTIONS, TICKS, WINDOW
from nearcast.storage.sweep import sweep
from nearcast.storage.tick_progress import TickProgress
from tests.engine.harness import MINUTE, NOON, start, step
from tests.engine.oracle import Batch
from tests.marks import slow

PLACE = "loc INSIDE RECT(0, 40, 10, 50)"
KINDS = {
    "range": f"SELECT * FROM stream WHERE {PLACE} AND text CONTAINS 'rain'",
    "nearest": "SELECT * FROM stream WHERE text CONTAINS 'rain' ORDER BY DISTANCE(loc, POINT(5, 45)) LIMIT 3",
    "terms": f"SELECT TopK(text, 3) FROM stream WHERE {PLACE} AND time AFTER '5 minutes ago' SYNC 1 minute",
    "aggregates": "SELECT Count(id), minute FROM stream WHERE time AFTER '5 minutes ago' GROUP BY minute SYNC 1 minute",
    "total": "SELECT Count(id), Max(length) FROM stream SYNC 1 minute",
}
RETENTION = 30 * MINUTE


def posts(minute: int) -> list[dict[str, Any]]:
    return [
        {"id": 10 * minute + n, "ts": NOON + minute * MINUTE + n, "lon": 1.0 + n, "lat": 45.0, "text": f"rain w{n}"}
        for n in range(4)
    ]


def files(state: StateDirectory, kinds: tuple[str, ...]) -> dict[str, int]:
    """Rows of each kind that the state still names, and bytes on disk."""
    manifest = state.newest()
    rows = {kind: sum(ref.rows for ref in manifest.of(kind)) for kind in kinds}
    sweep(state, grace=0.0, now=2e9)
    size = sum(
        path.stat().st_size for kind in kinds for path in (state.root / "segments" / kind).rglob("*") if path.is_file()
    )
    return {**rows, "bytes": size}


@pytest.mark.parametrize("keep", ["posts", *slow("none")])
@pytest.mark.parametrize("ends", ["by unsubscribing", *slow("by FOR")])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_subscription_took_is_given_back(kind: str, ends: str, keep: str, tmp_path: Path) -> None:
    """After its end, retention and a few batches no segment of the state knows it, and no file of it is on disk.

    A batch has no process of its own here: every one opens the state anew, as after a restart.
    """
    state, settings = StateDirectory(tmp_path), Settings(workers=2, keep=keep, retention=RETENTION)
    start(state, settings, posts(0))
    own = (SUBSCRIPTIONS, ENDS, NEAREST, TICKS, WINDOW, PARTIALS)
    assert files(state, own) == {**dict.fromkeys(own, 0), "bytes": 0}

    sql = KINDS[kind] + (" FOR 10 MINUTES" if ends == "by FOR" else "")
    subscriptions = [{"op": "subscribe", "id": n, "sql": sql} for n in range(5)]
    step(state, settings, Batch(ops=subscriptions))
    for minute in range(9):
        step(state, settings, Batch(posts=posts(minute)))
    results = state.newest().counts["results"]
    assert results > 0
    there = files(state, own)
    assert there[SUBSCRIPTIONS] >= 5
    reporting = kind in ("terms", "aggregates", "total")
    assert (there[PARTIALS] > 0) == (kind in ("aggregates", "total"))
    assert (there[TICKS] > 0) == reporting and (there[NEAREST] > 0) == (kind == "nearest")
    assert (there[WINDOW] > 0) == (kind == "terms" and keep == "none")

    if ends == "by unsubscribing":
        step(state, settings, Batch(ops=[{"op": "unsubscribe", "id": n} for n in range(5)]))
    for minute in (*range(9, 14), *range(60, 90)):
        step(state, settings, Batch(posts=posts(minute)))
    assert files(state, own) == {**dict.fromkeys(own, 0), "bytes": 0}
    last = state.newest().counts["results"]
    step(state, settings, Batch(posts=posts(91)))
    assert state.newest().counts["results"] == last


def test_reports_know_how_far_they_are_only_while_they_stand(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path), Settings(workers=1)
    start(state, settings, posts(0))
    step(state, settings, Batch(ops=[{"op": "subscribe", "id": 1, "sql": KINDS["terms"]}]))
    step(state, settings, Batch(posts=posts(0) + posts(3)))
    beats = TickProgress.open(state, state.newest())
    assert beats.seq.tolist() == [0] and beats.following.tolist() == [NOON + 4 * MINUTE]
