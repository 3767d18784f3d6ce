"""What makes no sense in a search, in a subscription, or where no post has such attributes."""

from collections.abc import Collection, Mapping
from datetime import datetime

from nearcast.common.errors import QueryError
from nearcast.common.queries import Scalar, Statement
from nearcast.language.known_kinds import role_of
from nearcast.language.locate import clause_span, error_at, names, read_again
from nearcast.language.messages import nearest, pointed, shown
from nearcast.language.syntax import Condition

_SHOWN = 8  # names of attributes in a message


def check_subscription(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a subscription, which looks ahead."""
    role_of(statement.query).check_subscription(statement)


def check_search(statement: Statement) -> None:
    """Raises QueryError where `statement` makes no sense as a search, which looks back.

    SYNC makes sense: the same text asked once is the report of this moment.
    """
    if statement.query.life is not None:
        message = "a search looks back and is answered once; FOR is for subscriptions"
        span = clause_span(statement.sql, "FOR")
        raise error_at(statement, span, message, "time AFTER '72 hours ago', or nothing")
    role_of(statement.query).check_search(statement)


def check_attributes(statement: Statement, known: Collection[str]) -> None:
    """Raises QueryError where the WHERE or an aggregate uses an attribute that is not among `known`, pointing at the
    first. The columns of a SELECT of posts are not looked at: they are null where a post has none.
    """
    unknown = role_of(statement.query).attributes(statement.query) - set(known)
    if not unknown:
        return
    name = next((name for name in names(read_again(statement.sql)) if name.text in unknown), None)
    word = name.text if name else min(unknown)
    near = sorted(known)[:_SHOWN]
    more = f" and {len(known) - len(near)} more" if len(known) > len(near) else ""
    expected = f"an attribute's name ({', '.join(near)}{more})" if near else "an attribute that posts have"
    message = f"no post has an attribute {shown(word)}"
    if name is None:
        raise QueryError(message)
    raise pointed(statement.sql, name.span, message, expected, nearest(word, known))


def check_numbers(statement: Statement, kinds: Mapping[str, Collection[str]]) -> None:
    """Raises QueryError where an aggregate of numbers is of an attribute that has none, pointing at it. `kinds` has
    those of the values of each attribute (`common.post_schema`).
    """
    role_of(statement.query).check_numbers(statement, kinds)


def check_kinds(statement: Statement, kinds: Mapping[str, Collection[str]]) -> None:
    """Raises QueryError where the WHERE compares an attribute of `kinds` with a value that none of its own is ever
    compared with (an hour, which is a time, with 8), pointing at it: such a condition is true of no post.
    """
    for number, predicate in enumerate(statement.query.predicates):
        have = set(kinds.get(predicate.name, ""))
        odd = [at for at, value in enumerate(predicate.values) if not have & _compared_with(value)]
        if not have or not odd or (predicate.op in ("in", "not_in") and len(odd) < len(predicate.values)):
            continue
        what, example = _KINDS["t" if "t" in have else "s" if have <= {"s", "j"} else "i"]
        select = read_again(statement.sql)
        tests = [each for each in (select.where if select else ()) if isinstance(each, Condition)]
        span = tests[number].values[odd[0]].span if tests else None
        raise error_at(statement, span, f"{predicate.name} is {what}, and is not compared with this", example)


_KINDS = {
    "t": ("a time", "a time such as '2026-05-01T08:00'"),
    "i": ("a number", "a number"),
    "s": ("a string", "a string in quotes"),
}


def _compared_with(value: Scalar) -> set[str]:
    """The kinds of attributes (`common.post_schema`) whose values a literal is compared with."""
    if isinstance(value, bool):
        return {"b"}
    if not isinstance(value, str):
        return {"i", "f"}
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return {"s", "j"}
    return {"s", "j", "t"}
