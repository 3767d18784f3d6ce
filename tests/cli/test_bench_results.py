"""`nearcast bench NAME --save`: what is kept, and under which name."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from nearcast.cli import bench_command
from nearcast.cli.app import app
from nearcast.cli.bench_results import as_text, save
from nearcast.common.errors import BadInput


def measured(progress: Any, *, posts: int = 5, parts: str = "all") -> dict[str, Any]:
    machine = {"cpu": "some", "cores": 2}
    figures = {"rate": {"median": np.float64(2.5), "repeats": [2.0, 3.0]}}
    return {"bench": "fake", "machine": machine, "parameters": {"posts": posts, "parts": parts}, "figures": figures}


@pytest.fixture(autouse=True)
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One benchmark, and a directory of our own to save in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench_command, "names", lambda: ["fake"])
    monkeypatch.setattr(bench_command, "_module", lambda name: SimpleNamespace(SUMMARY="a fake", run=measured))


def saved(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path("docs") / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
    return content


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["bench", "fake", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_result_is_saved_with_its_command_as_typed_and_its_parameters() -> None:
    assert "docs/benchmarks/fake-posts-1-000.json" in run("--posts", "1_000", "--save")
    content = saved("fake-posts-1-000")
    assert content["command"] == "nearcast bench fake --posts 1_000"
    assert content["parameters"] == {"posts": 1000}
    assert content["settings"] == {"posts": 1000, "parts": "all"}
    assert content["machine"] == {"cpu": "some", "cores": 2}
    assert content["figures"]["rate"] == {"median": 2.5, "repeats": [2.0, 3.0]}


def test_without_save_nothing_is_written() -> None:
    run("--posts", "7")
    assert not Path("docs").exists()


def test_the_same_command_saved_again_takes_the_place_of_its_last_result() -> None:
    run("--parts", "a b", "--save-as", "short")
    run("--parts", "a b", "--save")
    run("--save")
    assert sorted(path.name for path in (Path("docs") / "benchmarks").iterdir()) == ["fake.json", "short.json"]
    assert saved("short")["command"] == "nearcast bench fake --parts 'a b'"


@pytest.mark.parametrize("name", ["../x", "A", "a b", "-a"])
def test_a_name_that_is_no_plain_file_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="--save-as"):
        save({}, "fake", [], {}, name)


def test_lists_of_plain_values_stand_on_one_line_and_texts_are_left_as_they_are() -> None:
    content = {"a": [1, 2, 3], "b": [{"c": []}], "d": "[\n 1,  2 ]"}
    text = as_text(content)
    assert '"a": [1, 2, 3]' in text
    assert json.loads(text) == content


def test_without_benchmarks_one_line_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(bench_command, "entry_points", lambda group: SimpleNamespace(names=set()))
    with pytest.raises(BadInput) as told:
        bench_command.names()
    assert str(told.value) == "no benchmarks are installed here: pip install nearcast-papers brings them"
