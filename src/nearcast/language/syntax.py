"""What a query text says, before what it means: nodes that remember where they stand in the text."""

import os
import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken

from nearcast.common.errors import QueryError
from nearcast.language.grammar import GRAMMAR, KEYWORDS, PLAIN_WORDS, RESERVED, STRING
from nearcast.language.known_kinds import known
from nearcast.language.messages import Span, either, nearest, pointed, shown

LONGEST = 200_000  # a second or two of parsing
_UNCOUNTED = re.compile(rf"{STRING}|\s+|--[^\n]*")


@dataclass(frozen=True)
class Name:
    text: str
    quoted: bool  # in backticks: taken as it is, never as a word of the language
    span: Span


@dataclass(frozen=True)
class Number:
    text: str
    span: Span

    @property
    def value(self) -> float:
        return float(self.text)


@dataclass(frozen=True)
class Quantity:
    number: Number
    unit: Name


@dataclass(frozen=True)
class String:
    """A string without its quotes; `doubled` holds the places in `text` of quotes that were written twice."""

    text: str
    doubled: tuple[int, ...]
    span: Span

    def within(self, start: int, end: int) -> Span:
        """Where the characters [start, end) of `text` stand in the query."""
        first = self.span.start + 1
        return Span(first + start + bisect_left(self.doubled, start), first + end + bisect_left(self.doubled, end))


@dataclass(frozen=True)
class Constant:
    text: str  # TRUE, FALSE or NULL
    span: Span


@dataclass(frozen=True)
class Star:
    span: Span


@dataclass(frozen=True)
class Call:
    name: Name
    arguments: tuple["Argument", ...]


Operand = Call | Name
Argument = Call | Name | Star | Number | Quantity | String


@dataclass(frozen=True)
class Item:
    operand: Operand
    alias: Name | None


@dataclass(frozen=True)
class Inside:
    span: Span
    region: Operand


@dataclass(frozen=True)
class TextCondition:
    operator: str  # CONTAINS or OVERLAPS
    string: String


@dataclass(frozen=True)
class During:
    """`time AFTER a` (one moment) or `time BETWEEN a AND b` (two)."""

    span: Span
    moments: tuple[String | Number, ...]


@dataclass(frozen=True)
class Condition:
    """A condition on an attribute; `operator` as in `common.queries.Predicate`."""

    name: Name
    operator: str
    values: tuple[Number | String | Constant, ...] = ()


@dataclass(frozen=True)
class Test:
    """A condition on groups, of the HAVING; `operator` is one of = <> < <= > >=."""

    operand: Operand
    operator: str
    value: Number | String | Constant


@dataclass(frozen=True)
class Order:
    operand: Operand
    descending: bool
    direction: Span | None = None  # of ASC or DESC


@dataclass(frozen=True)
class Clause:
    """What follows the WHERE: `word` is LIMIT, FOR, ORDER, GROUP, HAVING, SYNC or WINDOW."""

    word: str
    span: Span
    body: tuple[Any, ...]


@dataclass(frozen=True)
class Select:
    explain: bool
    approximate: Span | None  # of the word
    items: tuple[Item, ...] | None  # None for *
    where: tuple[Inside | TextCondition | During | Condition, ...]
    clauses: tuple[Clause, ...]

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The functions among the items."""
        return tuple(item.operand for item in self.items or () if isinstance(item.operand, Call))


def read_select(sql: str) -> Select:
    """The SELECT that `sql` is; QueryError where it does not follow the grammar."""
    node = _read(sql, "start")
    assert isinstance(node, Select)
    return node


def read_region(text: str) -> Operand:
    """The region that `text` is, `RECT(…)` or a name."""
    node = _read(text, "region")
    assert isinstance(node, Call | Name)
    return node


def span_of(node: Argument) -> Span:
    """The characters an argument stands on; a call's are those of its name."""
    match node:
        case Call(name=name):
            return name.span
        case Quantity(number=number, unit=unit):
            return Span(number.span.start, unit.span.end)
        case _:
            return node.span


def _read(text: str, start: Literal["start", "region"]) -> object:
    try:
        text.encode()
    except UnicodeEncodeError as broken:
        raise pointed(text, Span(broken.start, broken.end), "this is half a character (a lone surrogate)") from None
    if len(text) > LONGEST and len(_UNCOUNTED.sub("", text)) > LONGEST:
        message = f"a query has at most {LONGEST:,} characters outside its strings"
        raise pointed(text, Span(0, 1), message, "a shorter query, or several")
    try:
        return _parser().parse(text, start=start)
    except UnexpectedInput as problem:
        raise _explained(text, problem) from None


@cache
def _parser() -> Lark:
    return Lark(
        GRAMMAR, parser="lalr", lexer="contextual", start=["start", "region"], transformer=_Nodes(), cache=_tables()
    )


def _tables() -> str | bool:
    """Where the parser's tables are kept, beside the compiled kernels; making them takes most of a second."""
    folder = os.environ.get("NUMBA_CACHE_DIR", "")
    return os.path.join(folder, "grammar") if os.path.isdir(folder) and os.access(folder, os.W_OK) else False


def _explained(sql: str, problem: UnexpectedInput) -> QueryError:
    accepted: set[str] = problem.interactive_parser.accepts()
    expected = _plain(accepted)
    if isinstance(problem, UnexpectedToken) and problem.token.type == "$END":
        end = problem.token.end_pos or 0
        return pointed(sql, Span(end, end + 1), "the query ends too early" if end else "the query is empty", expected)
    start = problem.pos_in_stream or 0
    if isinstance(problem, UnexpectedToken):
        word = str(problem.token)
    elif sql[start] in "'\"`":
        return pointed(sql, Span(start, start + 1), f"the string that begins here has no closing {sql[start]}")
    else:
        word = re.compile(r"\w+|.", re.DOTALL).match(sql, start)[0]  # type: ignore[index]
    span, upper = Span(start, start + len(word)), word.upper()
    if error := _about_the_word_before(sql, start, accepted):
        return error
    if upper == "OR" and "AND" in accepted:
        return pointed(sql, span, "conditions are joined by AND; OR works inside CONTAINS '…'", "AND")
    if upper in ("NOT", "(") and "LOC" in accepted:
        return pointed(sql, span, "conditions are joined by AND, without brackets or NOT around them", expected)
    if word.isidentifier() and "STRING" in accepted and "NAME" not in accepted:
        return pointed(sql, span, f"{shown(word)} should be a value; words go in quotes", expected)
    if upper in RESERVED and "QUOTED" in accepted:
        expected += f" (a name that is also a word of the language goes in backticks: `{word}`)"
    meant = nearest(word, [PLAIN_WORDS[name] for name in accepted if name in KEYWORDS & PLAIN_WORDS.keys()])
    return pointed(sql, span, f"{shown(word)} does not belong here", expected, meant)


def _about_the_word_before(sql: str, start: int, accepted: set[str]) -> QueryError | None:
    """Where a word was taken for a name, what comes after it is not what is wrong."""
    before = re.compile(r"(\w+)\s*$").search(sql, max(0, start - 100), start)
    if before is None:
        return None
    word, span = before[1], Span(*before.span(1))
    if word.upper() == "DISTINCT" and "NAME" not in accepted:
        return pointed(sql, span, "DISTINCT is not offered", "GROUP BY, which gives each value of an attribute once")
    if sql[start] == "(" and "COMPARISON" in accepted and word.lower() in known().group_functions:
        message = "a condition on an aggregate is one on groups, not on posts"
        return pointed(sql, span, message, f"HAVING {word}(…) after the GROUP BY")
    if "FROM" in accepted and nearest(word, ["APPROXIMATE"]):
        return pointed(sql, span, f"{shown(word)} does not belong here", meant="APPROXIMATE")
    return None


def _plain(terminals: set[str]) -> str:
    return either([words for name, words in PLAIN_WORDS.items() if name in terminals] or ["something else"])


def unquoted(written: str, span: Span) -> String:
    """The string that stands in quotes at a place."""
    quote, text = written[0], written[1:-1]
    doubled: list[int] = []
    at = text.find(quote)
    while at >= 0:
        doubled.append(at - len(doubled))
        at = text.find(quote, at + 2)
    return String(text.replace(quote * 2, quote), tuple(doubled), span)


def _span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


@v_args(inline=True)
class _Nodes(Transformer[Token, Any]):
    """Builds the nodes while parsing, so that no tree is walked and depth costs no stack."""

    def start(self, explain: Token | None, *rest: Any) -> Select:
        _select, approximate, items, _from, _stream, where, *clauses = rest
        span = _span(approximate) if approximate else None
        return Select(explain is not None, span, items, where or (), tuple(clauses))

    def everything(self) -> None:
        return None

    def items(self, *items: Item) -> tuple[Item, ...]:
        return items

    def item(self, operand: Operand, _as: Token | None, alias: Name | None) -> Item:
        return Item(operand, alias)

    def call(self, name: Token, *arguments: Argument | None) -> Call:
        return Call(self.name(name), tuple(argument for argument in arguments if argument is not None))

    shape = call

    def name(self, token: Token) -> Name:
        quoted = token.type == "QUOTED"
        return Name(token[1:-1] if quoted else str(token), quoted, _span(token))

    attribute = region_name = name

    def star(self, token: Token) -> Star:
        return Star(_span(token))

    def number(self, token: Token) -> Number:
        return Number(str(token), _span(token))

    def quantity(self, number: Token, unit: Token) -> Quantity:
        return Quantity(self.number(number), self.name(unit))

    def string(self, token: Token) -> String:
        return unquoted(token, _span(token))

    def constant(self, token: Token) -> Constant:
        return Constant(token.upper(), _span(token))

    def where(self, _where: Token, *predicates: Any) -> tuple[Any, ...]:
        return tuple(each for each in predicates if not isinstance(each, Token))

    def inside(self, loc: Token, inside: Token, region: Operand) -> Inside:
        return Inside(Span(_span(loc).start, _span(inside).end), region)

    def words(self, _text: Token, operator: Token, string: String) -> TextCondition:
        return TextCondition(operator.upper(), string)

    def after(self, time: Token, after: Token, moment: Any) -> During:
        return During(Span(_span(time).start, _span(after).end), (moment,))

    def during(self, time: Token, between: Token, first: Any, _and: Token, last: Any) -> During:
        return During(Span(_span(time).start, _span(between).end), (first, last))

    def comparison(self, name: Name, operator: Token, value: Any) -> Condition:
        return Condition(name, "<>" if operator == "!=" else str(operator), (value,))

    def between(self, name: Name, _between: Token, first: Any, _and: Token, last: Any) -> Condition:
        return Condition(name, "between", (first, last))

    def in_(self, name: Name, _in: Token, *values: Any) -> Condition:
        return Condition(name, "in", values)

    def not_in(self, name: Name, _not: Token, _in: Token, *values: Any) -> Condition:
        return Condition(name, "not_in", values)

    def is_null(self, name: Name, *_words: Token) -> Condition:
        return Condition(name, "is_null")

    def is_not_null(self, name: Name, *_words: Token) -> Condition:
        return Condition(name, "is_not_null")

    def order(self, operand: Operand, direction: Token | None) -> Order:
        descending = direction is not None and direction.type == "DESC"
        return Order(operand, descending, _span(direction) if direction else None)

    def condition(self, operand: Operand, operator: Token, value: Any) -> Test:
        return Test(operand, "<>" if operator == "!=" else str(operator), value)

    def _clause(self, word: Token, *body: Any) -> Clause:
        return Clause(word.type, _span(word), tuple(each for each in body if not isinstance(each, Token)))

    limit = life = order_by = group_by = having = sync = window = _clause
