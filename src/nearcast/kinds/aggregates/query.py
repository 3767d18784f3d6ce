"""The question for aggregates by group."""

from dataclasses import dataclass
from typing import ClassVar

from nearcast.common.queries import Query, Scalar


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
class AggregateQuery(Query):
    """Aggregates of the posts that meet the conditions, by group (STAR's snapshot and continuous queries, STAR).

    One row a group; a post without an attribute is in the group of its null. Without GROUP BY there is one row, also of
    no posts. Rows come in `order`, nulls last, ties by the attributes of the GROUP BY in their order (ascending, nulls
    last, numbers before times before strings before truth values); at most `limit` of them. `beat` as in TermsQuery.
    `approximate`: TopK may come from summaries, with its error bound; and what is no longer kept (`--keep-size`) is
    counted from coarse slots, where a count or TopK is by place and time alone.
    """

    kind: ClassVar[str] = "aggregates"

    outputs: tuple[Output, ...]
    group_by: tuple[str, ...] = ()
    having: tuple[Having, ...] = ()
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    beat: int | None = None
    approximate: bool = False
