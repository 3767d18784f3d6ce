"""The question for the most frequent terms."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Query, Statement
from nearcast.language.bulk_columns import LONGEST_SECONDS, TOO_LONG, BulkColumns, is_length
from nearcast.language.locate import error_at, function_span
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.roles import QueryRole, Refusal
from nearcast.language.standing_times import SLIDES, check_slides, check_sync
from nearcast.language.syntax import Select
from nearcast.language.topk import number_of_terms

_DEFAULT_K = 10
_LENGTHS = ("window_seconds", "sync_seconds")  # columns of bulk subscriptions


@dataclass(frozen=True, kw_only=True)
class TermsQuery(Query):
    """The `k` most frequent terms of the posts that meet the conditions (SSTD's STQ and CTQ): TopK(text, k).

    A term counts once a post. `sync` (SYNC) is in microseconds; a subscription reports at its whole multiples.
    """

    kind: ClassVar[str] = "terms"

    k: int = _DEFAULT_K
    sync: int | None = None


class TermsQueryRole(QueryRole):
    """A SELECT with a TopK and nothing else: its rows are terms, not groups."""

    functions: ClassVar = {"topk": "TopK"}
    clauses = frozenset({"SYNC"})
    refusals: ClassVar = {
        "ORDER": Refusal("terms come most frequent first, ties by term, in no other order", "no ORDER BY"),
        "LIMIT": Refusal(
            "how many terms is said in the TopK itself", "TopK(text, 10), or TopK(text), which means the same"
        ),
        "HAVING": Refusal("HAVING is a condition on groups, and a TopK alone has none", "a GROUP BY, or no HAVING"),
    }
    identity = ("window", "sync")
    bulk_turn = 2

    def claims(self, select: Select) -> bool:
        if select.approximate or len(select.items or ()) != 1:
            return False
        return super().claims(select) and all(clause.word != "GROUP" for clause in select.clauses)

    def meaning(self, parsed: ParsedSelect) -> TermsQuery:
        (item,) = parsed.select.items or ()
        if item.alias:
            raise parsed.error(item.alias.span, "TopK gives two columns, term and count", "FROM")
        (topk,) = parsed.select.calls
        return TermsQuery(**parsed.where(), k=number_of_terms(parsed.sql, topk), sync=parsed.sync())

    def check_subscription(self, statement: Statement) -> None:
        query = statement.query
        assert isinstance(query, TermsQuery)
        check_slides(statement)
        if query.after is None:
            message = "a subscription to frequent terms counts over a window, and this one has none"
            raise error_at(statement, function_span(statement.sql), message, f"{SLIDES} in the WHERE")
        if query.k < 1:
            message = "a report has at least one term"
            raise error_at(statement, function_span(statement.sql), message, "TopK(text, 10)")
        check_sync(statement, query.sync, "frequent terms")

    def window(self, query: TermsQuery) -> int | None:
        return query.after.ago if query.after else None

    def encode(self, query: TermsQuery) -> dict[str, Any]:
        return {"k": query.k, "window": self.window(query) or 0, "sync": query.sync or 0}

    def bulk_rows(self, bulk: BulkColumns) -> np.ndarray | None:
        window, sync = _LENGTHS
        return bulk.is_set(window) | bulk.is_set(sync) if bulk.has(*_LENGTHS) else None

    def encode_bulk(self, bulk: BulkColumns, rows: np.ndarray) -> dict[str, np.ndarray | pa.Array]:
        """The `k` most frequent terms of the last `window_seconds`, reported each `sync_seconds`."""
        window, sync = (bulk.numbers(name) for name in _LENGTHS)
        good = rows & (window > 0) & (window < LONGEST_SECONDS) & is_length(sync)
        bulk.refuse(rows & ~good, "window_seconds and sync_seconds are lengths of time, and come together")
        window, sync = (np.where(good, each * 1e6, 0).astype(np.int64) for each in (window, sync))
        if bulk.longest is not None:
            bulk.refuse(good & (window > bulk.longest), TOO_LONG)
        return {"k": bulk.k(rows, _DEFAULT_K), "window": window, "sync": sync}


ROLE = TermsQueryRole()
