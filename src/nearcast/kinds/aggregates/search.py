"""Aggregates by group, asked once (STAR's snapshot queries)."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from nearcast.common.queries import Statement
from nearcast.kinds.aggregates.answer_rows import most_terms, rows_of, shape_of
from nearcast.kinds.aggregates.approximate import bounded_terms
from nearcast.kinds.aggregates.cache.answer_cache import AggregateCache
from nearcast.kinds.aggregates.cache.answer_memory import AnswerMemory
from nearcast.kinds.aggregates.cache.cached_groups import Partial, counters_for
from nearcast.kinds.aggregates.cache.snapshot import Scans
from nearcast.kinds.aggregates.coarse_search import Coarse, is_for_coarse_slots, with_coarse
from nearcast.kinds.aggregates.groups import Shape
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.aggregates.segment_groups import cached_groups, groups_in
from nearcast.reader.answer import Answer, Effort
from nearcast.reader.reader import Reader
from nearcast.reader.roles import Options, PlanPart, SearchRole
from nearcast.reader.row_format import iso, records
from nearcast.reader.stop_words import stop_terms
from nearcast.storage.dictionary import words_of_terms
from nearcast.storage.manifest import ARCHIVE, COARSE
from nearcast.storage.posts.coarse_slots import CoarseSlots
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.segment_group import SegmentGroup

OBJECTS = 0.2  # of a cache's memory is for posts along the borders of regions


@dataclass(frozen=True)
class GroupRows(Answer):
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
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(records(self.table))

    def to_arrow(self) -> pa.Table:
        return self.table


class AggregatesSearch(SearchRole):
    options: ClassVar = {"stop_words": ""}

    def answer(self, reader: Reader, query: AggregateQuery, options: Options) -> GroupRows:
        """One row a group, in the order of the query."""
        stop_words = options.get("stop_words")
        cache = reader.cache if isinstance(reader.cache, AggregateCache) else None

        def answer() -> GroupRows:
            return aggregated(reader, query, stop_terms(stop_words, reader.tokenizer), cache)

        if cache is None or stop_words is not None:
            return answer()
        return _remembered(cache.memory, reader.manifest.version, query, answer)

    def explain(self, reader: Reader, query: AggregateQuery, answer: GroupRows) -> PlanPart:
        from nearcast.kinds.aggregates.explain import explain_aggregates

        return explain_aggregates(query, answer)

    def check(self, reader: Reader, statement: Statement) -> None:
        """Attributes that no post has make no sense in an aggregate: it would have nothing to say of them."""
        query = statement.query
        assert isinstance(query, AggregateQuery)
        if query.predicates or query.group_by or shape_of(query).measured:
            reader.check_attributes(statement)

    def cache(self, memory: int) -> AggregateCache:
        objects = int(OBJECTS * memory)
        return AggregateCache(memory - objects, objects)


def aggregated(
    reader: Reader, query: AggregateQuery, stop: np.ndarray, cache: AggregateCache | None = None
) -> GroupRows:
    """The answer over all segments, the terms `stop` left out of TopK."""
    shape = shape_of(query)
    question = reader.question(query)
    coarsely = is_for_coarse_slots(query) and reader.exact_since(question) is not None
    top = 0 if coarsely or not shape.terms else most_terms(query) + len(stop)
    top += query.approximate and top > 0  # the next one shows which are certain
    counters = counters_for(most_terms(query), len(stop)) if query.approximate and top else 0
    partial, scans, from_cache = _groups(reader, question, shape, counters, top, cache)
    effort, posts = reader.effort(question, lambda: scans), int(partial.groups.posts.sum())

    def spell(terms: np.ndarray) -> pa.StringArray:
        return words_of_terms(reader.dictionary, terms)

    if coarsely:
        tally = _coarse_slots(reader).tally(question)
        table, coarse = with_coarse(query, partial.groups, tally, spell, stop)
        return GroupRows(table, posts, effort, from_cache, coarse)
    frequent = bounded_terms(partial, spell, stop) if query.approximate else None
    table = rows_of(query, partial.groups, spell, stop, frequent)
    return GroupRows(table, posts, effort, from_cache)


def _groups(
    reader: Reader, question: Question, shape: Shape, counters: int, top: int, cache: AggregateCache | None
) -> tuple[Partial, Scans, str | None]:
    """(aggregates, how segments were searched, what came from the cache); `top` as in `groups_in`."""
    columns = (*shape.by, *shape.measured)
    if cache is not None:
        archived = reader.segments(question, columns, (ARCHIVE,))
        beside = [(each.ref.name, each.segment, each.gone) for each in archived]
        posts = reader.posts, reader.once(("aggregates", "posts"), lambda: _group_of_posts(reader))
        return cached_groups(cache, *posts, beside, question, shape, counters, top)
    group, members = reader.segment_group(question, columns)
    members = members[group.rows[members] > 0]
    numbers = members.tolist()
    parts = [(group[n], group.gone[n]) for n in numbers]
    groups, scans = groups_in(parts, question, shape, group, numbers, top)
    return Partial(groups), tuple(zip((reader.refs[n].name for n in numbers), scans, strict=True)), None


def _group_of_posts(reader: Reader) -> SegmentGroup:
    return SegmentGroup.of([segment for _, segment, _ in reader.posts], [gone for _, _, gone in reader.posts])


def _coarse_slots(reader: Reader) -> CoarseSlots:
    def merged() -> CoarseSlots:
        files = [reader.state.path(ref.name) for ref in reader.manifest.of(COARSE)]
        return CoarseSlots.merged([CoarseSlots.open(file) for file in files])

    return reader.once(("aggregates", "coarse slots"), merged)


class _HashedKey:
    """A key whose hash is worked out once: that of a query takes longer than to find it."""

    __slots__ = ("hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key, self.hash = key, hash(key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HashedKey) and self.key == other.key


def _remembered(
    memory: AnswerMemory, version: int, query: AggregateQuery, answer: Callable[[], GroupRows]
) -> GroupRows:
    """The answer that the same version of the state gave before, or a new one."""
    literals = (
        *(value for each in query.predicates for value in each.values),
        *(each.literal for each in query.having),
    )
    key = _HashedKey((query, tuple(map(type, literals))))  # 1 and True are equal, and not the same
    known: GroupRows | None = memory.find(version, key)
    if known is not None:
        return known
    new = answer()
    again = replace(new, cached=f"{new.cached}; asked before")
    memory.note(version, key, again, lambda: int(again.table.nbytes))
    return new


ROLE = AggregatesSearch()
