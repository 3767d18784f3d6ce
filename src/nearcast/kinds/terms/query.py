"""The question for the most frequent terms."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query


@dataclass(frozen=True, kw_only=True)
class TermsQuery(Query):
    """The `k` most frequent terms of the posts that meet the conditions (SSTD's STQ and CTQ): TopK(text, k).

    A term counts once a post. `beat` (SYNC) is in microseconds; a subscription reports at its whole multiples.
    """

    kind: ClassVar[str] = "terms"

    k: int = 10
    beat: int | None = None
