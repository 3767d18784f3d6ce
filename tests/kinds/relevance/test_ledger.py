"""The ledger stays small in files, and forgets what was deleted, without an answer changing."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from nearcast.engine.settings import Settings
from nearcast.kinds.relevance.compaction import LARGE, unbroken
from nearcast.kinds.relevance.ledger import open_part
from nearcast.kinds.relevance.ledger_file import NUMBER
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, LEDGER, SegmentRef
from tests.engine.harness import MINUTE, NOON, start, step
from tests.engine.oracle import Batch
from tests.kinds.relevance.test_standing import FIRST, PERIOD, RelevantOracle, check_relevant
from tests.marks import slow

SQL = "SELECT * FROM stream{} ORDER BY RELEVANCE(POINT({}, 50), 'flood fire', 0.4) DESC LIMIT 4 WINDOW {}"
ASK = [
    {"op": "subscribe", "id": number, "sql": SQL.format(where, number, window)}
    for number, (where, window) in enumerate(
        [("", "7 POSTS"), ("", "400 POSTS"), ("", "9 MINUTES"), (" WHERE price < 5", "50 POSTS")]
    )
]
HOUR = 60 * MINUTE
SETTINGS = Settings(workers=2, idf_period=PERIOD)


def post(number: int, text: str = "a flood of fire", minute: float = 0.0) -> dict[str, Any]:
    ts = NOON + round(minute * MINUTE)
    post_id = number if number % 3 else f"p{number}"
    return {"id": post_id, "ts": ts, "lon": number % 50 - 25.0, "lat": 50.0, "text": text, "price": number % 10}


def begun(root: Path, settings: Settings) -> tuple[StateDirectory, RelevantOracle]:
    state, oracle = StateDirectory(root), RelevantOracle(NOON)
    start(state, settings, FIRST)
    return state, oracle


def go_on(state: StateDirectory, settings: Settings, oracle: RelevantOracle, batch: Batch, check: bool = True) -> None:
    step(state, settings, batch)
    oracle.batch(batch)
    if check:
        assert check_relevant(state, oracle) > 0


def test_a_long_run_has_few_segments_and_the_right_answers(tmp_path: Path) -> None:
    random = Random(4)
    merging, oracle = begun(tmp_path / "merging", SETTINGS)
    plain, _ = begun(tmp_path / "plain", SETTINGS)
    for number in range(24):
        ops = ASK if number == 0 else [{"op": "delete", "id": post(random.randrange(4 * number))["id"]}]
        words = ("flood", "fire", "a flood of fire", "a street")
        posts = [post(4 * number + i, random.choice(words), number + random.randrange(-3, 2)) for i in range(4)]
        batch = Batch(ops, posts)
        go_on(merging, SETTINGS, oracle, batch, check=number % 4 == 1)
        step(plain, replace(SETTINGS, merge=False), batch)
    few, many = merging.newest().of(LEDGER), plain.newest().of(LEDGER)
    assert check_relevant(merging, oracle) == check_relevant(plain, oracle) > 10
    assert len(few) < 12 < 24 <= len(many)
    assert sum(ref.rows for ref in few) == sum(ref.rows for ref in many) == 96


def left_of(state: StateDirectory) -> tuple[set[str], set[float]]:
    """The texts and longitudes that the ledger has on disk."""
    parts = [open_part(state, ref) for ref in state.newest().of(LEDGER)]
    texts = {text for part in parts for text in part.posts()["text"].to_pylist()}
    return texts, {lon for part in parts for lon in part.lon.tolist()}


@pytest.mark.parametrize("size", [3, 2200])  # of the first batch: a segment that is merged, and one too large for it
def test_of_a_deleted_post_only_its_place_in_windows_is_left(size: int, tmp_path: Path) -> None:
    settings = replace(SETTINGS, workers=1)
    state, oracle = begun(tmp_path, settings)
    secret = {**post(1, "fire at my secret address"), "lon": 12.345}
    go_on(state, settings, oracle, Batch(ASK, [post(n) for n in range(4, size + 3)] + [secret]))
    go_on(state, settings, oracle, Batch([{"op": "delete", "id": 1}], [post(5000, minute=1)]))
    texts, lons = left_of(state)
    assert secret["text"] in texts and 12.345 in lons
    for number in range(9):
        again = [secret | {"ts": NOON + 5 * MINUTE, "text": "fire again"}] if number == 5 else []
        batch = Batch([], [post(6000 + number, minute=1 + number), *again])
        go_on(state, settings, oracle, batch, check=number % 4 == 1)
    texts, _ = left_of(state)
    assert secret["text"] not in texts and "fire again" in texts
    parts = [open_part(state, ref) for ref in state.newest().of(LEDGER)]
    assert sum(len(part.erased) for part in parts) == 1
    assert all(part.lon[part.erased].tolist() in ([], [0.0]) for part in parts)
    assert sum(ref.rows for ref in state.newest().of(LEDGER)) == size + 11  # it has its place still
    go_on(state, settings, oracle, Batch([{"op": "delete", "id": 1}], [post(7000, minute=12)]))


@pytest.mark.parametrize("workers", [1, *slow(2)])
def test_a_window_of_so_many_posts_reaches_into_the_archive(workers: int, tmp_path: Path) -> None:
    """One batch an hour, two hours of which are kept; of the archive one post is deleted before anyone asks."""
    settings = replace(SETTINGS, workers=workers, retention=2 * HOUR, slot=HOUR)
    state, oracle = begun(tmp_path, settings)
    for hour in range(7):
        ops = [{"op": "delete", "id": post(12)["id"]}] if hour == 6 else []
        posts = [post(10 * hour + i, minute=60 * hour + i) for i in range(4)]
        go_on(state, settings, oracle, Batch(ops, posts), check=False)
    archived = sum(ref.rows for ref in state.newest().of(ARCHIVE))
    assert archived > 8
    go_on(state, settings, oracle, Batch(ASK, []))
    go_on(state, settings, oracle, Batch([], [post(100, minute=421)]))
    assert sum(ref.rows for ref in state.newest().of(LEDGER)) >= 28


def test_only_segments_whose_numbers_follow_each_other_are_merged() -> None:
    rows = np.array([5, 5, 5, 100 * LARGE, 5, 5])
    firsts = np.concatenate([[0], np.cumsum(rows)[:-1]]) + np.array([0, 0, 7, 7, 7, 7])  # one has left after the second
    refs = [
        SegmentRef(LEDGER, str(n), size, 0, 0, facts={NUMBER: first})
        for n, (size, first) in enumerate(zip(rows.tolist(), firsts.tolist(), strict=True))
    ]
    assert [[ref.name for ref in run] for run in unbroken(refs) if run] == [["0", "1"], ["2"], ["4", "5"]]
