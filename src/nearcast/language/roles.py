"""The role `query` of a kind of question (`common.kinds`): all that is particular to it, from its text or its columns
to what travels to the workers.

A kind's module `query` has its question, a subclass of `common.queries.Query`, and an object `ROLE`, of a subclass of
`QueryRole`. What is the same for every kind (the grammar, the WHERE, FOR, regions, words) is the language's.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Query, Statement
from nearcast.language.bulk_columns import BulkColumns
from nearcast.language.encode import columns_text
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.standing_times import check_looks_ahead
from nearcast.language.syntax import Call, Select


class Refusal(NamedTuple):
    """What a message says of a clause that has no meaning, and what it expects instead."""

    message: str
    expected: str = ""


@dataclass(frozen=True)
class PostOrder:
    """A function of the ORDER BY that gives posts in an order of its own: DISTANCE, RELEVANCE."""

    function: str  # in capitals
    example: str  # in 'expected …'
    first: str  # which posts come first: "nearest"
    column: str = ""  # of the answer, worked out for it: the WHERE cannot ask for it
    ties: str = "id"


class QueryRole:
    """What a kind says of its question. The defaults suit a kind that is asked for by a function of its own, in the
    SELECT or in the ORDER BY, and that has nothing more to say; `meaning` has none.
    """

    functions: ClassVar[Mapping[str, str]] = {}
    """Its functions in a SELECT, by their names in lower case, as messages write them."""

    order: ClassVar[PostOrder | None] = None
    """Its function in an ORDER BY."""

    clauses: ClassVar[frozenset[str]] = frozenset()
    """What may follow the WHERE, beside FOR: GROUP, HAVING, ORDER, LIMIT, SYNC, WINDOW; and APPROXIMATE before."""

    refusals: ClassVar[Mapping[str, Refusal]] = {}
    """What to say of clauses that it does not have, if there is more to say than that."""

    particular_clauses: ClassVar[Mapping[str, Refusal]] = {}
    """What to say where the SELECT of another kind has a clause that only this one has."""

    identity: ClassVar[tuple[str, str] | None] = None
    """The two columns of numbers that, with `k`, tell its subscriptions apart; None: any of those in `op_schema`."""

    bulk_turn: ClassVar[int] = 0
    """When it is asked which rows of bulk columns are its own: a lower turn comes first, and takes what it claims."""

    bulk_place: ClassVar[bool] = False
    """Whether `lon` and `lat` of bulk columns are a place of its own, where they have no radius with them."""

    # -- text ----------------------------------------------------------------------------------------------------------

    def claims(self, select: Select) -> bool:
        """Whether a SELECT asks this question. Kinds are asked in turn; `range` takes what none of them claims."""
        calls = select.calls
        if calls:
            return any(call.name.text.lower() in self.functions for call in calls)
        return self.order is not None and orders_posts_by(select, self.order.function)

    def meaning(self, parsed: ParsedSelect) -> Query:
        """The question of a SELECT that it claims; QueryError, pointing at the word, where it has no meaning."""
        raise NotImplementedError

    # -- checks --------------------------------------------------------------------------------------------------------

    def check_search(self, statement: Statement) -> None:
        """Raises QueryError where its question makes no sense asked once, which looks back."""

    def check_subscription(self, statement: Statement) -> None:
        """Raises QueryError where its question makes no sense standing, which looks ahead."""
        check_looks_ahead(statement)

    def attributes(self, query: Any) -> set[str]:
        """The attributes that its answer depends on."""
        return {each.name for each in query.predicates}

    def check_numbers(self, statement: Statement, kinds: Mapping[str, Collection[str]]) -> None:
        """Raises QueryError where it asks for the numbers of an attribute that has none. `kinds` has those of the
        values of each attribute (`common.post_schema`).
        """

    # -- columns -------------------------------------------------------------------------------------------------------

    def window(self, query: Any) -> int | None:
        """The length of its window, in microseconds: before the clock for a search, sliding for a subscription."""
        return None

    def encode(self, query: Any) -> dict[str, Any]:
        """Its own values of `op_schema.QUERY_FIELDS`, beside the conditions and `asks`; others say nothing."""
        return {"columns": columns_text(getattr(query, "columns", None))}

    def bulk_rows(self, bulk: BulkColumns) -> np.ndarray | None:
        """Which of the subscriptions given as columns ask this question; None where no column is about it."""
        return None

    def encode_bulk(self, bulk: BulkColumns, rows: np.ndarray) -> dict[str, np.ndarray | pa.Array]:
        """As `encode`, of the subscriptions that `rows` is true of: columns of all, 0 or empty where it is false.

        Called where `bulk_rows` is not None; what makes no sense is refused with `bulk.refuse`.
        """
        return {}


def orders_posts_by(select: Select, function: str) -> bool:
    """Whether a SELECT asks for posts in the order of a function, whose name is in capitals."""
    order = next((clause for clause in select.clauses if clause.word == "ORDER"), None)
    if order is None or any(clause.word == "GROUP" for clause in select.clauses) or select.calls:
        return False
    operand = order.body[0].operand
    return isinstance(operand, Call) and operand.name.text.upper() == function
