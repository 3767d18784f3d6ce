"""Errors that point at a word: the line, a caret under it, what was expected and the nearest valid spelling."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

from nearcast.common.errors import QueryError

_WIDEST_LINE = 120  # characters of the query's line that are shown around the word
_LONGEST_WORD = 40


class Span(NamedTuple):
    """The characters [start, end) of a query's text."""

    start: int
    end: int


def pointed(sql: str, span: Span, message: str, expected: str = "", meant: str = "") -> QueryError:
    """The error `message` about the characters `span` of `sql`.

    Lines and columns count from 1, columns in characters; the caret stands under the word where tabs, wide characters
    and emoji take the room they take on a terminal.
    """
    span = Span(max(0, span.start), span.end)
    before = sql[: span.start]
    number = before.count("\n") + 1
    first = before.rfind("\n") + 1
    last = sql.find("\n", span.start)
    last = len(sql) if last < 0 else last
    column = span.start - first + 1

    left = max(first, span.start - _WIDEST_LINE // 2) if last - first > _WIDEST_LINE else first
    right = min(last, left + _WIDEST_LINE)
    head, tail = "…" if left > first else "", "…" if right < last else ""
    line = head + _printable(sql[left:right].rstrip("\r")) + tail
    margin = " " * len(head) + _blank(sql[left : span.start])
    carets = "^" * max(1, len(_blank(_printable(sql[span.start : min(span.end, right)]).rstrip())))

    text = f"{message} (line {number}, column {column})\n  {line}\n  {margin}{carets}"
    hints = [f"expected {expected}"] if expected else []
    hints += [f"did you mean {meant}?"] if meant else []
    return QueryError(f"{text}\n{'; '.join(hints)}" if hints else text)


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The candidate spelled most like `word`, whatever its case, or nothing."""
    spelling = {candidate.casefold(): candidate for candidate in candidates}
    if word.casefold() in spelling:  # as mostly: looking for others takes longer than the rest of a short query
        return spelling[word.casefold()]
    if len(word) > _LONGEST_WORD:
        return ""
    found = get_close_matches(word.casefold(), spelling, n=1)
    return spelling[found[0]] if found else ""


def shown(word: str) -> str:
    """`word` as it can stand in a message: not too long, and on one line."""
    word = _printable(word)
    return word if len(word) <= _LONGEST_WORD else word[: _LONGEST_WORD - 1] + "…"


def either(words: Iterable[str]) -> str:
    """'a, b or c'."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _printable(text: str) -> str:
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") and c != "\t" else c for c in text)


def _blank(text: str) -> str:
    """White space as wide as `text` on a terminal."""
    return "".join("\t" if c == "\t" else " " * _width(c) for c in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
