"""Regions with a name: given on the command line, used by searches, subscriptions and ops of the stream."""

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nearcast.common.errors import BadInput
from nearcast.common.geo.shapes import Circle, Rect
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.reader.results import read_results
from nearcast.reader.state import State
from nearcast.reader.subscription_list import Subscriptions
from nearcast.storage.directory import StateDirectory
from nearcast.storage.named_regions import Regions
from tests.cli.conftest import Said
from tests.reader.small_state import make_state, ops, posts

Cli = Callable[..., Said]
NEW_YORK, LONDON = "RECT(-75, 40, -73, 41)", "CIRCLE(-0.12, 51.5, 10 km)"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return make_state(tmp_path / "state")


def ids(state: Path, where: str) -> list[Any]:
    return [row["id"] for row in State(state).search(f"SELECT id FROM stream WHERE {where}")]


def test_a_name_is_used_from_the_moment_it_is_given(nearcast: Cli, state: Path) -> None:
    opened = State(state)
    assert nearcast("region", "add", "--state", state, "R", NEW_YORK) == Said(0, "", "")
    assert len(opened.search("SELECT id FROM stream WHERE loc INSIDE R")) == 4
    changed = nearcast("region", "add", "--state", state, "R", LONDON)
    assert (changed.code, changed.out, changed.err) == (0, "", f"R was {NEW_YORK}\n")
    assert len(opened.search("SELECT id FROM stream WHERE loc INSIDE R")) == 0
    said = nearcast("search", "--state", state, "SELECT id FROM stream WHERE loc INSIDE R", "--format", "json")
    assert (said.code, said.out) == (0, "")


def test_regions_are_listed_and_removed(nearcast: Cli, state: Path) -> None:
    nearcast("region", "add", "--state", state, "by the sea", LONDON)
    nearcast("region", "add", "--state", state, "R", NEW_YORK)
    said = nearcast("region", "list", "--state", state, "--format", "json")
    assert [json.loads(line) for line in said.out.splitlines()] == [
        {"name": "R", "region": NEW_YORK},
        {"name": "by the sea", "region": LONDON},
    ]
    assert LONDON in nearcast("region", "list", "--state", state).out
    assert ids(state, "loc INSIDE `by the sea`") == []
    assert nearcast("region", "remove", "--state", state, "by the sea") == Said(0, "", "")
    gone = nearcast("search", "--state", state, "SELECT * FROM stream WHERE loc INSIDE `by the sea`")
    assert gone.code == 2 and "there is no region by the sea" in gone.err and "nearcast region add" in gone.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "R", "RCT(1, 2, 3, 4)"], "did you mean RECT?"),
        (["add", "R", "RECT(1, 2, 3)"], "RECT has 3 of its values"),
        (["add", "R", "downtown"], "there is no region downtown"),
        (["add", "R", ""], "the query is empty"),
        (["add", " ", NEW_YORK], "is no name for a region"),
        (["add", "a`b", NEW_YORK], "is no name for a region"),
        (["add", "Rect", NEW_YORK], "is a shape"),
        (["remove", "Downtown"], "there is no region Downtown: did you mean downtown?"),
        (["remove", "nowhere"], "there is no region nowhere (nearcast region list shows those there are)"),
        (["add", "R"], "nearcast region add --help"),
        (["rename", "a", "b"], "remove"),
    ],
)
def test_what_is_no_region_is_refused_and_nothing_changes(
    nearcast: Cli, tmp_path: Path, words: list[str], message: str
) -> None:
    state = tmp_path / "state"
    Regions(state).add("downtown", LONDON)
    command, *rest = words
    said = nearcast("region", command, *(() if command == "rename" else ("--state", state)), *rest)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("nearcast: ") and message in said.err
    assert Regions(state).texts() == {"downtown": LONDON}


def test_a_directory_of_something_else_is_left_alone(nearcast: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    said = nearcast("region", "add", "--state", tmp_path, "R", NEW_YORK)
    assert (
        said.code == 2 and "not a Nearcast state" in said.err and [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    )
    for command in (["list"], ["remove", "R"]):
        said = nearcast("region", *command, "--state", tmp_path / "missing")
        assert said.code == 2 and "does not exist" in said.err
    assert not (tmp_path / "missing").exists()


def test_a_name_may_be_given_before_the_first_run(nearcast: Cli, tmp_path: Path) -> None:
    root = tmp_path / "state"
    made = nearcast("region", "add", "--state", root, "R", NEW_YORK)
    assert (made.code, made.out) == (0, "") and f"nearcast run --state {root}" in made.err
    assert nearcast("region", "list", "--state", root).code == 0
    begin(StateDirectory(root), Settings(workers=2), None)
    assert Regions(root)["R"] == Rect(-75.0, 40.0, -73.0, 41.0)


# -- subscriptions -----------------------------------------------------------------------------------------------------


def test_a_subscription_by_hand_may_use_a_name(nearcast: Cli, state: Path) -> None:
    sql = "SELECT * FROM stream WHERE loc INSIDE R"
    refused = nearcast("subscribe", "--state", state, sql)
    assert refused.code == 2 and "there is no region R" in refused.err
    nearcast("region", "add", "--state", state, "R", NEW_YORK)
    assert nearcast("subscribe", "--state", state, "--id", "mine", sql) == Said(0, "mine\n", "")


def test_a_subscription_keeps_the_region_that_the_name_stood_for(state: Path) -> None:
    directory, settings, regions = StateDirectory(state), Settings(workers=2), Regions(state)
    regions.add("R", NEW_YORK)
    sql = "SELECT id FROM stream WHERE loc INSIDE R AND text CONTAINS 'snow'"
    named = {"op": "subscribe", "id": 5, "id_text": "named", "sql": sql}
    unknown = {"op": "subscribe", "id": 6, "id_text": "unknown", "sql": sql.replace("R", "S")}
    search = {"op": "search", "id": 7, "id_text": "s2", "sql": "SELECT id FROM stream WHERE loc INSIDE R LIMIT 1"}
    before = directory.newest().counts.get("rejects", 0)
    run_locally(directory, settings, ops=ops(named, unknown, search))
    assert directory.newest().counts["rejects"] == before + 1
    regions.add("R", LONDON)
    run_locally(directory, settings, posts=[posts((9, 5, "snow", {}))])
    regions.remove("R")
    run_locally(directory, settings, posts=[posts((10, 6, "more snow", {}))])
    found = list(read_results(directory))
    assert [row["post_id"] for row in found if row["query_id"] == "named"] == [9, 10]
    assert [row["rows"] for row in found if row["query_id"] == "s2"] == [[{"id": 4}]]
    assert "named" in {each.id for each in Subscriptions(directory)}


# -- the file ----------------------------------------------------------------------------------------------------------


def test_two_who_add_at_once_both_succeed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: Regions(tmp_path).add(f"r{i}", f"CIRCLE({i}, 0, 1 km)"), range(24)))
    assert {name: region.lon for name, region in Regions(tmp_path).items()} == {f"r{i}": float(i) for i in range(24)}


def test_regions_travel_to_other_processes(tmp_path: Path) -> None:
    regions = Regions(tmp_path)
    regions.add("R", LONDON)
    assert dict(pickle.loads(pickle.dumps(regions))) == {"R": Circle(-0.12, 51.5, 10.0)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"R": 5}'])
def test_a_broken_file_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "regions.json").write_text(text)
    with pytest.raises(BadInput, match=r"regions\.json is broken: remove it, and add the regions again"):
        Regions(tmp_path).texts()
