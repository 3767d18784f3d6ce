"""Subscriptions by relevance (Skype): every batch leaves each subscriber the k best of its window, by definition."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.engine.settings import Settings
from nearcast.kinds.relevance import buffer_share as share
from nearcast.kinds.relevance import ledger, subscribers
from nearcast.kinds.relevance import matching as match
from nearcast.kinds.relevance import thresholds as buffers
from nearcast.kinds.relevance import window_cache as window
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.reader.current_answer import read_current
from nearcast.reader.reader import Reader
from nearcast.storage.directory import StateDirectory
from tests.engine.harness import MINUTE, NOON, WORDS, Streams, fold, key_of, random_batches, start, step
from tests.engine.oracle import TOKENIZER, Batch, Oracle, Version, satisfies
from tests.marks import slow
from tests.oracles.relevance import Post, Statistics, Taste, score

FIRST = [{"id": 1, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the first post the flood"}]
PERIOD = 30 * MINUTE


class RelevantStreams(Streams):
    """Subscriptions of all kinds, most of them by relevance."""

    conditions = 0.3

    def nearest(self, now: int) -> str:
        random = self.random
        lon, lat = self.place()
        words = " ".join(random.choice(WORDS) for _ in range(random.randrange(1, 5)))
        where = ""
        if random.random() < self.conditions:
            where = " AND ".join(filter(None, (self.region(), self.words(), random.choice(("", "price < 6")))))
        reach = random.choice(("", ", 5 km", ", 3000 km"))
        alpha = random.choice((0, 1, 0.3, 0.5, 0.7))
        window = (
            f"{random.choice((1, 4, 20, 90))} POSTS" if random.random() < 0.6 else f"{random.choice((3, 25))} MINUTES"
        )
        life = f" FOR {random.randrange(5, 60)} MINUTES" if random.random() < 0.15 else ""
        return (
            f"SELECT * FROM stream{' WHERE ' if where else ''}{where} ORDER BY RELEVANCE(POINT({lon!r}, {lat!r}), "
            f"'{words}', {alpha}{reach}) DESC LIMIT {random.choice((1, 2, 5, 30))} WINDOW {window}{life}"
        )


class RelevantOracle(Oracle):
    """Keeps all posts that have arrived, deleted ones too: they have their place in a window of so many posts."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.arrived: list[dict[str, Any]] = []
        self.hidden: set[int] = set()  # by identity

    def apply(self, op: dict[str, Any]) -> Version | None:
        if op["op"] == "delete":
            self.hidden |= {id(post) for post in self.arrived if post["id"] == op["id"]}
        return super().apply(op)

    def offer(self, query_id: int | str, version: Version, post: dict[str, Any]) -> bool:
        return not isinstance(version.query, RelevantQuery) and super().offer(query_id, version, post)

    def arrive(self, post: dict[str, Any], arrival: int | None) -> int | None:
        post = dict(post)
        before = self.duplicates
        moment = super().arrive(post, arrival)
        if moment is not None and self.duplicates == before:
            self.arrived.append(post)
        return moment

    def standing(self, query_id: int | str) -> RelevantQuery | None:
        """What an id asks for at the clock: its next version may have to wait."""
        stand = [each for each in self.versions.get(query_id, []) if each.start <= self.clock < each.end]
        return stand[-1].query if stand and isinstance(stand[-1].query, RelevantQuery) else None

    def best(self, query: RelevantQuery, statistics: Statistics) -> list[tuple[dict[str, Any], float]]:
        inside = sorted(self.arrived, key=by_time_and_id)
        if query.window_posts:
            inside = inside[-query.window_posts :]
        else:
            inside = [post for post in inside if self.clock - query.window < post["ts"] <= self.clock]
        profile = Taste(query.lon, query.lat, frozenset(query.words), query.alpha, query.reach_km, query.k)
        found = []
        for post in inside:
            if id(post) not in self.hidden and satisfies(query, post):
                value = score(profile, as_post(post), statistics)
                found += [] if value is None else [(post, value)]
        found.sort(key=lambda each: (-each[1], -each[0]["ts"], *by_time_and_id(each[0])[1:]))
        return found[: query.k]


def by_time_and_id(post: dict[str, Any]) -> tuple[Any, ...]:
    textual = isinstance(post["id"], str)
    return post["ts"], textual, post["id"], post["lon"], post["lat"]


_terms: dict[str, tuple[int, ...]] = {}


def as_post(post: dict[str, Any]) -> Post:
    text = post["text"]
    if text not in _terms:
        terms, _ = TOKENIZER.terms(pa.array([text]))
        _terms[text] = tuple(int(term) for term in terms if term)
    return Post(0, post["ts"], post["lon"], post["lat"], _terms[text])


def statistics_of(state: StateDirectory, query_id: int | str, lateness: int = 0) -> tuple[int, Statistics]:
    manifest = state.newest()
    versions = IdfSet(state, manifest)
    assert manifest.clock is not None
    used = int(versions.used(np.array([key_of(query_id)]), manifest.clock - lateness, PERIOD)[0])
    idf = versions.at(used)
    return used, Statistics(idf.posts, tuple(zip(idf.term.tolist(), idf.count.tolist(), strict=True)))


def check_relevant(state: StateDirectory, oracle: RelevantOracle, lateness: int = 0) -> int:
    """Each answer is the oracle's, and what `enter` and `leave` make of nothing; how many posts are in them."""
    reader, folded, count = Reader(state), fold(state), 0
    if reader.manifest.clock is None:
        assert not folded
        return 0
    for query_id in oracle.versions:
        query = oracle.standing(query_id)
        if query is None:
            assert not folded.get(query_id), query_id
            continue
        _, statistics = statistics_of(state, query_id, lateness)
        right = oracle.best(query, statistics)
        found = [(row["id"], row["ts"], row["score"]) for row in read_current(reader, query_id)]
        assert found == [(post["id"], post["ts"], value) for post, value in right], query_id
        posts = Counter((post["id"], post["ts"]) for post, _ in right)
        assert folded.get(query_id, Counter()) == posts, query_id
        count += len(right)
    return count


def batches_of(seed: int, count: int, keep: str = "posts", disorder: int = 5) -> list[Batch]:
    return random_batches(RelevantStreams(seed, nearest=0.85), count, keep, disorder)[0]


def settings(workers: int = 2, **more: Any) -> Settings:
    return Settings(workers=workers, idf_period=PERIOD, **more)


def run_through(root: Path, given: Settings, batches: list[Batch], workers: tuple[int, ...] = ()) -> int:
    state, oracle, count = StateDirectory(root), RelevantOracle(NOON, given.keep), 0
    start(state, given, FIRST)
    for number, batch in enumerate(batches):
        if workers:
            given = replace(given, workers=workers[number % len(workers)])
        step(state, given, batch)
        oracle.batch(batch)
        count += check_relevant(state, oracle, given.lateness)
    return count


@pytest.mark.parametrize("workers", [2, *slow(1, 5)])
@pytest.mark.parametrize("seed", [1, *slow(2, 3)])
def test_every_batch_leaves_each_subscriber_the_best_of_its_window(seed: int, workers: int, tmp_path: Path) -> None:
    assert run_through(tmp_path, settings(workers), batches_of(100 * seed + workers, 14)) > 100


def test_the_number_of_workers_may_change(tmp_path: Path) -> None:
    assert run_through(tmp_path, settings(), batches_of(7, 14), workers=(2, 2, 5, 1, 3)) > 100


@pytest.mark.slow
def test_with_lateness_each_id_takes_up_a_version_in_its_own_time(tmp_path: Path) -> None:
    assert run_through(tmp_path, settings(lateness=12 * MINUTE), batches_of(13, 12)) > 100


@pytest.mark.parametrize("name", ["prefix", *slow("hashing", "location", "keyword", "spatial-first", "keyword-first")])
def test_every_distribution_gives_the_same_answers(name: str, tmp_path: Path) -> None:
    assert run_through(tmp_path, settings(4, topk_distribution=name), batches_of(11, 12)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("fan", [2, 3])
def test_merging_changes_no_answer(fan: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (fan,))
    monkeypatch.setattr("nearcast.storage.compaction_policy.run_to_merge.__defaults__", (fan,))
    assert run_through(tmp_path, settings(), batches_of(30 + fan, 24)) > 200


def test_posts_that_are_not_kept_are_in_windows_all_the_same(tmp_path: Path) -> None:
    batches = batches_of(5, 12, "none")
    batches[0] = Batch([op for batch in batches for op in batch.ops if op["op"] != "delete"], [])
    assert run_through(tmp_path, settings(keep="none"), batches) > 50


@pytest.mark.slow
def test_nothing_depends_on_what_a_process_remembers(tmp_path: Path) -> None:
    batches = batches_of(21, 12)
    state, oracle, given = StateDirectory(tmp_path), RelevantOracle(NOON), settings()
    start(state, given, FIRST)
    for batch in batches:
        forget()
        step(state, given, batch)
        oracle.batch(batch)
        check_relevant(state, oracle)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are merged as soon as there are two."""
    monkeypatch.setattr("nearcast.storage.compaction_policy.to_merge.__defaults__", (2,))
    monkeypatch.setattr("nearcast.storage.compaction_policy.run_to_merge.__defaults__", (2,))


@pytest.mark.usefixtures("often")
def test_processes_that_take_turns_remember_what_was_and_do_what_is_right(tmp_path: Path) -> None:
    batches = batches_of(22, 14)
    state, oracle, given = StateDirectory(tmp_path), RelevantOracle(NOON), settings()
    start(state, given, FIRST)
    memories: list[list[dict[Any, Any]]] = [[{} for _ in CACHES] for _ in range(2)]
    turns = (0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1)
    for batch, turn in zip(batches, turns, strict=True):
        for cache, memory in zip(CACHES, memories[turn], strict=True):
            cache.clear()
            cache.update(memory)
        step(state, given, batch)
        for cache, memory in zip(CACHES, memories[turn], strict=True):
            memory.clear()
            memory.update(cache)
        oracle.batch(batch)
        check_relevant(state, oracle)


@pytest.mark.usefixtures("often")
def test_a_batch_that_was_not_committed_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = batches_of(23, 12)
    state, oracle, given = StateDirectory(tmp_path), RelevantOracle(NOON), settings()
    start(state, given, FIRST)
    for batch in batches:
        with monkeypatch.context() as patch:
            patch.setattr("nearcast.engine.driver.commit_batch", refuse)
            with pytest.raises(ConnectionError):
                step(state, given, batch)
        step(state, given, batch)
        oracle.batch(batch)
        check_relevant(state, oracle)


def refuse(*_: Any) -> None:
    raise ConnectionError


def test_a_state_that_had_no_such_subscription_for_a_while_looks_back_again(tmp_path: Path) -> None:
    sql = "SELECT * FROM stream ORDER BY RELEVANCE(POINT(0, 0), 'flood', 0.5) DESC LIMIT 9 WINDOW 90 POSTS"
    posts = [{"id": n, "ts": NOON + n * MINUTE, "lon": 0.1 * n, "lat": 0.0, "text": "flood"} for n in range(12)]
    ask, end = {"op": "subscribe", "id": 7, "sql": sql}, {"op": "unsubscribe", "id": 7}
    steps = [Batch([ask], posts[:2]), Batch([end], posts[2:4]), Batch([], posts[4:6]), Batch([], posts[6:8])]
    assert run_through(tmp_path, settings(), [*steps, Batch([ask], posts[8:10]), Batch([], posts[10:])]) > 15


CACHES: tuple[dict[Any, Any], ...] = (
    ledger._opened, ledger._parts, buffers._thresholds, match._held, subscribers._subscribers, share._shares,
    window._windows,
)  # fmt: skip


def forget() -> None:
    """As a process that has just begun."""
    for cache in CACHES:
        cache.clear()
