"""The question for every post that meets the conditions."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query, Statement
from nearcast.language.locate import clause_span, error_at
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.post_select import POST_CLAUSES, POST_REFUSALS, check_newest_first, post_columns
from nearcast.language.roles import QueryRole


@dataclass(frozen=True, kw_only=True)
class RangeQuery(Query):
    """Posts in a region, with words, in a time, with attributes (SSTD's SRQ and CRQ, PS2Stream's STS, Tornado's range).

    `columns` are the SELECT's, None for all. `limit` is None unless asked for.
    """

    kind: ClassVar[str] = "range"

    columns: tuple[str, ...] | None = None
    limit: int | None = None


class RangeQueryRole(QueryRole):
    """Every SELECT, and every row of bulk columns, that no other kind claims."""

    clauses = POST_CLAUSES
    refusals = POST_REFUSALS

    def meaning(self, parsed: ParsedSelect) -> RangeQuery:
        check_newest_first(parsed)
        return RangeQuery(**parsed.where(), columns=post_columns(parsed), limit=parsed.limit("posts"))

    def check_subscription(self, statement: Statement) -> None:
        super().check_subscription(statement)
        query = statement.query
        assert isinstance(query, RangeQuery)
        if query.limit is not None:
            message = "a subscription gives every post that matches; LIMIT is for searches"
            raise error_at(
                statement, clause_span(statement.sql, "LIMIT"), message, "FOR 72 HOURS to end it, or nothing"
            )


ROLE = RangeQueryRole()
