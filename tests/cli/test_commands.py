"""The commands that read a state, and those that leave ops in its inbox. No Spark."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nearcast.cli.results_command import result_line
from nearcast.sources.inbox import waiting_in_inbox
from nearcast.storage.directory import StateDirectory
from tests.cli.conftest import Said
from tests.reader.small_state import LATER, make_state

Cli = Callable[..., Said]
FLOOD = "SELECT id, ts, text FROM stream WHERE text CONTAINS 'flood'"


def objects(said: Said) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.out.splitlines()]


@pytest.fixture
def own_state(tmp_path: Path) -> Path:
    return make_state(tmp_path / "state")


def inbox(state: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted((state / "inbox").glob("*.jsonl"))]
    return [{name: value for name, value in op.items() if name != "inbox_key"} for op in found]


# -- search ------------------------------------------------------------------------------------------------------------


def test_a_search_prints_one_json_object_a_line_with_times_in_utc(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, FLOOD, "--format", "json")
    assert said.code == 0
    assert objects(said) == [
        {"id": 4, "ts": "2026-05-01T12:03:00Z", "text": "flood and coffee"},
        {"id": "b", "ts": "2026-05-01T12:02:00Z", "text": 'another flood, "they" said\nyes'},
        {"id": 1, "ts": "2026-05-01T12:00:00Z", "text": "flood in the subway"},
    ]


def test_a_search_prints_csv_that_a_csv_reader_reads(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, FLOOD, "--format", "csv")
    rows = list(csv.reader(io.StringIO(said.out)))
    assert rows[0] == ["id", "ts", "text"]
    assert rows[2] == ["b", "2026-05-01T12:02:00Z", 'another flood, "they" said\nyes']


def test_a_star_has_all_attributes_as_columns(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, "SELECT * FROM stream", "--format", "csv")
    assert said.out.splitlines()[0] == "id,ts,lon,lat,text,price,tags"


def test_a_search_prints_a_table_and_the_candidates_checked(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, FLOOD)
    assert "flood in the subway" in said.out and "3 rows" in said.err and "candidates checked" in said.err


def test_a_search_that_finds_nothing_says_so_where_no_post_has_the_attribute(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, "SELECT * FROM stream WHERE Price > 1", "--format", "json")
    assert (said.code, said.out) == (0, "")
    assert "no post has an attribute Price" in said.err and "did you mean price?" in said.err
    for none in ("price > 100", "length > 1000", "Price IS NULL"):
        said = nearcast("search", "--state", small_state, f"SELECT * FROM stream WHERE {none}", "--format", "json")
        assert (said.code, said.err) == (0, "")


def test_explain_prints_the_plan(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("search", "--state", small_state, f"EXPLAIN {FLOOD}", "--format", "json")
    steps = {row["step"] for row in objects(said)}
    assert {"leaves", "index", "segments opened", "candidates checked"} <= steps


# -- results -----------------------------------------------------------------------------------------------------------


def test_results_come_in_order_in_every_format(nearcast: Cli, small_state: Path) -> None:
    rows = objects(nearcast("results", "--state", small_state, "--format", "json"))
    assert [row["seq"] for row in rows] == list(range(6))
    assert rows[0].keys() >= {"query_id", "seq", "batch", "kind", "post_id", "ts"}
    assert all(row["ts"].endswith("Z") for row in rows if "ts" in row)
    table = list(csv.DictReader(io.StringIO(nearcast("results", "--state", small_state, "--format", "csv").out)))
    assert [row["seq"] for row in table] == [str(n) for n in range(6)]
    assert len(nearcast("results", "--state", small_state).out.splitlines()) == 7


def test_results_of_one_query(nearcast: Cli, small_state: Path) -> None:
    rows = objects(nearcast("results", "--state", small_state, "--query", "17", "--format", "json"))
    assert [(row["query_id"], row["post_id"]) for row in rows] == [(17, 1)]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_result_is_one_line_that_fits(width: int) -> None:
    row = {
        "query_id": "長い名前" * 9,
        "seq": 1,
        "batch": 1,
        "kind": "match",
        "post_id": 1,
        "ts": 0,
        "text": "a\nb" * 200,
    }
    line = result_line(row, width)
    assert "\n" not in line and len(line) <= width


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"term": "flood", "count": 1200}, {"term": "rain", "count": 3}], "flood 1,200, rain 3"),
        ([{"count(id)": 4, "topic": "food"}, {"count(id)": 1, "topic": None}], 'count(id)=4 topic="food", count(id)=1'),
        ([{"term": "a", "count": 1, "error": 2}], 'term="a" count=1 error=2'),
        ([], "nothing"),
    ],
)
def test_a_report_of_terms_or_of_aggregates_is_one_line(rows: list[dict[str, Any]], told: str) -> None:
    row = {"query_id": "q", "seq": 1, "batch": 1, "kind": "report", "window_end": 0, "rows": rows}
    assert told in result_line(row, 300)


# -- ops ---------------------------------------------------------------------------------------------------------------


def test_a_subscription_waits_in_the_inbox(nearcast: Cli, own_state: Path) -> None:
    said = nearcast("subscribe", "--state", own_state, "--id", "mine", LATER, "--ts", "2026-05-01T12:00:00Z")
    assert (said.code, said.out) == (0, "mine\n")
    assert inbox(own_state) == [{"op": "subscribe", "id": "mine", "sql": LATER, "ts": "2026-05-01T12:00:00Z"}]
    assert waiting_in_inbox(StateDirectory(own_state)) == 1
    assert "1 more op waits in the inbox" in nearcast("subscriptions", "--state", own_state).err


def test_a_subscription_without_an_id_gets_a_readable_one_that_is_its_own(nearcast: Cli, own_state: Path) -> None:
    names = [nearcast("subscribe", "--state", own_state, LATER).out.strip() for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("rain-") for name in names)
    assert [op["id"] for op in inbox(own_state)] == names


def test_unsubscribing_finds_out_whether_an_id_is_a_number(nearcast: Cli, own_state: Path) -> None:
    for name in ("floods", "17", "18"):
        assert nearcast("unsubscribe", "--state", own_state, name).code == 0
    assert [op["id"] for op in inbox(own_state)] == ["floods", 17, "18"]


def test_unsubscribing_what_neither_stands_nor_waits_is_said_and_waits_all_the_same(
    nearcast: Cli, own_state: Path
) -> None:
    for _ in range(2):
        said = nearcast("unsubscribe", "--state", own_state, "flods")
        assert said.code == 0 and "no subscription flods stands" in said.err
    nearcast("subscribe", "--state", own_state, "--id", "flods", LATER)
    assert not nearcast("unsubscribe", "--state", own_state, "flods").err
    assert not nearcast("unsubscribe", "--state", own_state, "floods").err
    assert [op["op"] for op in inbox(own_state)] == ["unsubscribe"] * 2 + ["subscribe"] + ["unsubscribe"] * 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM stream WHERE text CONTAIN 'x'",
        "SELECT * FROM stream LIMIT 3",
        "SELECT * FROM stream WHERE time AFTER '1 hour ago'",
        "EXPLAIN SELECT * FROM stream",
        "",
    ],
)
def test_what_cannot_stand_is_refused_and_nothing_is_written(nearcast: Cli, own_state: Path, sql: str) -> None:
    said = nearcast("subscribe", "--state", own_state, sql)
    assert (said.code, said.out, inbox(own_state)) == (2, "", [])
    assert said.err.startswith("nearcast: ")


def test_subscriptions_are_listed(nearcast: Cli, small_state: Path) -> None:
    rows = objects(nearcast("subscriptions", "--state", small_state, "--format", "json"))
    assert [(row["id"], row["status"]) for row in rows] == [
        ("floods", "standing"),
        (17, "standing"),
        ("later", "waiting"),
    ]
    assert rows[2]["start"] == "2026-05-01T13:00:00Z"
    everything = objects(nearcast("subscriptions", "--state", small_state, "--all", "--format", "json"))
    assert [row["id"] for row in everything] == ["floods", "coffee", 17, "later"]


# -- status ------------------------------------------------------------------------------------------------------------


def test_the_status_is_one_object(nearcast: Cli, small_state: Path) -> None:
    (facts,) = objects(nearcast("status", "--state", small_state, "--format", "json"))
    assert facts["clock"] == "2026-05-01T12:03:00Z"
    assert facts["rejects"] == {"broken JSON": 1, "latitude out of range": 1}
    assert (facts["counts"]["posts"], facts["subscriptions"]["standing"], facts["leaves"]) == (4, 2, 4096)
    assert facts["settings"]["idf_period"] == "1d"  # as --idf-period takes it


def test_the_status_is_read_by_people_too(nearcast: Cli, small_state: Path) -> None:
    said = nearcast("status", "--state", small_state).out
    for word in ("clock", "2026-05-01T12:03:00Z", "broken JSON", "balance", "leaves", "segments", "load"):
        assert word in said
    rows = dict(csv.reader(io.StringIO(nearcast("status", "--state", small_state, "--format", "csv").out)))
    assert rows["counts.posts"] == "4"


@pytest.mark.parametrize("module", ["nearcast", "nearcast.cli"])
def test_the_package_is_the_command_line_too(module: str) -> None:
    said = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=120)
    assert (said.returncode, said.stderr) == (0, "") and said.stdout.startswith("nearcast ")
