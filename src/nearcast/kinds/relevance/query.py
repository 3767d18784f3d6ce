"""The question for the k posts most relevant to a place and some words."""

from dataclasses import dataclass
from math import pi
from typing import ClassVar

from nearcast.common.queries import Query

HALF_WORLD_KM = 6371.0088 * pi  # half the earth's circumference: no two places are farther apart


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
