"""The question for the k posts nearest to a place."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query


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
