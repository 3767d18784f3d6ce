"""What is true of all pages: lengths and widths, and that what they name is there."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.commands import all_options, complaint
from tests.docs.markdown import ROOT, name_of, pages

WIDEST, WIDEST_ROW = 140, 160
PATH = re.compile(r"(?<![\w/.-])(?:src|tests|papers|scripts)/[\w./*<>{},-]+")
FUNCTION = re.compile(r"`(\w+)` in\s+`((?:src|tests|papers)/[\w/]+\.py)`")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
OTHERS = {"--strict"}  # options of other programs that pages name
ELSEWHERE = re.compile(r"\bseed 00\d|\bDESIGN\.md|\bINTERFACE\.md|\bSTYLE\.md|\bAUDIT\.md|\bPARAMETERS\.md")


def paths_in(text: str) -> set[str]:
    """The files and folders of the repository that a text names; a pattern such as `kinds/<kind>/*.py` counts too."""
    return {found.rstrip(".,") for found in PATH.findall(text)}


def exists(path: str) -> bool:
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    if "{" in pattern:
        head, _, rest = pattern.partition("{")
        names, _, tail = rest.partition("}")
        return all(exists(head + name + tail) for name in names.split(","))
    return any(True for _ in ROOT.glob(pattern))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_lines_are_no_wider_than_a_screen(page: Path) -> None:
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    rows = "|", "━"
    wide = [
        (number, len(line))
        for number, line in lines
        if len(line) > (WIDEST_ROW if line.startswith(rows) else WIDEST) and '"sql": ' not in line
    ]
    assert wide == []  # but for ops in JSON Lines, which are one line each


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    assert [path for path in sorted(paths_in(page.read_text(encoding="utf-8"))) if not exists(path)] == []


def test_a_file_that_is_not_there_is_found_out() -> None:
    text = "see `src/nearcast/engine/route.py`, src/nearcast/nowhere.py and `src/nearcast/kinds/<kind>/index.py`."
    assert [path for path in sorted(paths_in(text)) if not exists(path)] == ["src/nearcast/nowhere.py"]
    assert exists("src/nearcast/partitioning/{routers,balancers}/")
    assert not exists("src/nearcast/partitioning/{routers,nothing}/")


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_functions_that_a_page_names_are_in_their_files(page: Path) -> None:
    named = FUNCTION.findall(page.read_text(encoding="utf-8"))
    assert [(name, path) for name, path in named if not defines(path, name)] == []


def test_the_architecture_names_the_functions_of_the_path() -> None:
    assert len(FUNCTION.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))) >= 12
    assert not defines("src/nearcast/engine/route.py", "route_nothing")


def defines(path: str, name: str) -> bool:
    return bool(
        re.search(
            rf"^ *(?:(?:def|class) {name}\b|{name}(?:: .*)? = )",
            (ROOT / path).read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )


def test_the_architecture_has_the_packages_in_the_order_of_the_import_contract() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("| package under")[2].partition("\n\n")[0]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == layers


def code_in(page: Path) -> list[str]:
    """What a page has in backquotes, outside of its blocks."""
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return CODE.findall(text)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_commands_and_options_that_a_page_names_exist(page: Path) -> None:
    named, known = code_in(page), all_options() | OTHERS
    commands = [code for code in named if code.startswith(("nearcast ", "make ")) and "…" not in code]
    assert [wrong for code in commands if (wrong := complaint(code))] == []
    options = [re.split(r"[ =]", code)[0] for code in named if code.startswith("--") and len(code) > 2]
    assert [option for option in options if option not in known] == []


def test_a_command_or_option_that_does_not_exist_is_found_out() -> None:
    assert complaint("nearcast serve --port 1") == "there is no command serve"
    assert complaint("make coffee") == "the Makefile has no target coffee"
    assert "--retention" in all_options() and "--retain" not in all_options()


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_page_refers_to_what_is_not_in_the_repository(page: Path) -> None:
    assert ELSEWHERE.findall(page.read_text(encoding="utf-8")) == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_readme_has_ten_figures_each_with_its_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figures = text.partition("<!-- figures -->")[2].partition("<!-- /figures -->")[0]
    rows = [line for line in figures.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 10
    assert all("`nearcast " in row for row in rows)
