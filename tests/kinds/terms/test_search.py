"""Aggregates that ask for nothing but the most frequent terms of all posts are answered as frequent terms are: the same
rows as by adding up all terms of all posts, with bounds that say they are exact.
"""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import nearcast as nc
from nearcast.kinds.aggregates import segment_groups as aggregated
from nearcast.kinds.aggregates.cache import answer_cache as cached_answers
from nearcast.kinds.aggregates.search import GroupRows
from nearcast.reader.state import State
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, make_state
from tests.reader.small_state import NOON

CONDITIONS = [
    "",
    "WHERE loc INSIDE RECT(-74, 40, -73.5, 41)",
    "WHERE loc INSIDE CIRCLE(-74, 40.5, 30 km) AND time AFTER '5 mins ago'",
    "WHERE text CONTAINS 'w1 OR w4'",
    "WHERE shop = 1",
    "WHERE text CONTAINS 'nobody says this'",
]
ALIKE = [  # what is asked of the terms is the same, however it is put
    "SELECT APPROXIMATE TopK(text, {k}) AS top FROM stream {where}",
    "SELECT APPROXIMATE TopK(text, {k}) FROM stream {where} LIMIT 1",
    "SELECT APPROXIMATE TopK(text, {k}) FROM stream {where} LIMIT 0",
    "SELECT APPROXIMATE Count(id), TopK(text, {k}), TopK(text, 1) AS first FROM stream {where} HAVING Count(id) > 20",
    "SELECT TopK(text, {k}), Count(id) AS n FROM stream {where} ORDER BY n DESC",
]
OTHERS = [  # more is asked of a group than its posts and its terms, or there are several
    "SELECT APPROXIMATE TopK(text, 3), Sum(shop) FROM stream",
    "SELECT APPROXIMATE TopK(text, 3), shop FROM stream GROUP BY shop",
    "SELECT TopK(text, 3), Count(id) FROM stream HAVING Max(shop) > 1",
]


def some_posts(dice: Random, first: int, count: int) -> list[dict[str, Any]]:
    """With words of which many are as frequent as others, and posts without any."""
    return [
        {
            "id": first + n, "ts": NOON + (first + n) * 2_000_000, "shop": dice.randrange(3),
            "lon": -74.0 + dice.random() - 0.4, "lat": 40.0 + dice.random(),
            "text": " ".join(f"w{min(dice.randrange(12), dice.randrange(60))}" for _ in range(dice.randrange(5))),
        }
        for n in range(count)
    ]  # fmt: skip


def state_of(path: Path, seed: int) -> Path:
    dice = Random(seed)
    kinds = [ARCHIVED] * (seed % 2) + [SEALED, SEALED, FRESH]
    parts = [(kind, some_posts(dice, 100 * n, dice.randrange(1, 100))) for n, kind in enumerate(kinds)]
    return make_state(path / "state", parts, [0, 101, 102, 203])


def answer(state: State, sql: str, stop_words: list[str] | None) -> GroupRows:
    found = state.search(sql, stop_words=stop_words)
    assert isinstance(found, GroupRows)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cache", [None, "1 MB"])
def test_frequent_terms_are_the_same_as_all_terms_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, cache: str | None
) -> None:
    monkeypatch.setattr(cached_answers, "FIRST", 0)  # no view is ever chosen
    root = state_of(tmp_path, seed)
    state, plain = nc.open(root, cache=cache), nc.open(root)
    asked = [(k, where, sql) for k in (1, 2, 7, 500) for where in CONDITIONS for sql in ALIKE]
    for k, where, sql in asked:
        for stop_words in (None, ["w0", "w3", "w99"]):
            text = sql.format(k=k, where=where)
            found = answer(state, text, stop_words)
            with monkeypatch.context() as patch:
                patch.setattr(aggregated, "TERMS_ALONE", None)
                right = answer(plain, text, stop_words)
            assert found.table.equals(right.table), text
            assert found.posts_counted == right.posts_counted
            assert [name for name, _ in found.effort.scans] == [name for name, _ in right.effort.scans]


def test_bounds_say_that_frequent_terms_are_exact(tmp_path: Path) -> None:
    state = nc.open(state_of(tmp_path, 0))
    (row,) = state.search("SELECT APPROXIMATE TopK(text, 5) AS top FROM stream")
    more = list(state.search("SELECT TopK(text, 6) FROM stream"))
    assert row["top"] == [{**each, "error": 0, "certain": each["count"] > more[5]["count"]} for each in more[:5]]


def test_only_terms_of_all_posts_are_found_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    find = aggregated.most_frequent
    monkeypatch.setattr(aggregated, "most_frequent", lambda *given: (asked.append(given[3]), find(*given))[1])
    state = nc.open(state_of(tmp_path, 0))
    for sql in ALIKE:
        state.search(sql.format(k=9, where=""))
    assert asked == [10, 10, 10, 10, 9]  # what is certain is told by the next
    for sql in OTHERS:
        state.search(sql)
    assert len(asked) == 5
