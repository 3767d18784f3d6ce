"""`nearcast search` for the most relevant posts, and `--idf-period`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nearcast.common.durations import duration_of, duration_text
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.storage.directory import StateDirectory
from tests.cli.conftest import Said
from tests.reader.small_state import MINUTE, NOON, posts

Cli = Callable[..., Said]
PERIOD = 10 * MINUTE
FLOOD = "SELECT id FROM stream ORDER BY RELEVANCE(POINT(-74, 40.5), 'flood coffee', 0.4) DESC LIMIT 2"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with two versions of the idf."""
    root = tmp_path_factory.mktemp("relevant") / "state"
    directory, settings = StateDirectory(root), Settings(workers=1, idf_period=PERIOD)
    begin(directory, settings)
    texts = ("flood in the subway", "coffee", "flood, coffee", "flood and rain")
    for n, text in enumerate(texts):
        run_locally(directory, settings, posts=[posts((n, 9 * n, text, {}))])
    return root


def test_scores_come_last_best_first(nearcast: Cli, state: Path) -> None:
    said = nearcast("search", "--state", state, FLOOD, "--format", "json")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == 0 and [list(row) for row in rows] == [["id", "score"]] * 2
    assert rows[0]["id"] == 2 and rows[0]["score"] > rows[1]["score"]


def test_a_table_names_the_version_of_the_idf(nearcast: Cli, state: Path) -> None:
    said = nearcast("search", "--state", state, FLOOD)
    assert "score" in said.out and f"scores by version {NOON // PERIOD + 2} of the idf" in said.err.replace("\n", " ")
    said = nearcast("search", "--state", state, FLOOD, "--idf", NOON // PERIOD + 1)
    assert f"scores by version {NOON // PERIOD + 1} of the idf" in said.err.replace("\n", " ")


def test_explain_shows_the_parts_of_each_score(nearcast: Cli, state: Path) -> None:
    said = nearcast("search", "--state", state, f"EXPLAIN {FLOOD}", "--format", "json")
    steps = {row["step"]: row["detail"] for row in map(json.loads, said.out.splitlines())}
    assert steps["score of 2"].startswith("1.000000 = 0.4 × nearness 1.000000 (0.000 km) + 0.6 × cosine 1.000000 (")
    assert "most relevant to (-74, 40.5), alpha 0.4, reach 20,015 km first" in steps["order"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FLOOD, "--idf", 5), "version 5 of the idf is not kept: there is"),
        (("SELECT * FROM stream", "--idf", 0), "a version of the idf is for ORDER BY RELEVANCE"),
        (("--bulk", "none.jsonl", "--idf", 0), "--idf is for one question"),
    ],
)
def test_what_makes_no_sense_is_told(nearcast: Cli, state: Path, arguments: tuple[object, ...], message: str) -> None:
    said = nearcast("search", "--state", state, *arguments)
    assert said.code == 2 and message in said.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("6 hours", "--idf-period '6 hours' is not a length of time"),
        ("10ms", "--idf-period 10ms is too short"),
        ("6h", "--idf-period 6h: "),
    ],
)
def test_a_period_that_cannot_be_is_told(nearcast: Cli, state: Path, text: str, message: str) -> None:
    said = nearcast("run", "--state", state, "--idf-period", text)
    assert said.code == 2 and message in said.err.replace("\n", " ")
    assert text != "6h" or "was made with idf period = 10m, and that cannot change" in said.err.replace("\n", " ")


@pytest.mark.parametrize("text", ["1d", "6h", "90m", "1w", "36h", "1500ms", "10s"])
def test_a_length_is_spelled_as_it_is_read(text: str) -> None:
    assert duration_of(duration_text(duration_of(text, "--x")), "--x") == duration_of(text, "--x")
