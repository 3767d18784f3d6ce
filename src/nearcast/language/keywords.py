"""The keyword expressions inside CONTAINS '…' and OVERLAPS '…'.

Plain words mean all of them (CONTAINS) or any of them (OVERLAPS). In CONTAINS, the capitals NOT, AND and OR bind in
that order, words side by side are joined by AND, brackets group, and double quotes make a phrase.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from nearcast.common.errors import QueryError
from nearcast.common.expressions import And, Expression, Not, Or, Phrase
from nearcast.language.messages import Span, pointed, shown
from nearcast.language.syntax import String

DEEPEST = 50  # brackets inside brackets; keeps every later walk over an expression shallow
MOST_WORDS = 10_000

_PIECE = re.compile(r'\s+|[()]|"[^"]*"?|[^\s()"]+')
_OPERATORS = ("AND", "OR", "NOT")
_Fail = Callable[..., QueryError]


class TextTokenizer(Protocol):
    """What this module needs of `nearcast.common.text.tokenizer.Tokenizer`."""

    def tokens(self, text: str) -> list[tuple[str, int]]: ...

    def __hash__(self) -> int: ...


def parse_contains(text: str, tokenizer: TextTokenizer) -> Expression:
    """The expression of a CONTAINS that stands alone, as in a column of bulk subscriptions."""
    return contains(text, String(text, (), Span(-1, len(text))), tokenizer)


def parse_overlaps(text: str, tokenizer: TextTokenizer) -> Expression:
    """The same of an OVERLAPS."""
    return overlaps(text, String(text, (), Span(-1, len(text))), tokenizer)


def contains(sql: str, string: String, tokenizer: TextTokenizer) -> Expression:
    """What CONTAINS `string` means; errors point into `sql`."""
    frames, words = [_Group()], _Words(sql, string, tokenizer)
    for piece, start, end in _pieces(string.text):
        group = frames[-1]
        fail = words.failure(start, end)
        if piece == "(":
            if len(frames) > DEEPEST:
                raise fail(f"brackets nest more than {DEEPEST} deep", "fewer brackets")
            frames.append(_Group(opened=(start, end)))
        elif piece == ")":
            if len(frames) == 1:
                raise fail("this bracket was never opened")
            _end(group, fail, words)
            frames.pop()
            frames[-1].add(group.expression())
        elif piece in _OPERATORS:
            group.operator(piece, (start, end), fail)
        else:
            group.add(words.expression(piece, start, end))
    if len(frames) > 1:
        raise words.failure(*frames[-1].opened)("this bracket is never closed", "')'")
    _end(frames[0], words.failure(0, 0), words)
    return frames[0].expression()


def overlaps(sql: str, string: String, tokenizer: TextTokenizer) -> Expression:
    """What OVERLAPS `string` means."""
    words = _Words(sql, string, tokenizer)
    parts: dict[Expression, None] = {}
    for piece, start, end in _pieces(string.text):
        if piece in _OPERATORS or piece in "()":
            raise words.failure(start, end)(f"OVERLAPS takes plain words; for {piece} use CONTAINS", "a word")
        parts[words.expression(piece, start, end)] = None
    if not parts:
        raise words.failure(0, 0)("there is no word in it", "a word")
    return _one(Or, list(parts))


@dataclass
class _Group:
    """What has been read of one pair of brackets: alternatives, each a list of parts that are joined by AND."""

    opened: tuple[int, int] = (0, 0)
    alternatives: list[list[Expression]] = field(default_factory=lambda: [[]])
    negated: bool = False
    pending: tuple[str, int, int] | None = None  # the operator that still waits for a word

    def add(self, part: Expression) -> None:
        if self.negated:
            part = part.part if isinstance(part, Not) else Not(part)
        self.alternatives[-1].extend(part.parts if isinstance(part, And) else (part,))
        self.negated, self.pending = False, None

    def operator(self, word: str, span: tuple[int, int], fail: _Fail) -> None:
        if word == "NOT":
            self.negated = not self.negated
        elif self.pending or not self.alternatives[-1]:
            raise fail(f"{word} needs a word before it", "a word, a phrase, '(' or NOT")
        elif word == "OR":
            self.alternatives.append([])
        self.pending = (word, *span)

    def expression(self) -> Expression:
        parts = (_one(And, parts) for parts in self.alternatives)
        return _one(Or, [each for part in parts for each in (part.parts if isinstance(part, Or) else (part,))])


def _end(group: _Group, fail: _Fail, words: "_Words") -> None:
    if group.pending:
        word, *span = group.pending
        raise words.failure(*span)(f"{word} needs a word after it", "a word, a phrase or '('")
    if not group.alternatives[-1]:
        raise fail("there is no word in it", "a word")


class _Words:
    """Turns the words and phrases of one string into literals, and counts them."""

    def __init__(self, sql: str, string: String, tokenizer: TextTokenizer) -> None:
        self._sql, self._string, self._tokenizer, self._count = sql, string, tokenizer, 0

    def failure(self, start: int, end: int) -> _Fail:
        """How to complain about the characters [start, end) of the string; of none, about the whole string."""
        span = self._string.within(start, end) if end > start else self._string.span
        return lambda message, expected="": pointed(self._sql, span, message, expected)

    def expression(self, piece: str, start: int, end: int) -> Expression:
        fail = self.failure(start, end)
        quoted = piece.startswith('"')
        if quoted and (len(piece) < 2 or not piece.endswith('"')):
            raise self.failure(start, start + 1)('this phrase has no closing "', 'a phrase as in "flash flood"')
        tokens = self._tokenizer.tokens(piece.strip('"'))
        self._count += max(1, len(tokens))
        if self._count > MOST_WORDS:
            raise fail(f"an expression has at most {MOST_WORDS:,} words", "fewer words")
        if not tokens:
            raise fail(f"there is no word in {shown(piece)}", "letters or digits")
        return _literal(tokens)


def _literal(tokens: list[tuple[str, int]]) -> Expression:
    """The words in a row, and each tag; a tag by itself is its own term alone, which says all that its words say."""
    row = [token for token in tokens if token[0][0] not in "#@"]
    tags = [token for token in tokens if token[0][0] in "#@"]
    if "".join(word for word, _ in row) == "".join(tag[1:] for tag, _ in tags):
        row = []
    phrases = [_phrase(row)] if row else []
    return _one(And, [*phrases, *(_phrase([tag]) for tag in tags)])


def _phrase(tokens: list[tuple[str, int]]) -> Phrase:
    return Phrase(tuple(term for _, term in tokens), tuple(word for word, _ in tokens))


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _PIECE.finditer(text):
        if not match[0].isspace():
            yield match[0], match.start(), match.end()


def _one(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
