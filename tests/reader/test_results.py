"""The outbox as readers see it."""

import threading
from pathlib import Path

import pytest

from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.results import follow_results, read_results
from nearcast.storage.directory import StateDirectory
from tests.reader.small_state import MINUTE, NOON, make_state, posts


def test_results_come_in_order_of_seq_each_once(small_state: Path) -> None:
    rows = list(read_results(small_state))
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    matches = {(row["query_id"], row["post_id"]) for row in rows if row["kind"] == "match"}
    assert matches == {("coffee", 2), ("floods", 1), ("floods", "b"), ("floods", 4), (17, 1)}
    assert len(rows) == len(matches) + 1


def test_a_match_of_a_star_has_the_fields_of_its_post_and_no_others(small_state: Path) -> None:
    (row,) = [row for row in read_results(small_state, "floods") if row["post_id"] == 1]
    assert row == {
        "query_id": "floods", "seq": row["seq"], "batch": 1, "kind": "match", "post_id": 1, "ts": NOON, "lon": -74.0,
        "lat": 40.5, "text": "flood in the subway", "price": 3,
    }  # fmt: skip


def test_a_match_has_post_id_and_ts_and_the_columns_of_its_select(small_state: Path) -> None:
    (row,) = read_results(small_state, "coffee")
    assert {name: row[name] for name in row if name not in ("seq", "batch")} == {
        "query_id": "coffee", "kind": "match", "post_id": 2, "ts": NOON + MINUTE, "id": 2, "text": "espresso time",
    }  # fmt: skip


def test_the_answer_of_a_search_in_the_stream_is_its_rows(small_state: Path) -> None:
    (row,) = read_results(small_state, "s1")
    assert (row["kind"], row["batch"], row["rows"]) == ("answer", 2, [{"id": "b"}, {"id": 1}])
    assert "post_id" not in row


@pytest.mark.parametrize("query", [17, "17"])
def test_an_integer_id_can_be_asked_for_as_a_number_or_as_text(small_state: Path, query: int | str) -> None:
    rows = list(read_results(small_state, query))
    assert [(row["query_id"], row["post_id"]) for row in rows] == [(17, 1)]


@pytest.mark.parametrize("query", ["nobody", 99, "99999999999999999999999"])
def test_a_query_without_results_has_none(small_state: Path, query: int | str) -> None:
    assert list(read_results(small_state, query)) == []


def test_reading_can_begin_in_the_middle(small_state: Path) -> None:
    rows = list(read_results(small_state))
    for since in range(len(rows) + 2):
        assert list(read_results(small_state, since_seq=since)) == rows[since:]


def test_following_gives_what_is_there_and_then_what_comes(tmp_path: Path) -> None:
    root = make_state(tmp_path / "state")
    state, stop = StateDirectory(root), threading.Event()
    before = list(read_results(root))
    following = follow_results(state, stop=stop, poll=0.01)
    assert [next(following) for _ in before] == before
    run_locally(state, Settings(), posts=[posts((5, 9, "flood again", {}))])
    row = next(following)
    assert (row["seq"], row["query_id"], row["post_id"]) == (len(before), "floods", 5)
    stop.set()
    assert list(following) == []
