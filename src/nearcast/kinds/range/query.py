"""The question for every post that meets the conditions."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query


@dataclass(frozen=True, kw_only=True)
class RangeQuery(Query):
    """Posts in a region, with words, in a time, with attributes (SSTD's SRQ and CRQ, PS2Stream's STS, Tornado's range).

    `columns` are the SELECT's, None for all. `limit` is None unless asked for.
    """

    kind: ClassVar[str] = "range"

    columns: tuple[str, ...] | None = None
    limit: int | None = None
