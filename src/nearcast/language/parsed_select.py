"""A SELECT that has been read, and what giving it a meaning takes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Region
from nearcast.language.keywords import TextTokenizer
from nearcast.language.messages import Span, pointed
from nearcast.language.syntax import Argument, Clause, Number, Order, Select, span_of
from nearcast.language.times import duration
from nearcast.language.where import conditions


@dataclass(frozen=True)
class ParsedSelect:
    """`clauses` is what follows the WHERE, by its first word, and APPROXIMATE; `regions` are those that have a name."""

    sql: str
    select: Select
    clauses: Mapping[str, Clause]
    tokenizer: TextTokenizer
    regions: Mapping[str, Region]

    def where(self) -> dict[str, Any]:
        """What the WHERE and FOR say, by the fields of `common.queries.Query`."""
        return vars(conditions(self.sql, self.select, self.tokenizer, self.regions))

    def body(self, word: str) -> tuple[Any, ...]:
        """The nodes of a clause; none where there is no such clause."""
        clause = self.clauses.get(word)
        return clause.body if clause else ()

    def order(self) -> Order | None:
        """The first of the ORDER BY."""
        return next(iter(self.body("ORDER")), None)

    def limit(self, what: str) -> int | None:
        """The LIMIT, of rows that are called `what`; None where there is none."""
        number = next(iter(self.body("LIMIT")), None)
        return whole(self.sql, number, f"LIMIT takes a whole number of {what}", least=0) if number else None

    def sync(self) -> int | None:
        """The length of time between two reports (SYNC), in microseconds; None where there is none."""
        quantity = next(iter(self.body("SYNC")), None)
        return duration(self.sql, quantity) if quantity else None

    def error(self, span: Span, message: str, expected: str = "", meant: str = "") -> QueryError:
        """An error that points at `span`."""
        return pointed(self.sql, span, message, expected, meant)


def whole(sql: str, node: Argument, message: str, least: int = 1) -> int:
    """A whole number that is not below `least`, 0 or 1."""
    if isinstance(node, Number) and re.fullmatch(r"\+?[0-9]{1,18}", node.text) and int(node.text) >= least:
        return int(node.text)
    raise pointed(sql, span_of(node), message, f"a whole number from {least} up")
