"""What a kind of question must say of its text and of its columns: the role `query` of a kind (`common.kinds`)."""

from collections.abc import Mapping
from typing import Any, Protocol

from nearcast.common.geo.shapes import Region
from nearcast.common.queries import Query, Statement
from nearcast.language.keywords import Tokenizer
from nearcast.language.syntax import Clause, Select


class QueryRole(Protocol):
    """The object `ROLE` of a kind's module `query`."""

    def claims(self, sql: str, select: Select, clauses: Mapping[str, Clause]) -> bool:
        """Whether a SELECT asks this kind of question. The kinds are asked in turn, `range` last: it takes the rest."""
        ...

    def meaning(
        self, sql: str, select: Select, clauses: Mapping[str, Clause], where: Mapping[str, Any], tokenizer: Tokenizer
    ) -> Query:
        """The question of a SELECT that it claims; `where` is what its WHERE and FOR say, by the fields of `Query`."""
        ...

    def check_search(self, statement: Statement) -> None:
        """Raises QueryError where its question makes no sense asked once."""
        ...

    def check_subscription(self, statement: Statement) -> None:
        """Raises QueryError where its question makes no sense standing."""
        ...

    def encode(self, query: Any) -> dict[str, Any]:
        """The values of QUERY_FIELDS that are its own, of a subscription."""
        ...


Regions = Mapping[str, Region]
