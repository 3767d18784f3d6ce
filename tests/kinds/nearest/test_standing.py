"""Subscriptions to the k nearest (SSTD §3.1, Definition 2): current answers, and how they came about."""

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from nearcast.common.errors import BadInput
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.current_answer import read_current
from nearcast.reader.reader import Reader
from nearcast.reader.results import read_results
from nearcast.reader.subscription_list import Subscriptions
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.raw import Raw, reject_table
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, NEAREST, SUBSCRIPTIONS
from tests.engine import harness
from tests.engine.harness import MINUTE, NOON, Streams, check, check_nearest, fold, run, shuffled, start, step
from tests.engine.oracle import Batch, Oracle
from tests.marks import slow

FIRST = [{"id": 1, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the first post"}]


def random_batches(seed: int, count: int, keep: str = "posts") -> tuple[list[Batch], Oracle]:
    """Subscriptions of both kinds, replacing each other, deletions, late posts, duplicates."""
    return harness.random_batches(Streams(seed, nearest=0.6), count, keep)


@pytest.mark.parametrize("workers", [5, *slow(1, 2)])
@pytest.mark.parametrize("seed", [1, *slow(2, 3)])
def test_any_stream_gives_the_answers_it_means(seed: int, workers: int, tmp_path: Path) -> None:
    batches, oracle = random_batches(1000 * seed + workers, 14)
    state = run(tmp_path, Settings(workers=workers), batches, sample=FIRST)
    assert check_nearest(state, oracle) > 15
    check(state, oracle)


@pytest.mark.slow
def test_every_batch_leaves_the_answer_of_its_moment(tmp_path: Path) -> None:
    batches, _ = random_batches(77, 20)
    state, settings, oracle = StateDirectory(tmp_path), Settings(), Oracle(NOON)
    start(state, settings, FIRST)
    for batch in batches:
        step(state, settings, batch)
        oracle.batch(batch)
        check_nearest(state, oracle)


@pytest.mark.parametrize("seed", [4, *slow(5)])
def test_the_number_of_workers_may_change_between_batches(seed: int, tmp_path: Path) -> None:
    batches, oracle = random_batches(seed, 24)
    state = run(tmp_path, Settings(), batches, workers=(2, 2, 5, 1, 1, 3), sample=FIRST)
    check_nearest(state, oracle)
    check(state, oracle)


@pytest.mark.parametrize("always", [True, False])
def test_catching_up_by_searches_or_by_looking_at_all_is_one(
    always: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nearcast.kinds.nearest.nearest_filing.A_SEARCH", 0 if always else 1 << 40)
    batches, oracle = random_batches(31, 16)
    check_nearest(run(tmp_path, Settings(), batches, sample=FIRST), oracle)


@pytest.mark.slow
def test_the_cut_into_batches_does_not_show(tmp_path: Path) -> None:
    streams = Streams(3)
    posts = [streams.post(NOON + number * MINUTE // 2) for number in range(60)]
    ops = [{"op": "subscribe", "id": n, "sql": streams.nearest(NOON), "ts": NOON + n * MINUTE // 4} for n in range(60)]
    right = Oracle(NOON).run([Batch(ops, posts)])
    cuts = {
        "one batch": [Batch(ops, posts)],
        "ops first": [Batch(ops), Batch([], posts)],
        "ones": [Batch(ops), *(Batch([], [post]) for post in posts)],
        "unsorted": [Batch(ops), Batch([], shuffled(posts, 1)[:31]), Batch([], shuffled(posts, 1)[31:])],
        "newest first": [Batch(ops), *(Batch([], posts[i : i + 9][::-1]) for i in range(54, -1, -9))],
        "after": [Batch([], posts), Batch(ops)],
        "among": [Batch(ops[i : i + 12], posts[i : i + 12]) for i in range(0, 60, 12)],
    }
    for name, batches in cuts.items():
        assert check_nearest(run(tmp_path / name, Settings(), batches, sample=FIRST), right) > 60, name


def test_posts_that_are_not_kept_are_in_answers_all_the_same(tmp_path: Path) -> None:
    streams = Streams(6)
    ops = [{"op": "subscribe", "id": n, "sql": streams.nearest(NOON)} for n in range(40)]
    batches = [Batch(ops)]
    for number in range(8):
        batches.append(Batch([], [streams.post(NOON + number * MINUTE) for _ in range(30)]))
    oracle = Oracle(NOON, "none").run(batches)
    state = run(tmp_path, Settings(keep="none"), batches, sample=FIRST)
    assert check_nearest(state, oracle) > 60


@pytest.mark.slow
@pytest.mark.parametrize("fan", [2, 3])
def test_merging_changes_no_answer(fan: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (fan,))
    monkeypatch.setattr("nearcast.storage.compaction_policy.run_to_merge.__defaults__", (fan,))
    batches, oracle = random_batches(12 + fan, 40)
    state = run(tmp_path, Settings(), batches, sample=FIRST)
    check_nearest(state, oracle)
    check(state, oracle)
    assert len(state.newest().of(NEAREST)) < 12


# -- one meaning at a time -------------------------------------------------------------------------


def post(post_id: int | str, minute: int, lon: float = 1.0, lat: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"id": post_id, "ts": NOON + minute * MINUTE, "lon": lon, "lat": lat, "text": "word", **more}


def nearest(k: int = 2, lon: float = 0.0, lat: float = 1.0, more: str = "") -> str:
    return f"SELECT * FROM stream{more} ORDER BY DISTANCE(loc, POINT({lon}, {lat})) LIMIT {k}"


def subscribe(query_id: int | str, sql: str, minute: int | None = None) -> dict[str, Any]:
    return {"op": "subscribe", "id": query_id, "sql": sql, "ts": None if minute is None else NOON + minute * MINUTE}


def unsubscribe(query_id: int | str, minute: int | None = None) -> dict[str, Any]:
    return {"op": "unsubscribe", "id": query_id, "ts": None if minute is None else NOON + minute * MINUTE}


def delete(post_id: int | str) -> dict[str, Any]:
    return {"op": "delete", "id": post_id}


MEANINGS: dict[str, tuple[list[Batch], list[int | str]]] = {
    "fewer than k is an answer": ([Batch([subscribe("q", nearest(5))], [post(1, 1, 3.0), post(2, 1, 2.0)])], [2, 1]),
    "of equally far posts the lower id is the nearer, numbers before strings": (
        [
            Batch([subscribe("q", nearest(4))], [post("b", 1), post("a", 1), post(9, 1)]),
            Batch([], [post(10, 1), post(2, 1, -1.0)]),
        ],
        [2, 9, 10, "a"],
    ),
    "lon 180 and -180 are one place, and the antimeridian no border": (
        [
            Batch([subscribe("q", nearest(3, 179.0))], [post(1, 1, -180.0), post(2, 1, 180.0), post(3, 1, -100.0)]),
            Batch([], [post(4, 2, -179.0), post(5, 2, 177.5), post(6, 2, 176.0)]),
        ],
        [1, 2, 5],
    ),
    "at a pole all longitudes are near": (
        [
            Batch([subscribe("q", nearest(2, 0.0, 89.9))], [post(1, 1, 0.0, 89.0), post(2, 1, 90.0, 88.0)]),
            Batch([], [post(3, 2, 180.0, 89.9), post(4, 2, -77.0, 90.0), post(5, 2, 180.0, 89.0)]),
        ],
        [4, 3],
    ),
    "a post with the same id elsewhere is another post": (
        [Batch([subscribe("q", nearest(3))], [post(1, 1, 1.0)]), *(Batch([], [post(1, m, float(m))]) for m in (2, 1))],
        [1, 1],
    ),
    "late posts count where their time is inside, after its end too": (
        [
            Batch([subscribe("q", nearest(2), 1)], [post(1, 1, 9.0), post(2, 5, 8.0)]),
            Batch([unsubscribe("q", 6)], [post(3, 7, 0.0)]),
            Batch([], [post(4, 3, 7.0), post(5, 0, 0.0), post(6, 6, 0.0)]),
        ],
        [4, 2],
    ),
    "FOR ends it": (
        [Batch([subscribe("q", nearest(2) + " FOR 5 MINUTES", 0)], [post(1, 1, 9.0), post(2, 5, 0.0)])],
        [1],
    ),
    "a deleted post makes room for the next, from before and from the batch itself": (
        [
            Batch([subscribe("q", nearest(2))], [post(1, 1, 1.0), post(2, 1, 2.0), post(3, 1, 3.0), post(4, 1, 4.0)]),
            Batch([delete(1), delete(3)], [post(5, 2, 3.5)]),
            Batch([], [post(6, 3, 3.4)]),
        ],
        [2, 6],
    ),
    "deleting more than there is to come in their place": (
        [
            Batch([subscribe("q", nearest(2))], [post(1, 1, 1.0), post(2, 1, 2.0)]),
            Batch([delete(1), delete(2)]),
            Batch([], [post(3, 2, 170.0)]),
            Batch([], [post(4, 2, 9.0), post(5, 2, -160.0)]),
        ],
        [4, 5],
    ),
    "a deleted post that comes again is a post": (
        [Batch([subscribe("q", nearest(1))], [post(1, 1)]), Batch([delete(1)], [post(1, 2)])],
        [1],
    ),
    "another text takes over, from the clock on": (
        [
            Batch([subscribe("q", nearest(2))], [post(1, 1, 1.0), post(2, 2, 2.0)]),
            Batch([subscribe("q", nearest(3))]),
            Batch([], [post(3, 3, 3.0), post(4, 1, 0.5)]),
        ],
        [2, 3],
    ),
    "the same text again changes nothing": (
        [
            Batch([subscribe("q", nearest(2))], [post(1, 1, 1.0)]),
            Batch([subscribe("q", nearest(2)), subscribe("r", nearest(1))]),
            Batch([], [post(2, 3, 3.0)]),
        ],
        [1, 2],
    ),
    "a range that became the nearest": (
        [Batch([subscribe("q", "SELECT * FROM stream")], [post(1, 1)]), Batch([subscribe("q", nearest(1), 0)])],
        [1],
    ),
    "attributes, words and regions are asked before a post counts": (
        [
            Batch([subscribe("q", nearest(2, more=" WHERE price < 5 AND loc INSIDE RECT(0, 0, 10, 10)"))]),
            Batch([], [post(1, 1, 1.0, price=9), post(2, 1, -1.0, price=1), post(3, 1, 3.0, price=4)]),
            Batch([], [post(4, 1, 5.0, price=1), post(5, 1, 4.0, price=2), post(6, 1, 2.0)]),
        ],
        [3, 5],
    ),
}  # fmt: skip


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", MEANINGS)
def test_meaning(name: str, workers: int, tmp_path: Path) -> None:
    batches, right = MEANINGS[name]
    oracle = Oracle(NOON).run(batches)
    assert [each["id"] for each in oracle.current("q") or []] == right
    check_nearest(run(tmp_path, Settings(workers=workers), batches, sample=FIRST), oracle)


def test_the_nearest_that_became_a_range_leaves_no_answer(tmp_path: Path) -> None:
    batches = [
        Batch([subscribe("q", nearest(1))], [post(1, 1)]),
        Batch([subscribe("q", "SELECT * FROM stream")]),
        Batch([], [post(2, 2)]),
    ]
    oracle = Oracle(NOON).run(batches)
    state = run(tmp_path, Settings(), batches, sample=FIRST)
    check_nearest(state, oracle)
    check(state, oracle)
    kinds = [(row["kind"], row["post_id"]) for row in read_results(state)]
    assert sorted(kinds) == [("enter", 1), ("leave", 1), ("match", 1), ("match", 2)]


def test_an_answer_outlives_its_posts(tmp_path: Path) -> None:
    """The posts go to the archive, the answer stays, also for a deletion, which the archive makes good."""
    hour = 60 * MINUTE
    settings = Settings(workers=2, retention=2 * hour, slot=hour)
    state, oracle = StateDirectory(tmp_path), Oracle(NOON)
    start(state, settings, FIRST)
    batches = [Batch([subscribe("q", nearest(3))], [post(n, n, float(n)) for n in range(1, 6)])]
    batches += [Batch([], [post(100 + n, n * 40, 90.0 + n)]) for n in range(1, 12)]
    batches += [Batch([delete(2)]), Batch([], [post(200, 500, 3.5)])]
    for batch in batches:
        step(state, settings, batch)
        oracle.batch(batch)
        check_nearest(state, oracle)
    assert state.newest().of(ARCHIVE)
    assert [row["id"] for row in read_current(Reader(state), "q")] == [1, 3, 200]


def test_a_post_too_late_to_be_kept_is_told_of_and_enters_nothing(tmp_path: Path) -> None:
    settings = Settings(workers=1, retention=10 * MINUTE)
    batches = [Batch([subscribe("q", nearest(1))], [post(1, 30, 5.0)]), Batch([], [post(2, 1, 1.0), post(3, 25, 9.0)])]
    state = run(tmp_path, settings, batches, sample=FIRST)
    assert [(row["kind"], row["post_id"]) for row in read_results(state)] == [("enter", 1), ("late", 2)]


def test_what_ended_long_ago_leaves_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (2,))
    settings = Settings(workers=2, retention=10 * MINUTE, slot=MINUTE)
    state = StateDirectory(tmp_path)
    start(state, settings, FIRST)
    step(state, settings, Batch([subscribe(n, nearest(2, float(n))) for n in range(20)], [post(1, 1)]))
    step(state, settings, Batch([unsubscribe(n) for n in range(20)], [post(2, 2)]))
    for minute in range(20, 40):
        step(state, settings, Batch([subscribe("x", nearest(1))], [post(minute, minute)]))
    newest = state.newest()
    assert sum(ref.rows for ref in newest.of(SUBSCRIPTIONS)) == 1
    assert sum(ref.rows for ref in newest.of(NEAREST)) < 10


def test_circles_that_shrink_are_filed_anew(tmp_path: Path) -> None:
    """Many posts, so that rounds and refiling happen in one batch and in the chores of later ones."""
    random = Random(8)
    ops = [subscribe(n, nearest(3, random.uniform(-180, 180), random.uniform(-90, 90))) for n in range(300)]
    batches = [Batch(ops)]
    for number in range(5):
        many = [post(1000 * number + i, number, random.uniform(-180, 180), random.uniform(-90, 90)) for i in range(700)]
        batches.append(Batch([delete(random.randrange(700)) for _ in range(5)] if number else [], many))
    oracle = Oracle(NOON).run(batches)
    state = run(tmp_path, Settings(workers=2), batches, sample=FIRST)
    assert check_nearest(state, oracle) == 900
    assert {ref.facts.get("folded") is not None for ref in state.newest().of(SUBSCRIPTIONS)} == {True}


def test_the_columns_of_the_select_are_those_of_results_and_answers(tmp_path: Path) -> None:
    sql = nearest(1).replace("*", "text, price")
    state = run(tmp_path, Settings(), [Batch([subscribe("q", sql)], [post("a", 1, price=3)])], sample=FIRST)
    (row,) = read_results(state)
    assert set(row) == {"query_id", "seq", "batch", "kind", "post_id", "ts", "text", "price", "rank", "distance_km"}
    (current,) = read_current(Reader(state), "q")
    assert set(current) == {"text", "price", "distance_km"}


def test_a_run_after_another_goes_on(tmp_path: Path) -> None:
    """Nothing is left in a process: caches are emptied between batches."""
    from nearcast.engine import batch as plan
    from nearcast.kinds.nearest import state as standing

    batches, oracle = random_batches(99, 12)
    state, settings = StateDirectory(tmp_path), Settings()
    start(state, settings, FIRST)
    for number, batch in enumerate(batches):
        plan._segments.clear()
        plan._summaries.clear()
        standing._opened = None
        step(state, replace(settings, merge=number % 2 == 0), batch)
    check_nearest(state, oracle)


def test_bulk_columns_ask_for_the_nearest(tmp_path: Path) -> None:
    """`k` with `lon` and `lat`: the nearest to that place, inside a radius where one is given."""
    rows = [
        {"op": "subscribe", "id": 1, "lon": 0.0, "lat": 1.0, "k": 2, "text": "word"},
        {"op": "subscribe", "id": 2, "lon": 0.0, "lat": 1.0, "k": 2, "radius_km": 250.0},
        {"op": "subscribe", "id": 3, "lon": 0.0, "lat": 1.0, "k": 1.5},
        {"op": "subscribe", "id": 4, "lon": 0.0, "k": 1},
        {"op": "subscribe", "id": 5, "lon": 0.0, "lat": 1.0, "radius_km": 250.0},
    ]
    raw = Raw(pa.Table.from_pylist(rows), reject_table([], []), lambda rows: [""] * len(rows))
    names = sorted({name for row in rows for name in row} - {"op", "id"})
    table = pa.Table.from_pylist([{**dict.fromkeys(names), **row} for row in rows])
    ops, _ = normalise_ops(replace(raw, table=table))
    state, settings = StateDirectory(tmp_path), Settings(workers=1)
    start(state, settings, FIRST)
    run_locally(state, settings, ops=ops)
    step(state, settings, Batch([], [post(7, 1, 3.0), post(8, 1, 2.0), post(9, 1, -3.0), post(10, 1, 9.0)]))
    reader = Reader(state)
    assert [row["id"] for row in read_current(reader, 1)] == [8, 7]
    assert [row["id"] for row in read_current(reader, "2")] == [8]
    assert state.newest().counts["rejects"] == 2
    assert [row["post_id"] for row in read_results(state, 5)] == [8]
    texts = [each.sql for each in Subscriptions(reader)]
    assert texts[0] == "SELECT * FROM stream WHERE text CONTAINS 'word' ORDER BY DISTANCE(loc, POINT(0, 1)) LIMIT 2"
    with pytest.raises(BadInput, match="only results"):
        read_current(reader, 5)
    with pytest.raises(BadInput, match="no subscription"):
        read_current(reader, "x")


def test_the_same_question_again_as_columns_or_text_is_the_same(tmp_path: Path) -> None:
    sql = nearest(2).replace("1.0", "1")
    batches = [Batch([subscribe("q", nearest(2))], [post(1, 1)]), Batch([subscribe("q", sql)])]
    state = run(tmp_path, Settings(), batches, sample=FIRST)
    assert [(row["kind"], row["post_id"]) for row in read_results(state)] == [("enter", 1)]
    assert state.newest().counts["repeated"] == 1


def test_an_answer_that_was_ended_before_it_began_leaves_when_it_is_forgotten(tmp_path: Path) -> None:
    """Merging drops the subscription; what had entered must not stay with an id that others may take over."""
    state, settings = StateDirectory(tmp_path), Settings(workers=2)
    start(state, settings, FIRST)
    sql = "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(2, 48)) LIMIT 2"
    late = {"op": "subscribe", "id": 1, "sql": sql, "ts": NOON + MINUTE}
    posts = [{"id": n, "ts": NOON + (2 + n) * MINUTE, "lon": 2.0 + n, "lat": 48.0, "text": "rain"} for n in range(1, 7)]
    step(state, settings, Batch(ops=[late]))
    step(state, settings, Batch(posts=posts[:3]))
    assert fold(state)[1]
    before = {"op": "unsubscribe", "id": 1, "ts": NOON - MINUTE}
    step(state, settings, Batch(ops=[before]))
    for post in posts[3:]:
        step(state, settings, Batch(posts=[post]))
    assert not state.newest().of("subscriptions") and not fold(state)[1]
