"""The fenced blocks of a page, and what the comments above them say about running them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("bash", "sql", "python", "json", "toml", "output", "text")
DIRECTIVES = ("as in", "not run", "run as", "exits with", "in the checkout", "file", "search", "subscribe")

_FENCE = re.compile(r"^( *)(`{3,})(\S*)\s*$")
_COMMENT = re.compile(r"^ *<!-- (.*?)(?:: (.*?))? -->$")
_AFTER = re.compile(r"^<!-- after: (\S+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line of its fence, and its directives (name → value)."""

    language: str
    text: str
    line: int
    directives: dict[str, str] = field(default_factory=dict)


def pages() -> list[Path]:
    """All pages that people read."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def after(text: str) -> str | None:
    """The page whose directory a page goes on in (`<!-- after: PAGE -->`), if it does."""
    found = _AFTER.search(text)
    return found[1] if found else None


def blocks(text: str) -> list[Block]:
    """The blocks of a page in order. ValueError where a language or a directive is unknown, or a fence stays open."""
    found: list[Block] = []
    opened: tuple[int, str, str, int] | None = None
    lines = text.splitlines()
    begin: list[str] = []
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, begin = (len(fence[1]), fence[2], fence[3], number), []
        elif opened is not None and fence and fence[2] == opened[1] and not fence[3]:
            indent, _, language, at = opened
            if language not in LANGUAGES:
                raise ValueError(f"line {at + 1}: a block of {language or 'no language'}; give one of {LANGUAGES}")
            body = "\n".join(each[indent:] for each in begin)
            found.append(Block(language, body, at + 1, _directives(lines[:at])))
            opened = None
        elif opened is not None:
            begin.append(line)
    if opened is not None:
        raise ValueError(f"line {opened[3] + 1}: this block has no end")
    return found


def _directives(before: list[str]) -> dict[str, str]:
    """The comments right above a fence, from the nearest up."""
    found: dict[str, str] = {}
    for number in range(len(before), 0, -1):
        comment = _COMMENT.match(before[number - 1])
        if comment is None or comment[1] in ("figures", "/figures"):
            break
        name, value = comment[1], comment[2]
        if value is None and name.startswith("exits with "):
            name, value = "exits with", name.removeprefix("exits with ")
        if name not in DIRECTIVES:
            raise ValueError(f"line {number}: there is no directive {name!r}; there are {DIRECTIVES}")
        found[name] = value or ""
    return found
