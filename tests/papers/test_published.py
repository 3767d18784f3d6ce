"""The documentation's figures are those of the saved results: none was typed by hand."""

import json
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nearcast.cli.bench_command import _options
from nearcast.cli.bench_results import as_text
from nearcast.common.errors import BadInput
from nearcast_papers.published.figure_lists import LISTS, figure_list, headlines, short
from nearcast_papers.published.markdown import aim, number, shown
from nearcast_papers.published.page import directive, page, with_figures, wrapped
from nearcast_papers.published.pictures import PICTURES, draw_all
from nearcast_papers.published.saved_result import SavedResult, read_all
from nearcast_papers.render import render

ROOT = Path(__file__).parents[2]
SAVED = ROOT / "docs" / "benchmarks"
MACHINE = {"date": "2026-11-18", "cores": 2, "cpu": "some", "memory_gb": 24, "nearcast": "0.2.0", "commit": "abc+"}


def result(bench: str, figures: dict[str, Any], **more: Any) -> SavedResult:
    command = f"nearcast bench {bench}"
    content = {"bench": bench, "command": command, "parameters": {}, "machine": MACHINE, "figures": figures, **more}
    return SavedResult(bench, content)


def test_the_committed_page_is_what_the_committed_results_give() -> None:
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(read_all(SAVED))


def test_the_readmes_table_is_what_the_committed_results_give() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == with_figures(readme, read_all(SAVED))


def test_every_saved_result_is_shown() -> None:
    for name, saved in read_all(SAVED).items():
        assert wrapped(saved.command) in page(read_all(SAVED)), name


@pytest.mark.parametrize("path", sorted(SAVED.glob("*.json")), ids=lambda path: path.stem)
def test_a_saved_result_says_where_it_comes_from(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert path.read_text(encoding="utf-8") == as_text(content)
    words = shlex.split(content["command"])
    assert words[:3] == ["nearcast", "bench", content["bench"]]
    assert all(f"--{option.replace('_', '-')}" in words for option in content["parameters"])
    if "source" in content:  # entered from the documentation of an earlier version
        assert f"version {content['machine']['nearcast']}, commit {content['machine']['commit']}" in content["source"]
    else:
        assert content["machine"]["python"] and content["settings"]


def test_every_option_of_a_saved_command_is_one_that_its_benchmark_takes() -> None:
    for saved in read_all(SAVED).values():
        run = import_module(f"nearcast_papers.benchmarks.bench_{saved.bench}").run
        assert _options(saved.bench, shlex.split(saved.command)[3:], run) == saved.content["parameters"]


def test_lines_of_the_page_are_not_too_wide() -> None:
    lines = page(read_all(SAVED)).splitlines()
    assert [line for line in lines if len(line) > (160 if line.startswith("|") else 140)] == []


def test_every_picture_of_the_page_is_there() -> None:
    text = page(read_all(SAVED))
    for name in PICTURES:
        assert f"({name})" in text and (ROOT / "docs" / name).exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.91, "0.91"), (15.0, "15"), (325_000, "325,000"), (1635.4, "1,635"), (48_098, "48,100"), (0.00005, "0.00005")],
)
def test_numbers_have_as_many_digits_as_a_benchmark_knows(value: float, text: str) -> None:
    assert number(value) == text


def test_a_figure_is_shown_with_its_spread_and_its_aim() -> None:
    figure = {"median": 0.57, "repeats": [0.58, 0.56, 0.57], "target": "at most 1.0", "met": True}
    assert (shown(figure, "µs"), aim(figure)) == ("0.57 µs (0.56 to 0.58)", "≤ 1")
    missed = {"value": 339_000.0, "target": "at least 500,000", "met": False}
    assert (shown(missed), aim(missed)) == ("339,000", "≥ 500,000, missed")


def test_a_result_without_some_figures_lists_the_others() -> None:
    lines = figure_list(result("pipeline", {"latency": {"median_s": {"value": 0.5}}}))
    assert lines[2:] == ["| arrival to result: median | 0.5 s |  |"]


def test_titles_of_a_list_are_different() -> None:
    for each in LISTS.values():
        assert len({one.title for one in each}) == len(each)


def test_a_long_command_is_cut_between_two_options() -> None:
    assert (
        short("nearcast bench topk --parts pipeline --subscribers 5", most=40)
        == "nearcast bench topk --parts pipeline …"
    )


def test_the_headlines_name_saved_results() -> None:
    assert len(headlines(read_all(SAVED))) == 2 + 10


@pytest.mark.parametrize("text", ["value nothing a:b", "draw pipeline", "measured"])
def test_a_directive_that_means_nothing_is_an_error(text: str) -> None:
    with pytest.raises(BadInput):
        directive({"pipeline": result("pipeline", {})}, text)


def test_a_file_that_is_no_result_is_an_error_that_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"bench": "x", "command": "", "parameters": {}, "figures": {}, "machine": {}}')
    with pytest.raises(BadInput, match=r"machine\.date"):
        read_all(tmp_path)
    with pytest.raises(BadInput, match="no saved results"):
        read_all(tmp_path / "empty")


def test_rendering_writes_the_page_and_the_readme_and_draws_whole_results_only(tmp_path: Path) -> None:
    saved = tmp_path / "docs" / "benchmarks"
    saved.mkdir(parents=True)
    for path in SAVED.glob("*.json"):
        (saved / path.name).write_bytes(path.read_bytes())
    (tmp_path / "README.md").write_text("# X\n<!-- figures -->\nof yesterday\n<!-- /figures -->\nend\n")
    assert render(tmp_path) == [tmp_path / "docs" / "benchmarks.md", tmp_path / "README.md"]
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "yesterday" not in readme and readme.endswith("<!-- /figures -->\nend\n")
    lines = {"uneven": [1.0, 2.0, 3.0, 2.0, 1.5], "adjusted": [3]}
    balance = result("balance", {"q3": {"router": "kdt", "fresh": {"uneven": 1.2}, "off": lines}})
    assert draw_all(tmp_path, {"balance": balance}) == [tmp_path / "balance.png"]


def test_a_readme_without_a_place_for_the_figures_is_an_error() -> None:
    with pytest.raises(BadInput, match="figures"):
        with_figures("# X\n", {})
