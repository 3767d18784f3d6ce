"""The answer of an aggregate, and how it is put together from the segments of a state (STAR §3.2: partial
results of the workers, united by the aggregator).
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Query
from nearcast.common.threads import cores
from nearcast.kinds.aggregates.answer_rows import NO_TERMS, shape_of
from nearcast.kinds.aggregates.cache.answer_cache import CachedAnswers
from nearcast.kinds.aggregates.cache.answer_memory import Given
from nearcast.kinds.aggregates.cache.cached_groups import Partial, combined
from nearcast.kinds.aggregates.cache.snapshot import Searched, Segments
from nearcast.kinds.aggregates.coarse_search import Coarse
from nearcast.kinds.aggregates.group_by import aggregate, merge, search_groups, takes_all
from nearcast.kinds.aggregates.group_rows import FEW_ROWS, aggregate_several
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.aggregates.top_terms import likely
from nearcast.reader.answer import Answered, Effort
from nearcast.reader.frequent_terms import TERMS_ALONE, most_frequent
from nearcast.reader.row_format import iso, records
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import Looked, search_range, search_range_in
from nearcast.storage.posts.segment_group import Several

PARALLEL_ROWS = 1_000_000
SMALL = 100.0  # square degrees
Part = tuple[PostSegment, np.ndarray]  # a segment, and its deleted rows
Named = tuple[str, PostSegment, np.ndarray]


@dataclass(frozen=True)
class Aggregated(Answered):
    """One row a group, in the order of the answer; `posts_counted` is how many posts the groups have, `cached` tells
    what came from a cache, where there is one, and `coarse` what came from slots of posts that are no longer kept.
    """

    table: pa.Table
    posts_counted: int
    effort: Effort = field(default_factory=Effort)
    cached: str | None = None
    coarse: Coarse | None = None

    @property
    def notice(self) -> str | None:
        if self.exact_since is None or self.coarse is None:
            return super().notice
        part = self.coarse
        return (
            f"posts from before {iso(self.exact_since)} are no longer kept (--keep-size); what is older was counted "
            f"coarsely: {part.estimate:,} posts (at least {part.at_least:,}, at most {part.at_most:,})"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(records(self.table))

    def to_arrow(self) -> pa.Table:
        return self.table


def groups_of(
    parts: Sequence[Part],
    question: Question,
    shape: Shape,
    several: Several | None = None,
    chosen: Sequence[int] = (),
    top: int = 0,
) -> tuple[Groups, list[Looked]]:
    """The groups of all segments, and how each was searched; large ones on all cores at once. A small place is searched
    for in all together, where they are known as `several`, the parts being the `chosen`. Where no more than the `top`
    most frequent terms of a group are asked for, some that are not among them are left out: all others, where terms of
    all posts are all that is asked for.
    """
    if several is not None and top and shape == TERMS_ALONE:
        found = most_frequent(several, np.array(chosen, np.int64), question, top, NO_TERMS)
        how = found.looked()
        return found.groups, [how[n] for n in chosen]
    if several is not None and is_small(question) and not shape.terms:
        hits = search_range_in(several, np.array(chosen, np.int64), question)
        how = hits.looked()
        return aggregate_several([(several[n], rows) for n, rows in hits.hits], shape), [how[n] for n in chosen]

    def search(part: Part) -> tuple[Groups | Part, Looked]:
        segment, gone = part
        if shape.terms or takes_all(segment, question):
            return search_groups(segment, question, shape, gone)
        hits = search_range(segment, question, gone)
        few = len(hits.rows) <= FEW_ROWS
        return (segment, hits.rows) if few else aggregate(segment, hits.rows, shape), hits.looked

    many = sum(len(segment) > PARALLEL_ROWS for segment, _ in parts) > 1
    searched = list(cores().map(search, parts)) if many else [search(part) for part in parts]
    some = [each for each, _ in searched if isinstance(each, Groups)]
    together = aggregate_several([each for each, _ in searched if not isinstance(each, Groups)], shape)
    return merge([together, *(likely(some, top) if top else some)]), [looked for _, looked in searched]


def is_small(question: Question) -> bool:
    """Whether only a place of few posts is asked about: to look for them takes no longer than to begin."""
    west, south, east, north = question.box
    return bool(question.kind and not question.predicates and east >= west and (east - west) * (north - south) < SMALL)


def cached_groups(
    cache: CachedAnswers,
    posts: Segments,
    several: Several,
    beside: Sequence[Named],
    question: Question,
    shape: Shape,
    counters: int,
    top: int,
) -> tuple[Partial, Searched, str]:
    """The same through a cache: (aggregates, how segments were searched, what the cache did). `several` are the posts,
    to be searched together; `beside` are segments that the cache does not know: slots of the archive, of which only
    what is asked for was read. `top` as in `groups_of`.
    """

    def plain(narrowed: Question) -> tuple[Groups, Searched]:
        chosen = np.flatnonzero((several.rows > 0) & ~narrowed.is_apart(*several.times.T)).tolist()
        parts = [posts[n][1:] for n in chosen]
        whole = narrowed is question and not beside  # else what it finds is added to something
        groups, looked = groups_of(parts, narrowed, shape, several, chosen, top if whole else 0)
        return groups, tuple(zip((posts[n][0] for n in chosen), looked, strict=True))

    found = cache.groups(posts, question, shape, counters, plain)
    if not beside:
        return found.partial, found.used.looked, str(found.used)
    groups, looked = groups_of([(segment, gone) for _, segment, gone in beside], question, shape)
    whole = combined([found.partial, Partial(groups)])
    names = (name for name, _, _ in beside)
    return whole, (*found.used.looked, *zip(names, looked, strict=True)), str(found.used)


class Hashed:
    """A key whose hash is worked out once: that of a query takes longer than to find it."""

    __slots__ = ("hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key, self.hash = key, hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.key == other.key


def given_once(given: Given, version: int, query: AggregateQuery, answer: Callable[[], Aggregated]) -> Aggregated:
    """An answer as it was given before of the same version of the state, or a new one."""
    literals = (
        *(value for each in query.predicates for value in each.values),
        *(each.literal for each in query.having),
    )
    key = Hashed((query, tuple(map(type, literals))))  # 1 and True are equal, and not the same
    found = given.find(version, key)
    if found is None:
        found = answer()
        again = replace(found, cached=f"{found.cached}; asked before")
        given.note(version, key, again, lambda: int(again.table.nbytes))
    return found


def asks_for_attributes(query: Query) -> bool:
    """Whether it is an aggregate that speaks of attributes."""
    if not isinstance(query, AggregateQuery):
        return False
    return bool(query.predicates or query.group_by or shape_of(query).measured)
