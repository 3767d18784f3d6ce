"""The question for the k posts nearest to a place."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Query, Statement
from nearcast.language.bulk_columns import BulkColumns
from nearcast.language.locate import clause_span, error_at
from nearcast.language.messages import nearest
from nearcast.language.parsed_select import ParsedSelect
from nearcast.language.places import point_of
from nearcast.language.post_select import POST_CLAUSES, POST_REFUSALS, check_one_order, number_of_posts, post_columns
from nearcast.language.roles import PostOrder, QueryRole
from nearcast.language.syntax import Call, Name, span_of

_DISTANCE = PostOrder("DISTANCE", "DISTANCE(loc, POINT(lon, lat))", first="nearest", column="distance_km")


@dataclass(frozen=True, kw_only=True)
class NearestQuery(Query):
    """The `k` posts nearest to a point of those that meet the conditions (SSTD's SKQ and CKQ).

    ORDER BY DISTANCE(loc, POINT(lon, lat)) LIMIT k; of equal distances the lower id is the nearer. `columns` are the
    SELECT's, None for all.
    """

    kind: ClassVar[str] = "nearest"

    lon: float
    lat: float
    k: int
    columns: tuple[str, ...] | None = None


class NearestQueryRole(QueryRole):
    """A SELECT of posts in the order of DISTANCE; of bulk columns the rows with a `k` that no other kind claims."""

    order = _DISTANCE
    clauses = POST_CLAUSES
    refusals = POST_REFUSALS
    identity = ("at_lon", "at_lat")
    bulk_turn = 3
    bulk_place = True

    def meaning(self, parsed: ParsedSelect) -> NearestQuery:
        order = parsed.order()
        assert order is not None and isinstance(order.operand, Call)
        if order.direction and order.descending:
            raise parsed.error(order.direction, "the nearest come first; there is no farthest", "ASC, or nothing")
        check_one_order(parsed, _DISTANCE)
        where = parsed.where()
        lon, lat = _place(parsed, order.operand)
        k = number_of_posts(parsed, _DISTANCE, "LIMIT 10 at the end")
        return NearestQuery(**where, lon=lon, lat=lat, k=k, columns=post_columns(parsed))

    def check_subscription(self, statement: Statement) -> None:
        super().check_subscription(statement)
        query = statement.query
        assert isinstance(query, NearestQuery)
        if query.k < 1:
            message = "a subscription keeps at least one post"
            raise error_at(statement, clause_span(statement.sql, "LIMIT"), message, "LIMIT 1 or more")

    def encode(self, query: NearestQuery) -> dict[str, Any]:
        return {**super().encode(query), "k": query.k, "at_lon": float(query.lon), "at_lat": float(query.lat)}

    def bulk_rows(self, bulk: BulkColumns) -> np.ndarray | None:
        return bulk.is_set("k") if bulk.has("k") else None

    def encode_bulk(self, bulk: BulkColumns, rows: np.ndarray) -> dict[str, np.ndarray | pa.Array]:
        """`k` is of the posts nearest to the place `lon`, `lat`."""
        k = bulk.k(rows)
        lon, lat = bulk.place(k > 0, _DISTANCE.first)
        return {"k": k, "at_lon": lon, "at_lat": lat}


def _place(parsed: ParsedSelect, call: Call) -> tuple[float, float]:
    """The point of DISTANCE(loc, POINT(lon, lat))."""
    if len(call.arguments) != 2:
        message = f"DISTANCE has {len(call.arguments)} of its values"
        raise parsed.error(call.name.span, message, _DISTANCE.example)
    loc, point = call.arguments
    if not isinstance(loc, Name) or loc.quoted or loc.text.lower() != "loc":
        meant = nearest(loc.text, ["loc"]) if isinstance(loc, Name) else ""
        message = "distances are measured from a post's place"
        raise parsed.error(span_of(loc), message, _DISTANCE.example, meant)
    return point_of(parsed.sql, point)


ROLE = NearestQueryRole()
