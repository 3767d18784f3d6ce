"""What the registered kinds of question (`common.kinds`) bring to the language, looked up once."""

from functools import cache
from typing import TYPE_CHECKING

from nearcast.common.kinds import Kind, kind_named, kinds
from nearcast.common.queries import Query

if TYPE_CHECKING:
    from nearcast.language.roles import PostOrder, QueryRole, Refusal

REST = "range"  # the kind that takes every SELECT and every bulk row that no other asks for


@cache
def claiming_kinds() -> tuple[Kind, ...]:
    """The kinds that claim a SELECT, in the order of the registry."""
    return tuple(kind for kind in kinds() if kind.name != REST)


@cache
def _kind(name: str) -> Kind:
    return kind_named(name)


def rest() -> Kind:
    return _kind(REST)


def role_of(query: Query) -> "QueryRole":
    """The role of the kind whose question `query` is."""
    return _kind(query.kind).query


def code_of(query: Query) -> int:
    """The code of the kind whose question `query` is."""
    return _kind(query.kind).code


@cache
def functions() -> dict[str, str]:
    """The functions that a SELECT may have, by their names in lower case, as messages write them."""
    return {name: shown for kind in kinds() for name, shown in kind.query.functions.items()}


@cache
def group_functions() -> frozenset[str]:
    """Those of `functions` that are about groups: a HAVING can have a condition on them."""
    return frozenset(name for kind in kinds() if "HAVING" in kind.query.clauses for name in kind.query.functions)


@cache
def post_orders() -> dict[str, "PostOrder"]:
    """The functions by which posts can be ordered, by their names in capitals, sorted."""
    orders = (kind.query.order for kind in kinds())
    return {order.function: order for order in sorted(filter(None, orders), key=lambda order: order.function)}


@cache
def particular_clauses() -> dict[str, "Refusal"]:
    """Clauses that only some kinds have, and what to say where the SELECT of another kind has one."""
    return {word: refusal for kind in kinds() for word, refusal in kind.query.particular_clauses.items()}
