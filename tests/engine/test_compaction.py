"""Merging, archiving and cleaning change what is on disk, and no answer."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from nearcast.common.errors import BadInput
from nearcast.engine.align import align
from nearcast.engine.batch import Settings, open_router
from nearcast.reader.reader import Reader
from nearcast.sources.iso_times import MIN_TIME
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ARCHIVE, DELETES, ENDS, POSTS, REJECTS, RESULTS, SUBSCRIPTIONS, TERMS
from nearcast.storage.outbox import LATE
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.term_table import TermTable, frequencies
from tests.engine.harness import MINUTE, Streams, check, outbox, run, start, step
from tests.engine.oracle import Batch, Oracle, words
from tests.marks import slow

HOUR = 60 * MINUTE
NOON = 1_700_000_000_000_000 // HOUR * HOUR
FIRST = [{"id": 1, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the first post"}]

SEARCHES = (
    "SELECT * FROM stream",
    "SELECT * FROM stream WHERE text CONTAINS 'flood OR zebra'",
    "SELECT * FROM stream WHERE loc INSIDE RECT(170, -30, -170, 10)",
    "SELECT * FROM stream WHERE loc INSIDE CIRCLE(2.35, 48.86, 30 km) AND text CONTAINS 'the AND NOT fire'",
    "SELECT * FROM stream WHERE price < 6 AND time AFTER '20 minutes ago'",
    "SELECT * FROM stream WHERE kind = 'shop' AND text OVERLAPS '#storm 東京 \"bus stop\"'",
)


def check_searches(state: StateDirectory, oracle: Oracle) -> None:
    reader = Reader(state)
    for sql in SEARCHES:
        found = [(row["id"], row["ts"], row["lon"], row["lat"]) for row in reader.search(sql)]
        assert sorted(found, key=str) == sorted(oracle.search(sql), key=str), sql
        assert [row[1] for row in found] == sorted((row[1] for row in found), reverse=True)


def small_batches(seed: int, count: int, oracle: Oracle, beat: int = MINUTE) -> Iterator[Batch]:
    """A few ops and a few posts each, in order of time; the oracle has followed what was given."""
    streams = Streams(seed, ids=60)
    now = NOON
    for number in range(count):
        clock = now if number == 0 else int(oracle.clock)
        ops = [streams.op(clock, oracle) for _ in range(3)]
        posts = []
        for _ in range(8):
            now += beat
            posts.append(streams.post(now))
        batch = Batch(ops, posts)
        oracle.batch(batch)
        yield batch


@pytest.mark.parametrize(("workers", "index"), [(1, "pyramid"), *slow((2, "gi2"))])
def test_many_small_batches_are_merged_and_give_the_same_answers(workers: int, index: str, tmp_path: Path) -> None:
    oracle = Oracle(NOON)
    merging, plain = StateDirectory(tmp_path / "merging"), StateDirectory(tmp_path / "plain")
    settings = Settings(workers=workers, index=index)
    start(merging, settings, FIRST)
    start(plain, replace(settings, merge=False), FIRST)
    for number, batch in enumerate(small_batches(5 + workers, 36, oracle)):
        step(merging, settings, batch)
        step(plain, replace(settings, merge=False), batch)
        if number % 9 == 8:
            check_searches(merging, oracle)
            check(merging, oracle)
    check_searches(merging, oracle)
    check(merging, oracle)
    check(plain, oracle)
    few, many = merging.newest(), plain.newest()
    for kind in (POSTS, SUBSCRIPTIONS, RESULTS, TERMS, ENDS, DELETES, REJECTS):
        assert len(few.of(kind)) < len(many.of(kind)), kind
    for kind in (RESULTS, REJECTS):
        assert sum(ref.rows for ref in few.of(kind)) == sum(ref.rows for ref in many.of(kind)), kind
    assert few.clock == many.clock
    assert few.counts["matches"] == many.counts["matches"]


def test_term_counts_and_words_survive_merging(tmp_path: Path) -> None:
    batches = [Batch([], batch.posts) for batch in small_batches(9, 20, Oracle(NOON))]
    oracle = Oracle(NOON).run(batches)
    state = run(tmp_path, Settings(), batches, sample=FIRST)
    tables = [TermTable.open(state.path(ref.name)) for ref in state.newest().of(TERMS)]
    assert len(tables) < 20
    right: dict[int, int] = {}
    for text in [FIRST[0]["text"], *(seen["text"] for seen in oracle.posts)]:
        row, tags = words(text)
        for term in {*row, *tags}:
            right[term] = right.get(term, 0) + 1
    terms, counts = frequencies(tables)
    assert dict(zip(terms.tolist(), counts.tolist(), strict=True)) == right
    spelled = {int(t) for table in tables for t, word in zip(table.term, table.word.to_pylist(), strict=True) if word}
    assert spelled == set(right)


def test_ended_subscriptions_take_late_posts_after_merging(tmp_path: Path) -> None:
    settings = Settings(workers=1)
    batches = [Batch([{"op": "subscribe", "id": "q", "sql": "SELECT * FROM stream"}], [post(1, 1)])]
    batches.append(Batch([{"op": "unsubscribe", "id": "q"}], [post(2, 5)]))
    for number in range(20):
        sql = f"SELECT * FROM stream WHERE text CONTAINS 'word{number}'"
        batches.append(Batch([{"op": "subscribe", "id": number, "sql": sql}], [post(10 + number, 10 + number)]))
    batches.append(Batch([], [post(3, 0), post(4, 1)]))
    oracle = Oracle(NOON).run(batches)
    assert {result[:2] for result in oracle.results} == {("q", 1), ("q", 3)}
    state = run(tmp_path, settings, batches, sample=FIRST)
    assert any(ref.facts.get("ended") for ref in state.newest().of(SUBSCRIPTIONS))
    check(state, oracle)


def test_aligning_gives_each_worker_a_subscription_once(tmp_path: Path) -> None:
    """One worker has moved an ended subscription to a segment of ended ones, another has not yet."""
    settings = Settings(workers=2)
    state = StateDirectory(tmp_path)
    start(state, settings, FIRST)
    router = open_router(str(state.root), state.newest().router or "")
    lons = np.linspace(-170, 170, 400)
    mine = lons[router.owners(2)[router.store(lons, np.full(400, 33.0))] == 0]
    small = [f"SELECT * FROM stream WHERE loc INSIDE RECT({x!r}, 33, {x + 1e-9!r}, 33)" for x in mine[:20].tolist()]
    batches = [Batch([{"op": "subscribe", "id": "q", "sql": "SELECT * FROM stream"}], [post(1, 1)])]
    batches.append(Batch([{"op": "unsubscribe", "id": "q"}], [post(2, 5)]))
    batches += [Batch([{"op": "subscribe", "id": n, "sql": sql}]) for n, sql in enumerate(small)]
    oracle = Oracle(NOON).run(batches)
    for batch in batches:
        step(state, settings, batch)
    assert {ref.facts.get("ended", 0) for ref in state.newest().of(SUBSCRIPTIONS)} == {0, 1}
    late = Batch([], [post(3, 0)])
    oracle.batch(late)
    for workers in (1, 3):
        align(state, replace(settings, workers=workers))
        rows = [ref.rows for ref in state.newest().of(SUBSCRIPTIONS) if ref.owner == 0]
        assert sum(rows) <= len(small) + 1
    step(state, replace(settings, workers=3), late)
    check(state, oracle)


# -- deleting and expiring ---------------------------------------------------------------------------------------------


def post(post_id: int | str, minute: float, text: str = "word") -> dict[str, Any]:
    return {"id": post_id, "ts": NOON + round(minute * MINUTE), "lon": 1.0, "lat": 1.0, "text": text}


def ids_on_disk(state: StateDirectory) -> set[int]:
    manifest = state.newest()
    ids: set[int] = set()
    for ref in manifest.of(POSTS):
        ids |= set(PostSegment(state.path(ref.name)).all()["id"].to_pylist())
    for ref in manifest.of(ARCHIVE):
        ids |= set(pq.read_table(state.path(ref.name, ".parquet"))["id"].to_pylist())
    return ids


def test_deleted_posts_leave_every_answer_at_once_and_the_disk_at_the_next_merge(tmp_path: Path) -> None:
    settings = Settings(workers=1)
    state = StateDirectory(tmp_path)
    start(state, settings, FIRST)
    oracle = Oracle(NOON)
    for number in range(6):
        batch = Batch([], [post(10 * number + i, number) for i in range(10)])
        oracle.batch(batch)
        step(state, settings, batch)
    batch = Batch([{"op": "delete", "id": 10 * number} for number in range(5)], [post(0, 9)])
    oracle.batch(batch)
    step(state, settings, batch)
    check_searches(state, oracle)
    assert {0, 10, 20} <= ids_on_disk(state)
    for number in range(10):
        step(state, settings, batch := Batch([], [post(1000 + number, 10 + number)]))
        oracle.batch(batch)
    check_searches(state, oracle)
    assert ids_on_disk(state) == {seen["id"] for seen in oracle.posts}
    assert not state.newest().of(DELETES)


@pytest.mark.parametrize("workers", [1, 2])
def test_expired_posts_are_found_in_the_archive(workers: int, tmp_path: Path) -> None:
    """Ten hours of posts, two of them kept, in slots of one hour."""
    settings = Settings(workers=workers, retention=2 * HOUR, slot=HOUR)
    state = StateDirectory(tmp_path)
    start(state, settings, FIRST)
    oracle = Oracle(NOON)
    streams = Streams(21)
    for number in range(40):
        batch = Batch([], [streams.post(NOON + (15 * number + i) * MINUTE) for i in range(15)])
        batch = Batch(
            [], [each for each in batch.posts if each["ts"] is None or each["ts"] >= NOON + 15 * number * MINUTE]
        )
        oracle.batch(batch)
        step(state, settings, batch)
        if number % 10 == 9:
            check_searches(state, oracle)
    manifest = state.newest()
    assert manifest.of(ARCHIVE)
    assert manifest.counts["expired"] == sum(ref.rows for ref in manifest.of(ARCHIVE)) > 200
    horizon = (oracle.clock - 2 * HOUR) // HOUR * HOUR - HOUR  # what expired in the last batch goes with the next
    assert min(ref.min_ts for ref in manifest.of(POSTS)) >= horizon
    slots = sorted(path.parent.name for path in (tmp_path / "archive").rglob("*.parquet"))
    assert slots[0] == f"slot={np.datetime64(NOON, 'us').astype('datetime64[m]').astype(str).replace(':', '')}"


def test_a_post_deleted_after_it_was_archived_leaves_every_answer(tmp_path: Path) -> None:
    settings = Settings(workers=1, retention=2 * HOUR, slot=HOUR)
    state = StateDirectory(tmp_path)
    start(state, settings, FIRST)
    oracle = Oracle(NOON)
    batches = [Batch([], [post(100 * hour + i, 60 * hour + i) for i in range(5)]) for hour in range(6)]
    batches.append(Batch([{"op": "delete", "id": 1}, {"op": "delete", "id": 502}]))
    batches += [Batch([], [post(1000 + number, 400 + number)]) for number in range(12)]
    for batch in batches:
        oracle.batch(batch)
        step(state, settings, batch)
        check_searches(state, oracle)
    assert state.newest().of(ARCHIVE)
    assert ids_on_disk(state) == {seen["id"] for seen in oracle.posts}


def test_a_post_older_than_retention_is_reported_late_and_not_stored(tmp_path: Path) -> None:
    settings = Settings(workers=2, retention=2 * HOUR, slot=HOUR)
    batches = [
        Batch([{"op": "subscribe", "id": "q", "sql": "SELECT * FROM stream"}], [post(1, 0), post(2, 300)]),
        Batch([], [post(3, 170), post(4, 185)]),
    ]
    state = run(tmp_path, settings, batches, sample=FIRST)
    assert {result[1] for result in outbox(state, LATE)} == {3}
    assert {result[1] for result in outbox(state)} == {1, 2, 4}
    assert {row["id"] for row in Reader(state).search("SELECT * FROM stream")} == {1, 2, 4}
    assert state.newest().counts["late"] == 1


def test_a_post_of_the_year_1_goes_to_the_archive(tmp_path: Path) -> None:
    """Programs that know no time write that; its slot begins before the calendar of Python does."""
    settings = Settings(workers=1, retention=2 * HOUR)
    ancient = {**post(3, 0), "ts": MIN_TIME}
    batches = [Batch([], [ancient, post(1, 0)]), Batch([], [post(2, 300)]), Batch([], [post(4, 301)])]
    state = run(tmp_path, settings, batches, sample=FIRST)
    assert {row["id"] for row in Reader(state).search("SELECT * FROM stream")} == {1, 2, 3, 4}
    assert state.newest().counts["expired"] == 1


def test_a_post_that_is_in_the_archive_is_not_stored_again_when_posts_are_kept_longer(tmp_path: Path) -> None:
    short = Settings(workers=2, retention=2 * HOUR, slot=HOUR)
    subscribe = {"op": "subscribe", "id": "q", "sql": "SELECT * FROM stream"}
    batches = [Batch([subscribe], [post(1, 0), post(2, 300)]), Batch([], [post(3, 301)])]
    state = run(tmp_path, short, batches, sample=FIRST)
    assert state.newest().of(ARCHIVE)
    for longer in (replace(short, retention=None), replace(short, retention=100 * HOUR)):
        start(state, longer, [])
        step(state, longer, Batch([], [post(1, 0), post(2, 300)]))
    assert sorted(row["id"] for row in Reader(state).search("SELECT * FROM stream")) == [1, 2, 3]
    assert sorted(result[1] for result in outbox(state)) == [1, 2, 3]


def test_posts_are_kept_as_long_as_a_window_that_stands(tmp_path: Path) -> None:
    sql = "SELECT TopK(text, 3) FROM stream WHERE time AFTER '10 hours ago' SYNC 1 hour"
    long, short = (Settings(workers=2, retention=hours * HOUR, slot=HOUR) for hours in (10, 2))
    state = run(tmp_path, long, [Batch([{"op": "subscribe", "id": "q", "sql": sql}], [post(1, 0)])], sample=FIRST)
    with pytest.raises(BadInput, match=r"--retention is shorter than a window of 0\.417 days"):
        start(state, short, [])
    start(state, long, [])
    step(state, long, Batch([{"op": "unsubscribe", "id": "q"}], [post(2, 60)]))
    start(state, short, [])
