"""The path of a batch, without Spark, holds in its outbox exactly what the stream means."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.engine.settings import Settings
from nearcast.storage.outbox import MATCH
from tests.engine import harness
from tests.engine.harness import MINUTE, NOON, Streams, check, outbox, run, shuffled
from tests.engine.oracle import Batch, Oracle
from tests.marks import slow


def random_batches(seed: int, count: int, keep: str = "posts", disorder: int = 5) -> tuple[list[Batch], Oracle]:
    return harness.random_batches(Streams(seed), count, keep, disorder, strays=True)


FIRST = [{"id": 1, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the first post"}]


@pytest.mark.parametrize("index", ["pyramid", "gi2"])
@pytest.mark.parametrize("workers", [2, *slow(1, 5)])
@pytest.mark.parametrize("seed", [1, *slow(2)])
def test_any_stream_gives_what_it_means(seed: int, workers: int, index: str, tmp_path: Path) -> None:
    batches, oracle = random_batches(100 * seed + workers, 14)
    assert len(oracle.results) > 150
    check(run(tmp_path, Settings(workers=workers, index=index), batches, sample=FIRST), oracle)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_any_stream_gives_what_it_means_where_no_posts_are_kept(workers: int, tmp_path: Path) -> None:
    batches, oracle = random_batches(40 + workers, 14, keep="none")
    assert len(oracle.results) > 50
    check(run(tmp_path, Settings(workers=workers, keep="none"), batches, sample=FIRST), oracle)


@pytest.mark.parametrize("seed", [*slow(7), 8])
def test_the_number_of_workers_may_change_between_batches(seed: int, tmp_path: Path) -> None:
    batches, oracle = random_batches(seed, 24)
    check(run(tmp_path, Settings(), batches, workers=(2, 2, 5, 1, 1, 3), sample=FIRST), oracle)


@pytest.mark.parametrize("keep", ["posts", "none"])
def test_the_cut_into_batches_does_not_show(keep: str, tmp_path: Path) -> None:
    """Subscriptions with their times, before all posts: one batch, batches of one post, sorted or not, are all one."""
    streams = Streams(3)
    posts = [streams.post(NOON + number * MINUTE // 2) for number in range(60)]
    ops = [{"op": "subscribe", "id": n, "sql": streams.sql(NOON), "ts": NOON + n * MINUTE // 4} for n in range(60)]
    right = Oracle(NOON, keep).run([Batch(ops, posts)])
    assert len(right.results) > 100
    cuts = {
        "one batch": [Batch(ops, posts)],
        "ops first": [Batch(ops), Batch([], posts)],
        "fives": [Batch(ops), *(Batch([], posts[i : i + 5]) for i in range(0, 60, 5))],
        "unsorted": [Batch(ops), Batch([], shuffled(posts, 1)[:31]), Batch([], shuffled(posts, 1)[31:])],
        "newest first": [Batch(ops), *(Batch([], posts[i : i + 9][::-1]) for i in range(54, -1, -9))],
    }
    if keep == "posts":  # after the posts, and among them: each catches up
        cuts["after"] = [Batch([], posts), Batch(ops)]
        cuts["among"] = [Batch(ops[i : i + 12], posts[i : i + 12]) for i in range(0, 60, 12)]
    for name, batches in cuts.items():
        check(run(tmp_path / name, Settings(keep=keep), batches, sample=FIRST), right)


# -- one meaning at a time -------------------------------------------------------------------------


def post(post_id: int | str, minute: int, text: str = "word", lon: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"id": post_id, "ts": NOON + minute * MINUTE, "lon": lon, "lat": 1.0, "text": text, **more}


def subscribe(query_id: int | str, sql: str = "SELECT * FROM stream", minute: int | None = None) -> dict[str, Any]:
    return {"op": "subscribe", "id": query_id, "sql": sql, "ts": None if minute is None else NOON + minute * MINUTE}


def unsubscribe(query_id: int | str, minute: int | None = None) -> dict[str, Any]:
    return {"op": "unsubscribe", "id": query_id, "ts": None if minute is None else NOON + minute * MINUTE}


WORD = "SELECT * FROM stream WHERE text CONTAINS 'word'"
MEANINGS: dict[str, tuple[list[Batch], set[tuple[Any, Any]]]] = {
    "the clock is the start of a subscription that comes later and names none": (
        [Batch([], [post(1, 1), post(2, 2)]), Batch([subscribe("q")]), Batch([], [post(3, 3), post(4, 1)])],
        {("q", 2), ("q", 3)},
    ),
    "a subscription with a time catches up, and takes late posts": (
        [Batch([], [post(1, 1), post(2, 2)]), Batch([subscribe("q", minute=2)]), Batch([], [post(3, 1), post(4, 2)])],
        {("q", 2), ("q", 4)},
    ),
    "replacing at the clock gives the post of that moment once": (
        [Batch([subscribe("q")], [post(1, 1)]), Batch([subscribe("q", WORD)]), Batch([], [post(2, 2)])],
        {("q", 1), ("q", 2)},
    ),
    "ending and beginning again at the clock gives the post of that moment once": (
        [Batch([subscribe("q")], [post(1, 1)]), Batch([unsubscribe("q")]), Batch([subscribe("q")], [post(2, 2)])],
        {("q", 1), ("q", 2)},
    ),
    "beginning again in the past gives what was given before once": (
        [
            Batch([subscribe("q", WORD)], [post(1, 1), post(2, 2, "other")]),
            Batch([unsubscribe("q", 1)], [post(3, 3)]),
            Batch([subscribe("q", minute=0)]),
            Batch([], [post(4, 0), post(5, 4)]),
        ],
        {("q", 1), ("q", 2), ("q", 3), ("q", 4), ("q", 5)},
    ),
    "the same text again changes nothing, whatever else is in the batch": (
        [
            Batch([subscribe("q", WORD + " FOR 5 MINUTES")], [post(1, 0)]),
            Batch([subscribe("q", WORD + " FOR 5 MINUTES"), subscribe("r", "SELECT id FROM stream WHERE price < 5")]),
            Batch([], [post(2, 4), post(3, 5)]),
        ],
        {("q", 1), ("q", 2)},
    ),
    "the same text again after its end is a new subscription, also in one batch": (
        [
            Batch([], [post(1, 0), post(2, 9)]),
            Batch([subscribe("q", WORD + " FOR 5 MINUTES", 0), subscribe("q", WORD + " FOR 5 MINUTES")]),
            Batch([], [post(3, 10), post(4, 14)]),
        ],
        {("q", 1), ("q", 2), ("q", 3)},
    ),
    "a deletion hides a post from those that subscribe later, also in its batch": (
        [
            Batch([], [post(1, 1), post("1", 1), post(2, 1)]),
            Batch([{"op": "delete", "id": 1}, subscribe("q", minute=0)]),
        ],
        {("q", "1"), ("q", 2)},
    ),
    "a post that comes with the deletion of its id comes after it": (
        [Batch([{"op": "delete", "id": 1}], [post(1, 1)]), Batch([subscribe("q", minute=0)])],
        {("q", 1)},
    ),
    "the same id elsewhere or at another time is an update, the same place and time a duplicate": (
        [
            Batch([subscribe("q")], [post(1, 1), post(1, 1, "again"), post(1, 2), post(1, 1, lon=3.0)]),
            Batch([], [post(1, 2)]),
            Batch([], [post("1", 1)]),
        ],
        {("q", 1), ("q", "1")},
    ),
    "a subscription may end before it began": (
        [Batch([subscribe("q", minute=5), unsubscribe("q", 2)], [post(1, 6)])],
        set(),
    ),
    "an end now is also the end of one that was to be replaced later on": (
        [
            Batch([subscribe("q")], [post(1, 1)]),
            Batch([subscribe("q", WORD, 9), unsubscribe("q", 5)]),
            Batch([], [post(2, 4), post(3, 7), post(4, 10)]),
        ],
        {("q", 1), ("q", 2)},
    ),
    "an integer id and its digits are two": (
        [Batch([subscribe(1), subscribe("1", WORD), unsubscribe(1, 0)], [post(1, 1)])],
        {("1", 1)},
    ),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", list(MEANINGS))
def test_meaning(name: str, workers: int, tmp_path: Path) -> None:
    batches, right = MEANINGS[name]
    oracle = Oracle(NOON).run(batches)
    assert {result[:2] for result in oracle.results} == right
    check(run(tmp_path, Settings(workers=workers), batches, sample=FIRST), oracle)


def test_the_clock_moves_on_where_no_posts_are_kept(tmp_path: Path) -> None:
    """Also by posts that no subscription wants, which are dropped before they reach a worker."""
    batches = [
        Batch([subscribe("q", WORD)], [post(1, 1)]),
        Batch([], [post(2, 7, "unwanted"), post(3, 6, "unwanted")]),
        Batch([subscribe("r", "SELECT * FROM stream")]),
        Batch([], [post(4, 5, "late"), post(5, 8, "in time")]),
    ]
    oracle = Oracle(NOON, keep="none").run(batches)
    state = run(tmp_path, Settings(keep="none"), batches, sample=FIRST)
    assert state.newest().clock == oracle.clock
    check(state, oracle)


def test_posts_from_the_future_are_rejected_and_move_no_clock(tmp_path: Path) -> None:
    batch = Batch([subscribe("q")], [post(1, 1), post(2, 60 * 24 + 1), post(3, 60 * 24)], arrival=NOON)
    oracle = Oracle(NOON).run([batch])
    assert oracle.rejects == 1
    check(run(tmp_path, Settings(), [batch], sample=FIRST), oracle)


# -- real posts ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def notes() -> list[dict[str, Any]]:
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / "osm_notes.parquet"
    if not path.exists():
        pytest.skip("no ../shared/data/osm_notes.parquet beside this checkout")
    table = pq.read_table(path).slice(0, 6000)
    rows = table.select(["id", "ts", "lon", "lat", "text"]).to_pylist()
    return [{**row, "ts": micros(row["ts"]), "text": row["text"] or ""} for row in rows]


def micros(value: Any) -> int:
    return value if isinstance(value, int) else pa.scalar(value, pa.timestamp("us", tz="UTC")).value


def note_subscriptions(notes: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Words drawn from the posts, so that the most frequent ones come often, around places where posts are."""
    random = Random(11)
    ops = []
    for number in range(count):
        near, about = random.choice(notes), random.choice(notes)
        words = [
            w
            for w in "".join(c if c.isalnum() else " " for c in about["text"]).split()
            if w not in ("AND", "OR", "NOT")
        ]
        words = [random.choice(words) for _ in range(random.randrange(1, 6))] if words else ["the"]
        size = 10 ** random.uniform(-3, 2.2)
        lon, lat = near["lon"], near["lat"]
        west, east = max(-180.0, lon - size), min(180.0, lon + size)
        box = f"RECT({west!r}, {max(-90.0, lat - size)!r}, {east!r}, {min(90.0, lat + size)!r})"
        corners = (west, lat), (lon, max(-90.0, lat - size)), (east, lat), (west, lat)
        ring = ", ".join(f"{x!r} {y!r}" for x, y in corners)
        circle, polygon = f"CIRCLE({lon!r}, {lat!r}, {size * 111!r} km)", f"POLYGON('POLYGON(({ring}))')"
        place = random.choice((box, box, circle, polygon, "RECT(170, -90, -170, 90)", "RECT(-180, 60, 180, 90)"))
        text = random.choice((
            words[0], " AND ".join(words[:2]), " OR ".join(words), f"{words[0]} AND NOT {words[-1]}", f"NOT {words[0]}",
            f'"{" ".join(words[:2])}"',
        ))  # fmt: skip
        ops.append({"op": "subscribe", "id": f"q{number}", "sql":
                    f"SELECT * FROM stream WHERE loc INSIDE {place} AND text CONTAINS '{text}'"})  # fmt: skip
    return ops


@pytest.fixture(scope="module")
def note_oracle(notes: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Oracle]:
    ops = note_subscriptions(notes, 300)
    return ops, Oracle(notes[0]["ts"]).run([Batch(ops, notes)])


@pytest.mark.parametrize(
    ("workers", "batches", "index", "order"),
    [(1, 1, "pyramid", None), (2, 12, "pyramid", 1), (5, 3, "pyramid", None), (2, 2, "gi2", 2)],
)
def test_real_posts(
    workers: int,
    batches: int,
    index: str,
    order: int | None,
    notes: list[dict[str, Any]],
    note_oracle: Any,
    tmp_path: Path,
) -> None:
    ops, oracle = note_oracle
    assert len(oracle.results) > 2000
    posts = notes if order is None else shuffled(notes, order)
    size = -(-len(posts) // batches)
    parts = [Batch(ops if i == 0 else [], posts[i : i + size]) for i in range(0, len(posts), size)]
    state = run(tmp_path, Settings(workers=workers, index=index), parts, sample=notes[:2000])
    found = outbox(state, MATCH)
    assert set(found) == oracle.results
    assert max(found.values()) == 1


def test_real_posts_that_came_before_their_subscriptions(
    notes: list[dict[str, Any]], note_oracle: Any, tmp_path: Path
) -> None:
    ops, _ = note_oracle
    timed = [{**op, "ts": notes[0]["ts"] + 1000} for op in ops[:120]]
    batches = [Batch([], notes[:3000]), Batch(timed, []), Batch([], notes[3000:])]
    oracle = Oracle(notes[0]["ts"]).run(batches)
    check(run(tmp_path, Settings(), batches, sample=notes[:2000]), oracle)
