"""The question for the first post of each cell."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query


@dataclass(frozen=True, kw_only=True)
class FirstPostsQuery(Query):
    """Of the posts that meet the conditions the earliest in each cell of one degree, ties by id."""

    kind: ClassVar[str] = "first posts"

    columns: tuple[str, ...] | None = None
