"""From a query's text to its meaning: which kind of question it asks; that kind says what it means."""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Region
from nearcast.common.kinds import Kind
from nearcast.common.queries import Statement
from nearcast.language.grammar import PLAIN_WORDS
from nearcast.language.keywords import TextTokenizer
from nearcast.language.known_kinds import KnownKinds, known
from nearcast.language.messages import either, nearest, pointed, shown
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.roles import QueryRole, Refusal
from nearcast.language.syntax import Clause, Condition, Inside, Name, Select, read_select
from nearcast.language.templates import read_template

_SHORT = 2_000  # characters, of texts that are remembered
_REMEMBERED = 4_096  # texts


def parse(sql: str, tokenizer: TextTokenizer, regions: Mapping[str, Region] | None = None) -> Statement:
    """What `sql` means; its words are cut by `tokenizer`, and `regions` are those that have been given a name.

    Raises QueryError, whose message points at the word, for anything that has no meaning or none yet.
    """
    named = {} if regions is None else regions
    found = _lasting(sql, tokenizer, known()) if len(sql) <= _SHORT else None
    if found is not None:
        return found
    quick = read_template(sql)
    if quick is not None:
        with suppress(QueryError):  # it is found again below, with the place where it stands
            return _meaning(sql, quick, tokenizer, named)
    return _meaning(sql, read_select(sql), tokenizer, named)


@lru_cache(maxsize=_REMEMBERED)
def _lasting(sql: str, tokenizer: TextTokenizer, kinds: KnownKinds) -> Statement | None:
    """What `sql` means to these `kinds` whatever has a name, for as long as it is asked again; None where it is a
    mistake, or names a region.
    """
    quick = read_template(sql)
    if quick is None or any(isinstance(each, Inside) and isinstance(each.region, Name) for each in quick.where):
        return None
    with suppress(QueryError):
        return _meaning(sql, quick, tokenizer, {})
    return None


def _meaning(sql: str, select: Select, tokenizer: TextTokenizer, regions: Mapping[str, Region]) -> Statement:
    for call in select.calls:
        check_function(sql, call.name)
    role = _kind_asked(select).query
    parsed = ParsedSelect(sql, select, _clauses(sql, select), tokenizer, regions)
    _check_clauses(parsed, role)
    _check_computed(parsed, role)
    return Statement(role.meaning(parsed), select.explain, sql)


def check_function(sql: str, name: Name) -> None:
    """Raises QueryError where no kind has a function of that name in its SELECT."""
    functions = known().functions
    if name.text.lower() not in functions:
        expected = f"a column, {either(functions.values())}"
        meant = nearest(name.text, functions.values())
        raise pointed(sql, name.span, f"there is no function {shown(name.text)}", expected, meant)


def _kind_asked(select: Select) -> Kind:
    """The kind of question that a SELECT asks."""
    for kind in known().claiming:
        if kind.query.claims(select):
            return kind
    return known().rest


def _clauses(sql: str, select: Select) -> dict[str, Clause]:
    """What follows the WHERE, by its word, nothing twice; and APPROXIMATE, which stands before it."""
    clauses: dict[str, Clause] = {}
    if select.approximate:
        clauses["APPROXIMATE"] = Clause("APPROXIMATE", select.approximate, ())
    for clause in select.clauses:
        word = clause.word
        if word in clauses:
            raise pointed(sql, clause.span, f"{word} is given twice", f"one {word}")
        clauses[word] = clause
    return clauses


def _check_clauses(parsed: ParsedSelect, role: QueryRole) -> None:
    """Raises QueryError where there is a clause that has no meaning for a kind."""
    for word, clause in parsed.clauses.items():
        if word != "FOR" and word not in role.clauses:
            unknown = Refusal(f"{PLAIN_WORDS.get(word, word)} has no meaning in this question")
            raise parsed.error(clause.span, *role.refusals.get(word, known().particular_clauses.get(word, unknown)))


def _check_computed(parsed: ParsedSelect, role: QueryRole) -> None:
    """What an answer is ordered by is worked out for the posts that meet the WHERE, so the WHERE cannot ask for it."""
    column = role.order.column if role.order else ""
    if not column:
        return
    for condition in parsed.select.where:
        if isinstance(condition, Condition) and not condition.name.quoted and condition.name.text.lower() == column:
            message = f"{column} is worked out for the answer, and the WHERE is about the post itself"
            expected = f"an attribute's name, `{column}` in backticks if posts have one of this name"
            raise parsed.error(condition.name.span, message, expected)
