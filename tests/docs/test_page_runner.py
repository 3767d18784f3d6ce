"""The runner of pages: what it takes for a block, a command, a match, and what it refuses."""

from pathlib import Path

import pytest

from tests.docs.commands import commands, complaint, plain_nearcast
from tests.docs.markdown import after, blocks
from tests.docs.page_runner import Page, PageError, compare, statements


def page(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_blocks_have_a_language_a_line_and_the_directives_above_them() -> None:
    text = page("a", "<!-- exits with 2 -->", "```bash", "ls", "```", "", "* b", "", "  ```text", "  c", "  ```")
    one, other = blocks(text)
    assert (one.language, one.text, one.line, one.directives) == ("bash", "ls", 3, {"exits with": "2"})
    assert (other.language, other.text, other.directives) == ("text", "c", {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (page("```", "x", "```"), "a block of no language"),
        (page("```ruby", "x", "```"), "a block of ruby"),
        (page("<!-- no run: long -->", "```bash", "x", "```"), "there is no directive 'no run'"),
        (page("```bash", "x"), "this block has no end"),
    ],
)
def test_what_would_be_passed_over_in_silence_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        blocks(text)


def test_a_page_names_the_one_it_goes_on_from() -> None:
    assert after("# A\n\n<!-- after: tutorial.md -->\n") == "tutorial.md"
    assert after("# A\n") is None


def test_commands_are_lines_that_belong_together() -> None:
    text = page("# first", "cat > a <<'EOF'", "one", "EOF", "nearcast search \\", '  "SELECT', '*"  # all', "", "ls")
    assert list(commands(text)) == [
        "cat > a <<'EOF'\none\nEOF",
        'nearcast search \\\n  "SELECT\n*"  # all',
        "ls",
    ]


def test_a_plain_command_needs_no_shell() -> None:
    assert plain_nearcast("nearcast search --state s \"a < 'b'\"  # why") == ["search", "--state", "s", "a < 'b'"]
    for command in (
        "nearcast search > x",
        "nearcast run --state s",
        "ls",
        "nearcast status | head -3",
        'nearcast "$a"',
    ):
        assert plain_nearcast(command) is None


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("make demo", None),
        ("make dmo", "the Makefile has no target dmo"),
        ("nearcast run --state s --posts p", None),
        ("nearcast run --sate s", "run has no option --sate"),
        ("nearcast region add --state s A B", None),
        ("nearcast bench pubsub --parts kernel", None),
        ("nearcast bench pubsub --part kernel", "bench has no option --part"),
        ("nearcst run", "'nearcst' is no command"),
        ("git clone x && make dmo", "the Makefile has no target dmo"),
    ],
)
def test_a_command_that_is_not_run_is_checked(command: str, message: str | None) -> None:
    assert (complaint(command) or "").startswith(message or "")
    assert (complaint(command) is None) == (message is None)


def test_output_is_compared_but_for_dots_and_white_space() -> None:
    compare("a   b\n…\nin … s", "a b\nx\ny\nin 3.2 s\n")
    compare("a\n…", "a\n")
    for shown in ("a", "a\nb", "a b\nin … m"):
        with pytest.raises(AssertionError, match="the page shows"):
            compare(shown, "a b\nin 3.2 s\n")


def test_statements_end_with_a_semicolon_or_an_empty_line() -> None:
    assert statements("-- all\n\nSELECT 1;  -- x\nSELECT\n 2\n\nSELECT ';' -- y") == [
        "SELECT 1",
        "SELECT\n 2",
        "SELECT ';' -- y",
    ]


@pytest.mark.parametrize(
    "text",
    [
        page("```bash", "exit 3", "```"),
        page("```bash", "nearcast status --state nowhere", "```"),
        page("```python", "1 / 0", "```"),
        page("```bash", "echo a", "```", "```output", "b", "```"),
        page("```sql", "SELECT * FORM stream", "```"),
        page("```json", '{"a": }', "```"),
        page("<!-- not run: long -->", "```bash", "make nothing", "```"),
        page("<!-- not run -->", "```bash", "make test", "```"),
        page("<!-- as in: docs/quickstart.md -->", "```bash", "echo no", "```"),
    ],
)
def test_a_page_whose_block_fails_fails(text: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match="line "):
        Page(tmp_path).run(blocks(text))


def test_a_page_runs_python_and_commands_with_what_came_before(tmp_path: Path) -> None:
    text = page(
        "<!-- file: mine.py -->", "```python", "N = 3", "```",
        "```python", "import mine", "n = mine.N", "```",
        "```python", "print(n + 1)", "```",
        "```output", "4", "```",
        "<!-- exits with 2 -->", "```bash", "nearcast status --state nowhere", "```",
        "```output", "nearcast: nowhere does not exist…", "```",
        "<!-- run as: echo yes -->", "```bash", "pip install x", "```",
        "```output", "yes", "```",
    )  # fmt: skip
    Page(tmp_path).run(blocks(text))
