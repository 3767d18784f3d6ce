"""Aggregates asked of a state: as rows, as text, with EXPLAIN, in the stream and in bulk; and what is no question."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.errors import QueryError
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.engine.spark.bulk_search import answer
from nearcast.kinds.aggregates import segment_groups as aggregated
from nearcast.kinds.aggregates.search import GroupRows
from nearcast.reader.reader import Reader
from nearcast.reader.state import State
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import create_exclusively
from nearcast.storage.manifest import POSTS, Manifest, SegmentRef, path_of
from nearcast.storage.posts import coded_columns as columns
from nearcast.storage.posts import shortcuts
from nearcast.storage.posts.post_segment import write_posts
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, Post, make_state, with_words
from tests.reader.small_state import MINUTE, NOON, ops, posts

SHOPS = ["north", "south", None]


def some_posts(first: int, count: int) -> list[Post]:
    return [
        {
            "id": n, "ts": NOON + n * MINUTE, "lon": -74.0 + n / 1000, "lat": 40.5,
            "text": "flood rain" if n % 2 else "rain", "price": n, **({"shop": SHOPS[n % 3]} if SHOPS[n % 3] else {}),
        }
        for n in range(first, first + count)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    """Posts 0 to 59, a minute apart, of which 0 and 30 are deleted."""
    parts = [(ARCHIVED, some_posts(0, 20)), (SEALED, some_posts(20, 20)), (FRESH, some_posts(40, 20))]
    return State(make_state(tmp_path_factory.mktemp("aggregates") / "state", parts, [0, 30]))


def rows(state: State, sql: str, **more: Any) -> list[dict[str, Any]]:
    found = state.search(sql, **more)
    assert (
        isinstance(found, GroupRows) and len(found) == len(list(found)) and found.to_arrow().to_pylist() == list(found)
    )
    return list(found)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT Count(id) FROM stream", [{"count(id)": 58}]),
        ("SELECT Count(*) AS posts, Sum(price) FROM stream", [{"posts": 58, "sum(price)": sum(range(60)) - 30}]),
        ("SELECT Count(id), shop FROM stream GROUP BY shop",
         [{"count(id)": 18, "shop": "north"}, {"count(id)": 20, "shop": "south"}, {"count(id)": 20, "shop": None}]),
        ("SELECT shop, Max(price) AS most FROM stream WHERE text CONTAINS 'flood' GROUP BY shop "
         "HAVING most > 55 ORDER BY most DESC",
         [{"shop": None, "most": 59}, {"shop": "north", "most": 57}]),
        ("SELECT Count(id), hour FROM stream WHERE time AFTER '10 mins ago' GROUP BY hour",
         [{"count(id)": 10, "hour": "12:00"}]),
        ("SELECT Count(id), Avg(price), Min(price), TopK(text, 1) FROM stream WHERE price < 0",
         [{"count(id)": 0, "avg(price)": None, "min(price)": None, "topk(text,1)": []}]),
        ("SELECT Count(id), shop FROM stream WHERE price < 0 GROUP BY shop", []),
        ("SELECT TopK(text, 2), Count(id) FROM stream WHERE loc INSIDE RECT(-74, 40, -73.985, 41)",
         [{"topk(text,2)": [{"term": "rain", "count": 15}, {"term": "flood", "count": 8}], "count(id)": 15}]),
        ("SELECT Count(id), shop FROM stream GROUP BY shop ORDER BY Count(id) DESC, shop DESC LIMIT 2",
         [{"count(id)": 20, "shop": "south"}, {"count(id)": 20, "shop": None}]),
    ],
)  # fmt: skip
def test_rows_of_aggregates(state: State, sql: str, expected: list[dict[str, Any]]) -> None:
    found = rows(state, sql)
    for row in found:
        if "hour" in row:
            row["hour"] = row["hour"].strftime("%H:%M")
    assert found == expected
    assert [list(row) for row in found] == [list(row) for row in expected]


def test_stop_words_are_left_out(state: State) -> None:
    (row,) = rows(state, "SELECT TopK(text), Count(id) FROM stream", stop_words=["rain"])
    assert [each["term"] for each in row["topk(text)"]] == ["flood"]


@pytest.mark.parametrize("condition", ["IN (8, '{}')", "NOT IN (8, '{}')"])
def test_a_list_may_have_values_of_other_kinds_beside_its_own(state: State, condition: str) -> None:
    hour = "2026-05-01T08:00:00Z"
    mixed, plain = (
        f"SELECT Count(id) FROM stream WHERE hour {each}" for each in (condition, condition.replace("8, ", ""))
    )
    assert list(state.search(mixed.format(hour))) == list(state.search(plain.format(hour)))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT Count(id), shp FROM stream GROUP BY shp", r"(?s)no post has an attribute shp.*did you mean shop\?"),
        ("SELECT Sum(prise) FROM stream", r"(?s)no post has an attribute prise.*did you mean price\?"),
        ("SELECT Count(id) FROM stream WHERE prce > 2", r"(?s)no post has an attribute prce.*did you mean price\?"),
        ("SELECT Sum(shop) FROM stream", "Sum is of numbers, and the values of shop are strings"),
        ("SELECT Count(id) FROM stream HAVING Max(shop) > 3", "Max is of numbers or times, and the values of shop"),
        ("SELECT Avg(hour) FROM stream", "Avg is of numbers, and the values of hour are times"),
        ("SELECT Count(id) FROM stream WHERE price > 1 AND hour = 8", r"(?s)hour is a time.*'2026-05-01T08:00'"),
        ("SELECT * FROM stream WHERE date IN ('June', 'May')", "date is a time, and is not compared with this"),
        ("SELECT Count(id) FROM stream WHERE weekday = 'Monday'", "weekday is a number, and is not compared with"),
        ("SELECT * FROM stream WHERE cell = 7", "(?s)cell is a string.*expected a string in quotes"),
    ],
)
def test_an_attribute_that_no_post_has_is_an_error_that_points_at_it(state: State, sql: str, message: str) -> None:
    for text in (sql, f"EXPLAIN {sql}"):
        with pytest.raises(QueryError, match=message) as caught:
            state.search(text)
        assert "^" in str(caught.value)
    in_bulk = answer(state.reader, sql)
    assert in_bulk["rows"] is None and "^" in (in_bulk["error"] or "")


def test_an_hour_is_compared_with_times_and_with_what_posts_themselves_have_as_their_hour(tmp_path: Path) -> None:
    own = [{"id": n, "ts": NOON + n * MINUTE, "lon": 0.0, "lat": 0.0, "text": "a", "hour": n} for n in range(3)]
    none = [{"id": n, "ts": NOON + n * MINUTE, "lon": 0.0, "lat": 0.0, "text": "a"} for n in range(3, 9)]
    timely = "SELECT Count(id) FROM stream WHERE hour = '2026-05-01T12:00Z'"
    with_own = State(make_state(tmp_path / "own", [(SEALED, own), (FRESH, none)]))
    assert rows(with_own, "SELECT Count(id) FROM stream WHERE hour = 2") == [{"count(id)": 1}]
    assert rows(with_own, timely) == [{"count(id)": 6}]
    assert rows(State(make_state(tmp_path / "none", [(FRESH, none)])), timely) == [{"count(id)": 6}]


def test_a_state_without_posts_knows_no_attributes_and_answers(tmp_path: Path) -> None:
    empty = State(make_state(tmp_path / "state", []))
    assert rows(empty, "SELECT Sum(price), Count(id) FROM stream WHERE shop = 'a'") == [
        {"sum(price)": None, "count(id)": 0}
    ]
    assert rows(empty, "SELECT Count(id), shop FROM stream GROUP BY shop") == []


def test_explain_says_how_each_segment_was_searched(state: State) -> None:
    plan = {
        row["step"]: row["detail"]
        for row in state.search(
            "EXPLAIN SELECT shop, Count(id) FROM stream GROUP BY shop ORDER BY Count(id) DESC LIMIT 2"
        )
    }
    assert plan["index"] == "whole columns in 3" and plan["groups"] == "shop"
    assert plan["order"] == "count(id) descending, shop, the first 2" and plan["rows"] == "2"
    plan = {row["step"]: row["detail"] for row in state.search("EXPLAIN SELECT Count(id) FROM stream")}
    assert plan["index"] == "count in 3" and plan["candidates checked"].startswith("0 of 60")


def test_bulk_searches_and_searches_in_the_stream_answer_rows(tmp_path: Path) -> None:
    directory, settings = StateDirectory(tmp_path / "state"), Settings(workers=2)
    begin(directory, settings, None)
    sql = "SELECT price, Count(id), TopK(text, 1), Min(time) FROM stream GROUP BY price"
    run_locally(directory, settings, posts=[posts((1, 0, "flood", {"price": 3}), (2, 1, "rain", {}))])
    run_locally(directory, settings, ops=ops({"op": "search", "id": 9, "sql": sql}))
    expected = [
        {
            "price": 3,
            "count(id)": 1,
            "topk(text,1)": [{"term": "flood", "count": 1}],
            "min(time)": "2026-05-01T12:00:00Z",
        },
        {
            "price": None,
            "count(id)": 1,
            "topk(text,1)": [{"term": "rain", "count": 1}],
            "min(time)": "2026-05-01T12:01:00Z",
        },
    ]
    (result,) = State(directory.root).results()
    assert result["kind"] == "answer" and result["rows"] == expected
    told = answer(Reader(directory), sql)
    assert told["error"] is None and json.loads(told["rows"] or "") == expected


# -- segments that are asked a lot -------------------------------------------------------------------------------------

ROWS = 30_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sealed segments on disk, with attributes in blocks: topic 0 to 9 and user, all over three days."""
    directory = StateDirectory(tmp_path_factory.mktemp("large") / "state")
    directory.create({})
    refs = []
    for number in range(2):
        rng = np.random.default_rng(number)
        ts = NOON + rng.integers(0, 72 * 60, ROWS) * MINUTE
        words = np.array(["flood", "rain", "wind", "snow"])
        table = pa.table({
            "id": np.arange(ROWS) + number * ROWS, "id_text": pa.nulls(ROWS, pa.string()), "ts": ts,
            "lon": rng.uniform(-180, 180, ROWS), "lat": rng.uniform(-90, 90, ROWS),
            "text": [" ".join(words[rng.random(4) < 0.5]) for _ in range(ROWS)],
            "topic:i": pa.array(np.arange(ROWS) % 10), "user:s": pa.array([f"u{n % 997}" for n in range(ROWS)]),
        })  # fmt: skip
        name = directory.new_name(POSTS, number, 0)
        size, _ = write_posts(directory.path(name), with_words(table), sealed=True)
        refs.append(SegmentRef(POSTS, name, ROWS, size, number, min_ts=int(ts.min()), max_ts=int(ts.max())))
    manifest = Manifest(version=1, batch=1, clock=NOON + 72 * 60 * MINUTE, segments=tuple(refs))
    create_exclusively(path_of(directory.manifests, 1), manifest.to_json())
    return directory.root


def methods(found: Any) -> set[str]:
    return {scan.method for _, scan in found.effort.scans}


ASKED = {
    "attribute first": "SELECT Count(id), user FROM stream WHERE topic = 7 GROUP BY user LIMIT 3",
    "time first": "SELECT Count(id), topic FROM stream WHERE time BETWEEN '2026-05-02' AND '2026-05-02T00:10:00Z' "
    "GROUP BY topic",
    "lists together": "SELECT Count(id), topic FROM stream WHERE text CONTAINS 'flood rain wind snow' GROUP BY topic",
    "whole columns": "SELECT Count(id), Avg(length), topic FROM stream GROUP BY topic",
}  # fmt: skip


@pytest.mark.parametrize("method", ASKED)
def test_a_question_that_is_asked_again_is_answered_in_another_way_with_the_same_rows(large: Path, method: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortcuts, "SMALL", 10**9)
        patch.setattr(columns, "WORTH", 0)
        plain = list(State(large).search(ASKED[method]))
    asked = State(large)
    found = [asked.search(ASKED[method]) for _ in range(6)]
    assert all(list(each) == plain for each in found)
    assert methods(found[-1]) == {method}
    if method != "whole columns":
        assert found[-1].candidates_checked < ROWS / 2


def test_segments_are_searched_on_all_cores_with_the_same_rows(large: Path) -> None:
    plain = [list(State(large).search(sql)) for sql in ASKED.values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregated, "PARALLEL_ROWS", 1)
        assert [list(State(large).search(sql)) for sql in ASKED.values()] == plain


def test_a_count_of_everything_looks_at_no_post(large: Path) -> None:
    found = State(large).search("SELECT Count(id) FROM stream")
    assert list(found) == [{"count(id)": 2 * ROWS}] and found.candidates_checked == 0
