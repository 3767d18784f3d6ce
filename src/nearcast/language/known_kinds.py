"""What the registered kinds of question (`common.kinds`) bring to the language, looked up once."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from nearcast.common.kinds import Kind, kinds
from nearcast.common.queries import Query

if TYPE_CHECKING:
    from nearcast.language.roles import PostOrder, QueryRole, Refusal

REST = "range"  # the kind that takes every SELECT and every bulk row that no other claims


@dataclass(frozen=True, eq=False)
class KnownKinds:
    """All kinds, in the order of the registry."""

    kinds: tuple[Kind, ...]

    @cached_property
    def by_name(self) -> dict[str, Kind]:
        """The kinds by their names; conditions alone, without a kind, are a question for the rest."""
        named = {kind.name: kind for kind in self.kinds}
        return named | {Query.kind: named[REST]}

    @cached_property
    def rest(self) -> Kind:
        return self.by_name[REST]

    @cached_property
    def claiming(self) -> tuple[Kind, ...]:
        """Those that claim what is theirs."""
        return tuple(kind for kind in self.kinds if kind.name != REST)

    @cached_property
    def functions(self) -> dict[str, str]:
        """The functions that a SELECT may have, by their names in lower case, as messages write them."""
        return {name: written for kind in self.kinds for name, written in kind.query.functions.items()}

    @cached_property
    def group_functions(self) -> frozenset[str]:
        """Those of `functions` that are about groups: a HAVING can have a condition on them."""
        return frozenset(name for kind in self.kinds if "HAVING" in kind.query.clauses for name in kind.query.functions)

    @cached_property
    def post_orders(self) -> dict[str, "PostOrder"]:
        """The functions by which posts can be ordered, by their names in capitals, sorted."""
        orders = filter(None, (kind.query.order for kind in self.kinds))
        return {order.function: order for order in sorted(orders, key=lambda order: order.function)}

    @cached_property
    def particular_clauses(self) -> dict[str, "Refusal"]:
        """Clauses that only some kinds have, and what to say where the SELECT of another kind has one."""
        return {word: refusal for kind in self.kinds for word, refusal in kind.query.particular_clauses.items()}


_known = KnownKinds(())


def known() -> KnownKinds:
    """The kinds that are registered."""
    global _known
    if _known.kinds is not kinds():
        _known = KnownKinds(kinds())
    return _known


def kind_of(query: Query) -> Kind:
    """The kind whose question `query` is."""
    return known().by_name[query.kind]


def role_of(query: Query) -> "QueryRole":
    """The role `query` of that kind."""
    return kind_of(query).query
