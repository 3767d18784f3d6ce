"""The question for the k posts most relevant to a place and some words."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Query, Statement
from nearcast.kinds.relevance.order_by import HALF_WORLD_KM, RELEVANCE, WINDOWS, relevance
from nearcast.language.bulk_columns import BulkColumns
from nearcast.language.locate import clause_span, error_at, times
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.post_select import POST_CLAUSES, POST_REFUSALS, post_columns
from nearcast.language.roles import QueryRole, Refusal

__all__ = ["HALF_WORLD_KM", "ROLE", "RelevantQuery"]

ASKING = "alpha"  # the column that asks for the most relevant, of bulk subscriptions
SCORING = ("reach_km", "window_posts", "words")  # those that it alone has beside


@dataclass(frozen=True, kw_only=True)
class RelevantQuery(Query):
    """The `k` posts most relevant to a place and a few words, of those that meet the conditions (Skype §3).

    ORDER BY RELEVANCE(POINT(lon, lat), 'words', alpha, reach km) DESC LIMIT k. The score of a post is alpha * nearness
    + (1 - alpha) * cosine of the tf-idf vectors; nearness falls from 1 at the place to 0 at `reach_km` and beyond. A
    post that has none of the words has no score. Ties go to the later post, then to the lower id. `words` are distinct
    terms, ascending. `window_posts` keeps to the so many greatest by (time, id), `window` to a length of time before
    the clock, in microseconds; at most one of them is given. `columns` are the SELECT's, None for all.
    """

    kind: ClassVar[str] = "relevance"

    lon: float
    lat: float
    words: tuple[int, ...]
    alpha: float
    k: int
    reach_km: float = HALF_WORLD_KM
    window_posts: int | None = None
    window: int | None = None
    columns: tuple[str, ...] | None = None


class RelevanceQueryRole(QueryRole):
    """A SELECT of posts in the order of RELEVANCE; of bulk columns the rows with an `alpha`."""

    order = RELEVANCE
    clauses = POST_CLAUSES | {"WINDOW"}
    refusals: ClassVar = POST_REFUSALS | {
        "SYNC": Refusal(
            "the most relevant are kept at all times, and what enters or leaves is told at once, not on a beat",
            "no SYNC",
        )
    }
    particular_clauses: ClassVar = {
        "WINDOW": Refusal(
            "WINDOW is for the most relevant (ORDER BY RELEVANCE); anything else is asked over a time",
            "time AFTER '4 hours ago' in the WHERE",
        )
    }
    bulk_turn = 1
    bulk_place = True

    def meaning(self, parsed: ParsedSelect) -> RelevantQuery:
        return RelevantQuery(**relevance(parsed), columns=post_columns(parsed))

    def check_subscription(self, statement: Statement) -> None:
        """The most relevant are kept over a window that slides (Skype §3)."""
        query, sql = statement.query, statement.sql
        assert isinstance(query, RelevantQuery)
        if query.after or query.since or query.until:
            message = "the posts of this subscription are those of a window that slides, and no time bounds them"
            raise error_at(statement, next((each.span for each in times(sql)), None), message, f"{WINDOWS} at the end")
        if query.window_posts is None and query.window is None:
            message = "a subscription to the most relevant is over a window that slides, and this one has none"
            raise error_at(statement, clause_span(sql, "LIMIT"), message, f"{WINDOWS} after the LIMIT")

    def window(self, query: RelevantQuery) -> int | None:
        return query.window

    def encode(self, query: RelevantQuery) -> dict[str, Any]:
        """`scoring` is alpha, the reach in km, and the window as a number of posts and in microseconds, 0 for the one
        that is not asked for.
        """
        scoring = [query.alpha, query.reach_km, query.window_posts or 0, query.window or 0]
        return {
            **super().encode(query),
            "k": query.k,
            "at_lon": float(query.lon),
            "at_lat": float(query.lat),
            "words": list(query.words),
            "scoring": [float(each) for each in scoring],
        }

    def bulk_rows(self, bulk: BulkColumns) -> np.ndarray | None:
        return bulk.is_set(ASKING) if bulk.has(ASKING, *SCORING) else None

    def encode_bulk(self, bulk: BulkColumns, rows: np.ndarray) -> dict[str, np.ndarray | pa.Array]:
        from nearcast.kinds.relevance.bulk import encode  # it compiles kernels, which a text takes none of

        return encode(bulk, rows)


ROLE = RelevanceQueryRole()
