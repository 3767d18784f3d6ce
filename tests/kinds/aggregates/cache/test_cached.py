"""A state opened with a cache: the same answers, from many threads, while batches come; and approximate ones."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

import nearcast as nc
from nearcast.common.errors import BadInput
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.kinds.aggregates.cache import answer_cache as cached_answers
from nearcast.kinds.aggregates.cache import plan as answer
from nearcast.kinds.aggregates.cache import selection
from nearcast.kinds.aggregates.search import GroupRows
from nearcast.reader.state import State
from nearcast.storage.directory import StateDirectory
from tests.kinds.aggregates.test_search import some_posts
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, make_state
from tests.reader.small_state import NOON, ops, posts

QUESTIONS = [
    "SELECT Count(id) FROM stream",
    "SELECT Count(id), shop FROM stream GROUP BY shop",
    "SELECT Count(id), Avg(price), shop FROM stream WHERE price BETWEEN 5 AND 50 GROUP BY shop",
    "SELECT Count(id), hour FROM stream WHERE time AFTER '10 mins ago' GROUP BY hour",
    "SELECT Sum(price), TopK(text, 2) FROM stream WHERE loc INSIDE RECT(-74, 40, -73.97, 41)",
    "SELECT Count(id), TopK(text, 1), shop FROM stream WHERE text CONTAINS 'flood' GROUP BY shop",
    "SELECT Min(ts), shop FROM stream WHERE loc INSIDE CIRCLE(-74, 40.5, 3 km) AND shop = 'north' GROUP BY shop",
]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every view pays, and is chosen soon; no answer is kept as it was given."""
    monkeypatch.setattr(cached_answers, "REMEMBERED", 0.0)
    monkeypatch.setattr(selection, "OPENING", -1e6)
    monkeypatch.setattr(answer, "OPENING", -1e6)
    monkeypatch.setattr(answer, "WORTH", float("inf"))
    monkeypatch.setattr(cached_answers, "FIRST", len(QUESTIONS))


def rows(state: State, sql: str) -> list[dict[str, Any]]:
    return list(state.search(sql))


def cached(path: Path) -> State:
    state = nc.open(path, cache="10 MB")
    assert state.cache is not None
    state.cache.background = False
    return state


def test_a_state_with_a_cache_gives_the_same_answers_from_views(tmp_path: Path) -> None:
    parts = [(ARCHIVED, some_posts(0, 20)), (SEALED, some_posts(20, 20)), (FRESH, some_posts(40, 20))]
    root = make_state(tmp_path / "state", parts, [0, 30])
    plain, state = nc.open(root), cached(root)
    for _ in range(2):
        for sql in QUESTIONS:
            assert rows(state, sql) == rows(plain, sql), sql
    assert state.cache is not None
    status = state.cache.status()
    assert status.choices == 1 and status.queries == 2 * len(QUESTIONS)
    assert status.from_views == len(QUESTIONS)
    assert 0 < status.view_bytes <= 8 << 20
    told = {row["step"]: row["detail"] for row in rows(state, "EXPLAIN " + QUESTIONS[1])}
    assert told["cache"] == "1 views for 39 posts"
    assert "cache" not in {row["step"] for row in rows(plain, "EXPLAIN " + QUESTIONS[1])}


def test_answers_go_with_the_batches(tmp_path: Path) -> None:
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=2)
    begin(state, settings, None)
    run_locally(state, settings, posts=[posts(*((n, n, "flood rain", {"price": n}) for n in range(30)))])
    plain, asked = nc.open(state.root), cached(state.root)
    sql = "SELECT Count(id), Sum(price), TopK(text, 3) FROM stream WHERE loc INSIDE RECT(-75, 40, -73, 41)"
    assert [rows(asked, sql) for _ in range(20)] == [rows(plain, sql)] * 20
    run_locally(state, settings, posts=[posts(*((n, n, "drought", {}) for n in range(20, 45)))])
    assert rows(asked, sql) == rows(plain, sql) == [
        {"count(id)": 45, "sum(price)": 435, "topk(text,3)": [
            {"term": "flood", "count": 30}, {"term": "rain", "count": 30}, {"term": "drought", "count": 15},
        ]},
    ]  # fmt: skip
    run_locally(state, settings, ops=ops({"op": "delete", "id": 3}))
    assert rows(asked, sql) == rows(plain, sql) != []
    assert asked.cache is not None and asked.cache.status().from_views > 10


def test_what_is_asked_for_the_third_time_in_a_batch_is_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_answers, "REMEMBERED", 0.05)
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=2)
    begin(state, settings, None)
    run_locally(state, settings, posts=[posts(*((n, n, "flood", {"new": n == 1, "price": n}) for n in range(9)))])
    asked = cached(state.root)
    assert asked.cache is not None
    for condition in ("new = true", "price = 1", "price = 1.0"):
        sql = f"SELECT Count(id), Sum(price) FROM stream WHERE {condition}"
        assert [rows(asked, sql) for _ in range(4)] == [[{"count(id)": 1, "sum(price)": 1}]] * 4
    assert asked.cache.status().remembered == 6 and asked.cache.memory.held > 0
    again = "SELECT Count(id) FROM stream WHERE new = 1"
    assert [rows(asked, again) for _ in range(3)] == [[{"count(id)": 0}]] * 3
    found = asked.search("SELECT Count(id), Sum(price) FROM stream WHERE price = 1")
    assert isinstance(found, GroupRows) and found.cached is not None and found.cached.endswith("asked before")
    run_locally(state, settings, posts=[posts((9, 9, "flood", {"new": True, "price": 1}))])
    sql = "SELECT Count(id), Sum(price) FROM stream WHERE price = 1"
    assert rows(asked, sql) == [{"count(id)": 2, "sum(price)": 2}]
    with pytest.raises(BadInput):
        asked.search("SELECT Count(id) FROM stream WHERE prize = 1")


def test_many_threads_ask_one_cache(tmp_path: Path) -> None:
    root = make_state(tmp_path / "state", [(SEALED, some_posts(0, 40)), (FRESH, some_posts(40, 20))], [7])
    expected = [rows(nc.open(root), sql) for sql in QUESTIONS]
    state = nc.open(root, cache="10 MB")
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [rows(state, sql) for sql in QUESTIONS], range(40)):
            assert found == expected
    assert state.cache is not None and state.cache.status().queries == 40 * len(QUESTIONS)


def test_an_approximate_topk_has_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve words, three counters: what is sure is said to be."""
    words = [f"w{n:02d}" for n in range(12) for _ in range(3 * n)]
    many = [{"id": n, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": word} for n, word in enumerate(words)]
    root = make_state(tmp_path / "state", [(SEALED, many[::2]), (FRESH, many[1::2])])
    sql = "SELECT APPROXIMATE TopK(text, 2) AS top, Count(id) FROM stream"
    exact = [{"term": "w11", "count": 33}, {"term": "w10", "count": 30}]
    (plain,) = rows(nc.open(root), sql)
    assert plain == {"top": [{**each, "error": 0, "certain": True} for each in exact], "count(id)": len(words)}
    monkeypatch.setattr("nearcast.kinds.aggregates.search.counters_for", lambda k, stop: k + 1)
    state = cached(root)
    for _ in range(len(QUESTIONS)):
        assert rows(state, sql) == [plain]
    (found,) = rows(state, sql)
    assert state.cache is not None and state.cache.status().from_views == 1
    assert [each["term"] for each in found["top"]] == ["w11", "w10"] and found["count(id)"] == len(words)
    for each, truth in zip(found["top"], exact, strict=True):
        assert each["count"] - each["error"] <= truth["count"] <= each["count"]
        assert each["error"] <= len(words) // 3
    assert rows(state, "SELECT TopK(text, 2) AS top, Count(id) FROM stream")[0]["top"] == exact
    (more,) = rows(state, "SELECT APPROXIMATE TopK(text, 3) AS top, Count(id) FROM stream")
    assert [each["error"] for each in more["top"]] == [0, 0, 0]  # the view has too few counters for three terms


@pytest.mark.parametrize("k", [1, 2, 3, 5, 40])
def test_an_approximate_topk_that_no_summary_answers_is_exact_and_certain_but_where_the_next_has_as_many(
    tmp_path: Path, k: int
) -> None:
    dice = Random(k)
    many = [
        {
            "id": n,
            "ts": NOON + n,
            "lon": 0.0,
            "lat": 0.0,
            "text": f"w{min(dice.randrange(9), dice.randrange(30))}",
            "shop": n % 3,
        }
        for n in range(400)
    ]
    root = make_state(tmp_path / "state", [(SEALED, many[:150]), (SEALED, many[150:300]), (FRESH, many[300:])])
    sql = "SELECT {} AS top, shop FROM stream GROUP BY shop ORDER BY shop"
    for state in (nc.open(root), cached(root)):
        found = rows(state, sql.format(f"TopK(text, {k})").replace("SELECT", "SELECT APPROXIMATE"))
        for group, whole in zip(found, rows(state, sql.format("TopK(text, 1000)")), strict=True):
            counts = [each["count"] for each in whole["top"]]
            following = counts[k] if k < len(counts) else 0
            assert group["top"] == [
                {**each, "error": 0, "certain": each["count"] > following} for each in whole["top"][:k]
            ]


@pytest.mark.parametrize("size", ["much", "-5", "5 TB 3", "", "1000"])
def test_a_cache_of_no_size_is_refused(tmp_path: Path, size: str) -> None:
    root = make_state(tmp_path / "state", [(FRESH, some_posts(0, 2))])
    with pytest.raises(BadInput, match="'500 MB'"):
        nc.open(root, cache=size)


@pytest.mark.parametrize(
    ("size", "bytes_"), [(1000, 1000), ("2 kB", 2000), ("2 KiB", 2048), ("1.5MB", 1_500_000), ("1GiB", 1 << 30)]
)
def test_a_size_is_bytes_or_has_a_unit(tmp_path: Path, size: int | str, bytes_: int) -> None:
    state = nc.open(make_state(tmp_path / "state", [(FRESH, some_posts(0, 2))]), cache=size)
    assert state.cache is not None
    budget = state.cache.budget
    assert budget.views + budget.objects == bytes_
