"""The question for posts that lie far apart."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Query, Statement
from nearcast.language.bulk_columns import BulkColumns
from nearcast.language.encode import columns_text
from nearcast.language.locate import error_at, function_span
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.places import kilometres
from nearcast.language.post_select import number_of_posts
from nearcast.language.roles import PostOrder, QueryRole
from nearcast.language.syntax import Call

SPREAD = PostOrder("SPREAD", "SPREAD(5 km)", first="farthest apart", column="apart_km")


@dataclass(frozen=True, kw_only=True)
class SpreadQuery(Query):
    """The newest posts at least `km` from each other: SELECT Spread(5 km), or ORDER BY SPREAD(5 km) LIMIT k."""

    kind: ClassVar[str] = "spread out"

    km: float
    k: int = 0


class SpreadRole(QueryRole):
    functions: ClassVar = {"spread": "Spread"}
    order = SPREAD
    clauses = frozenset({"ORDER", "LIMIT", "WINDOW"})
    bulk_turn = -1

    def meaning(self, parsed: ParsedSelect) -> SpreadQuery:
        order = parsed.order()
        call = parsed.select.calls[0] if parsed.select.calls else order.operand if order else None
        assert isinstance(call, Call)
        if len(call.arguments) != 1:
            raise parsed.error(call.name.span, "Spread has one value", SPREAD.example)
        k = number_of_posts(parsed, SPREAD, "LIMIT 10") if order else 0
        return SpreadQuery(**parsed.where(), km=kilometres(parsed.sql, call.arguments[0], "spread"), k=k)

    def check_subscription(self, statement: Statement) -> None:
        super().check_subscription(statement)
        query = statement.query
        assert isinstance(query, SpreadQuery)
        if not query.km:
            raise error_at(statement, function_span(statement.sql), "these posts are not apart", SPREAD.example)

    def encode(self, query: SpreadQuery) -> dict[str, Any]:
        return {"k": query.k, "columns": columns_text({"km": query.km})}

    def bulk_rows(self, bulk: BulkColumns) -> np.ndarray | None:
        return bulk.is_set("apart_km") if bulk.has("apart_km") else None

    def encode_bulk(self, bulk: BulkColumns, rows: np.ndarray) -> dict[str, np.ndarray | pa.Array]:
        km = bulk.numbers("apart_km")
        bulk.refuse(rows & ~(km >= 0), "apart_km is negative")
        texts = [columns_text({"km": each}) if row else None for row, each in zip(rows, km.tolist(), strict=True)]
        return {"k": bulk.k(rows, default=7), "columns": pa.array(texts, pa.string())}


ROLE = SpreadRole()
