"""What a query text means, before any plan is made for it."""

from dataclasses import dataclass
from math import pi

from nearcast.common.expressions import Expression
from nearcast.common.geo.shapes import Region

Scalar = int | float | bool | str
HALF_WORLD_KM = 6371.0088 * pi  # half the earth's circumference: no two places are farther apart


@dataclass(frozen=True)
class Predicate:
    """A condition on an attribute: `op` is one of = <> < <= > >= between in not_in is_null is_not_null.

    A comparison with a missing value, or with a value of another kind, is false.
    """

    name: str
    op: str
    values: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class TimeBound:
    """A moment: absolute (`at`, microseconds) or relative to the stream's clock (`ago`, microseconds before it)."""

    at: int | None = None
    ago: int | None = None


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What every kind of question may ask of a post (its WHERE), and for how long (FOR).

    `after` is exclusive; `since` and `until` are inclusive (they come from BETWEEN). `life` (FOR) is in microseconds.
    """

    region: Region | None = None
    text: Expression | None = None
    predicates: tuple[Predicate, ...] = ()
    after: TimeBound | None = None
    since: TimeBound | None = None
    until: TimeBound | None = None
    life: int | None = None


@dataclass(frozen=True, kw_only=True)
class RangeQuery(Conditions):
    """Posts in a region, with words, in a time, with attributes (SSTD's SRQ and CRQ, PS2Stream's STS, Tornado's range).

    `columns` are the SELECT's, None for all. `limit` is None unless asked for.
    """

    columns: tuple[str, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class NearestQuery(Conditions):
    """The `k` posts nearest to a point of those that meet the conditions (SSTD's SKQ and CKQ).

    ORDER BY DISTANCE(loc, POINT(lon, lat)) LIMIT k; of equal distances the lower id is the nearer. `columns` are the
    SELECT's, None for all.
    """

    lon: float
    lat: float
    k: int
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class RelevantQuery(Conditions):
    """The `k` posts most relevant to a place and a few words, of those that meet the conditions (Skype §3).

    ORDER BY RELEVANCE(POINT(lon, lat), 'words', alpha, reach km) DESC LIMIT k. The score of a post is alpha * nearness
    + (1 - alpha) * cosine of the tf-idf vectors; nearness falls from 1 at the place to 0 at `reach_km` and beyond. A
    post that has none of the words has no score. Ties go to the later post, then to the lower id. `words` are distinct
    terms, ascending. `window_posts` keeps to the so many greatest by (time, id), `window` to a length of time before
    the clock, in microseconds; at most one of them is given. `columns` are the SELECT's, None for all.
    """

    lon: float
    lat: float
    words: tuple[int, ...]
    alpha: float
    k: int
    reach_km: float = HALF_WORLD_KM
    window_posts: int | None = None
    window: int | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class TermsQuery(Conditions):
    """The `k` most frequent terms of the posts that meet the conditions (SSTD's STQ and CTQ): TopK(text, k).

    A term counts once a post. `beat` (SYNC) is in microseconds; a subscription reports at its whole multiples.
    """

    k: int = 10
    beat: int | None = None


@dataclass(frozen=True)
class Measure:
    """One aggregate of a SELECT (STAR §3.1): `function` is count, sum, avg, min, max or topk.

    `of` is the attribute it is taken of: None for Count(id) and Count(*), which count posts, and "text" for TopK, whose
    `k` most frequent terms it is (a term counts once a post). Count of an attribute counts the posts that have it; sum,
    avg, min and max are of its numbers (min and max also of times, `ts` included) and null where there are none.
    """

    function: str
    of: str | None = None
    k: int = 0


@dataclass(frozen=True)
class Output:
    """A column of the answer: an aggregate, or an attribute of the GROUP BY (its name)."""

    name: str
    value: Measure | str


@dataclass(frozen=True)
class Having:
    """A condition on a group: `op` is one of = <> < <= > >=. False of a null."""

    value: Measure | str
    op: str
    literal: Scalar


@dataclass(frozen=True)
class Ordering:
    value: Measure | str
    descending: bool = False


@dataclass(frozen=True, kw_only=True)
class AggregateQuery(Conditions):
    """Aggregates of the posts that meet the conditions, by group (STAR's snapshot and continuous queries, STAR).

    One row a group; a post without an attribute is in the group of its null. Without GROUP BY there is one row, also of
    no posts. Rows come in `order`, nulls last, ties by the attributes of the GROUP BY in their order (ascending, nulls
    last, numbers before times before strings before truth values); at most `limit` of them. `beat` as in TermsQuery.
    `approximate`: TopK may come from summaries, with its error bound; and what is no longer kept (`--keep-size`) is
    counted from coarse slots, where a count or TopK is by place and time alone.
    """

    outputs: tuple[Output, ...]
    group_by: tuple[str, ...] = ()
    having: tuple[Having, ...] = ()
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    beat: int | None = None
    approximate: bool = False


Query = RangeQuery | NearestQuery | RelevantQuery | TermsQuery | AggregateQuery


@dataclass(frozen=True)
class Statement:
    """A query as typed, and whether only its plan was asked for (EXPLAIN)."""

    query: Query
    explain: bool
    sql: str
