"""Views: partial aggregates of the posts of a quadtree node, by segment (STAR §4.1.1, §4.1.2).

A view holds, of the posts in its node that satisfy its words, the aggregates by all its attributes. It answers a query
that covers the node, has the same words, and groups by and sets conditions on no other attributes: its groups are
filtered and added up. A region that is asked about again and again may have views of its own, which answer all of it
(the seed has none, and answers what a region has beside its nodes from posts every time).

A time window needs the minutes among the attributes; what it has of a minute in part is answered from posts. The part
of a segment depends on nothing but the segment and its deleted rows, so a view is never out of date: what a manifest
brings is added when it is first needed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, frozen
from nearcast.common.expressions import Conjunction
from nearcast.common.geo.shapes import EVERYWHERE, RECT
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.kinds.aggregates.cache.cached_groups import Partial, combined, summarised, taken
from nearcast.kinds.aggregates.cache.nodes import ROOT, box
from nearcast.kinds.aggregates.group_by import search_groups
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.storage.posts.attributes import names_in, satisfied
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.term_summaries import merge as merge_summaries
from nearcast.storage.posts.values import NO_STRINGS, STRING, Values, number_values

MINUTE = "minute"
NO_TERMS, SUMMARY, EXACT = range(3)  # what a view keeps of terms
A_GROUP = 4  # terms are as much effort as a group
MOST_KNOWN = 256  # predicates that a view remembers the values of

Words = tuple[Conjunction, ...]
Where = tuple[int, tuple[float, float, float, float], bytes]  # a region: kind, box, shape
EVERY_PLACE: Where = (EVERYWHERE, (-180.0, -90.0, 180.0, 90.0), b"")


def where(question: Question) -> Where:
    """The region that a question asks about."""
    return (question.kind, question.box, question.shape.tobytes()) if question.kind else EVERY_PLACE


EXACT_INTEGERS = 1 << 53


@lru_cache(maxsize=1024)
def comparable(predicates: str | None) -> bool:
    """Whether values as grouped, 5.0 as 5, compare as the stored ones do: not with whole numbers that no double is."""
    literals = [value for _, _, values in json.loads(predicates or "[]") for value in values]
    return not any(isinstance(value, int) and abs(value) > EXACT_INTEGERS for value in literals)


@lru_cache(maxsize=1024)
def _names(predicates: str | None) -> tuple[str, ...]:
    return tuple(names_in(predicates))


@dataclass(frozen=True)
class Need:
    """What a query wants of the posts of a node, whatever node it is; `counters` are those of a summary of terms."""

    words: Words
    attributes: frozenset[str]
    measured: frozenset[str]
    terms: int = NO_TERMS
    timed: bool = False
    counters: int = 0

    @classmethod
    def of(cls, question: Question, shape: Shape, timed: bool, counters: int = 0) -> "Need":
        attributes = frozenset((*shape.by, *_names(question.predicates), *((MINUTE,) if timed else ())))
        terms = (SUMMARY if counters else EXACT) if shape.terms else NO_TERMS
        words = question.conjunctions if question.has_words else ()
        return cls(words, attributes, frozenset(shape.measured), terms, timed, counters if shape.terms else 0)


@dataclass(frozen=True)
class Spec:
    """What a view holds: of the posts of a node, or of a region. `attributes` begin with the minute, where it is one of
    them.
    """

    place: int | Where
    words: Words
    attributes: tuple[str, ...]
    measured: tuple[str, ...]
    terms: int
    counters: int = 0

    @classmethod
    def of(cls, place: int | Where, need: Need) -> "Spec":
        """The candidate view that a query suggests for a node, or for its region."""
        attributes = sorted(need.attributes, key=lambda name: (name != MINUTE, name))
        return cls(place, need.words, tuple(attributes), tuple(sorted(need.measured)), need.terms, need.counters)

    def answers(self, need: Need) -> bool:
        """Whether a query of that need, which covers the node, is in Q(v)."""
        return (
            self.words == need.words
            and need.attributes.issubset(self.attributes)
            and need.measured.issubset(self.measured)
            and (need.terms == NO_TERMS or self.terms == need.terms or self.terms == EXACT)
            and (self.terms != SUMMARY or need.counters <= self.counters)
        )

    @cached_property
    def shape(self) -> Shape:
        return Shape(self.attributes, self.measured, self.terms != NO_TERMS)

    @property
    def node(self) -> int:
        """0 for a region."""
        return self.place if isinstance(self.place, int) else 0

    @cached_property
    def question(self) -> Question:
        if isinstance(self.place, int):
            kind, bounds, shape = (RECT, box(self.place), b"") if self.place != ROOT else EVERY_PLACE
        else:
            kind, bounds, shape = self.place
        form = frozen(np.frombuffer(shape, np.float64))
        return Question(kind, bounds, form, self.words or ((),), BEGINNING, NEVER, None)


class Total:
    """A view's aggregates of all segments, ready to be asked: in order of the minute, where it has one."""

    def __init__(self, partial: Partial) -> None:
        groups, summaries = partial.groups, partial.summaries
        self.minutes: np.ndarray | None = None
        if groups.shape.by[:1] == (MINUTE,):
            order = np.argsort(groups.values[:, 0], kind="stable")
            back = np.empty(len(order), np.int64)
            back[order] = np.arange(len(order))
            groups = taken(groups, order, groups.shape)
            if summaries is not None:
                summaries = merge_summaries([summaries], [back], len(order))
            self.minutes = groups.values[:, 0]
        self.groups, self.summaries = groups, summaries
        self.nbytes = partial.nbytes
        self.posts = int(groups.posts.sum())
        self._known: dict[str, np.ndarray] = {}
        self._distinct: dict[str, tuple[np.ndarray, Values]] = {}

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def entries(self) -> int:
        """Groups, and what their terms are as much effort as."""
        counters = 0 if self.summaries is None else len(self.summaries.terms)
        return len(self) + (len(self.groups.term) + counters) // A_GROUP

    def rows(self, question: Question) -> np.ndarray | slice:
        """The groups in the time asked for, of whole minutes, that satisfy the predicates."""
        begin, end = 0, len(self.groups)
        if self.minutes is not None and (question.since > BEGINNING or question.until < NEVER):
            begin, end = np.searchsorted(self.minutes, (question.since, question.until)).tolist()
        if not question.predicates:
            return slice(begin, end)
        wanted = np.ones(end - begin, np.bool_)
        for predicate in question.predicate_list:
            codes, values = self._values(predicate[0])
            wanted &= self._satisfying(predicate, values)[codes[begin:end]]
        return begin + np.flatnonzero(wanted)

    def _satisfying(self, predicate: list[Any], values: Values) -> np.ndarray:
        """Which of the distinct values of an attribute satisfy a predicate."""
        key = json.dumps([predicate])
        found = self._known.get(key)
        if found is None:
            found = satisfied(key, values.table(predicate[0]))
            while len(self._known) >= MOST_KNOWN:
                self._known.pop(next(iter(self._known), ""), None)
            self._known[key] = found
        return found

    def _values(self, name: str) -> tuple[np.ndarray, Values]:
        """An attribute's distinct values, and which of them each group has."""
        found = self._distinct.get(name)
        if found is None:
            at = self.groups.shape.by.index(name)
            kinds, values = self.groups.kinds[:, at], np.ascontiguousarray(self.groups.values[:, at])
            codes, firsts = number_values(kinds, values)
            found = self._distinct[name] = codes, _spelled(kinds[firsts], values[firsts], self.groups)
        return found


def _spelled(kinds: np.ndarray, values: np.ndarray, groups: Groups) -> Values:
    strings, rows = NO_STRINGS, kinds == STRING
    if rows.any():
        places = np.searchsorted(groups.spelling.hashes, np.where(rows, values, groups.spelling.hashes[0]))
        indices = pc.if_else(arrow(rows), arrow(places), pa.scalar(None, pa.int64()))
        strings = groups.spelling.strings.take(indices)
    return Values(kinds, values, strings)


@dataclass(frozen=True)
class Source:
    """A segment and its deleted rows; `key` tells it from every other."""

    name: str
    segment: PostSegment
    gone: np.ndarray
    key: tuple[str, int, int]

    @classmethod
    def of(cls, name: str, segment: PostSegment, gone: np.ndarray) -> "Source":
        return cls(name, segment, gone, (name, len(gone), hash(gone.tobytes()) if len(gone) else 0))


@dataclass
class View:
    """A view that is kept: its parts by segment, and their sum for the segments last asked for."""

    spec: Spec
    parts: dict[tuple[str, int, int], Partial] = field(default_factory=dict)
    used: int = 0
    _of: tuple[tuple[str, int, int], ...] | None = None
    _total: Total | None = None
    _lock: Lock = field(default_factory=Lock)

    @property
    def nbytes(self) -> int:
        total = self._total
        parts = list(self.parts.values())
        return (total.nbytes if total is not None else 0) + (
            sum(each.nbytes for each in parts) if len(parts) > 1 else 0
        )

    @property
    def posts(self) -> int:
        """The posts that the view stood for when it was last asked."""
        total = self._total
        return 0 if total is None else total.posts

    @property
    def entries(self) -> int:
        """The size of the view when it was last asked."""
        total = self._total
        return 0 if total is None else total.entries

    def total(self, sources: Sequence[Source], of: tuple[tuple[str, int, int], ...]) -> Total:
        """The aggregates of all the segments; `of` are their keys."""
        total = self._total
        if total is not None and self._of == of:
            return total
        with self._lock:
            if self._total is None or self._of != of:
                parts = {each.key: self.parts.get(each.key) or self._part(each) for each in sources}
                self._total = Total(combined(list(parts.values())))
                self._of, self.parts = of, parts
            return self._total

    def _part(self, source: Source) -> Partial:
        groups, _ = search_groups(source.segment, self.spec.question, self.spec.shape, source.gone)
        return summarised(groups, self.spec.counters) if self.spec.terms == SUMMARY else Partial(groups)
