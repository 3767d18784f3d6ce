"""The segments that a query is asked of, and what has to be known of them once, not for every query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.common.post_schema import attribute_of
from nearcast.kinds.aggregates.cache.selection import SEGMENT
from nearcast.kinds.aggregates.cache.views import MINUTE, Source
from nearcast.kinds.aggregates.group_by import merge, nothing, search_groups
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.reader.roles import Segments
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import SegmentScan

MINUTE_MICROS = 60_000_000
MOST_REMEMBERED = 8

Scans = tuple[tuple[str, SegmentScan], ...]
Plain = Callable[[Question], tuple[Groups, Scans]]
Keys = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class TimeWindow:
    """A time in part of a snapshot: whole minutes [low, high), and the `edges` before and after them. `share` is the
    part of all time that the minutes are.
    """

    low: int
    high: int
    edges: tuple[tuple[int, int], ...]
    share: float


@dataclass(frozen=True)
class Snapshot:
    """Segments; the times of their posts are in [first, last]."""

    sources: tuple[Source, ...]
    keys: Keys
    posts: int
    first: int
    last: int
    own_minutes: bool

    @classmethod
    def of(cls, sources: Sequence[Source]) -> "Snapshot":
        held = [each.segment for each in sources if len(each.segment)]
        bounds = [segment.times[-2:].tolist() for segment in held]
        own = any((attribute_of(column) or ("",))[0] == MINUTE for each in held for column in each.attribute_columns)
        return cls(
            tuple(sources),
            tuple(each.key for each in sources),
            sum(map(len, held)),
            min((low for low, _ in bounds), default=0),
            max((high for _, high in bounds), default=0),
            own,
        )

    def window(self, question: Question) -> TimeWindow | None:
        """None where the time asked for is that of all posts."""
        if question.since <= self.first and question.until > self.last:
            return None
        low, high, edges = BEGINNING, NEVER, []
        begin, end = self.first, self.last + 1
        if question.since > self.first:
            low = begin = -(-question.since // MINUTE_MICROS) * MINUTE_MICROS
        if question.until <= self.last:
            high = end = question.until // MINUTE_MICROS * MINUTE_MICROS
        if low >= high:
            return TimeWindow(low, low, ((question.since, question.until),), 0.0)
        if question.since > self.first and question.since < low:
            edges.append((question.since, low))
        if question.until <= self.last and high < question.until:
            edges.append((high, question.until))
        return TimeWindow(low, high, tuple(edges), max(0.0, min(1.0, (end - begin) / (self.last + 1 - self.first))))

    def edge_effort(self, window: TimeWindow) -> float:
        """What the edges of a window cost, in posts looked at: each is in one segment, or hardly more."""
        lasting = max(1, self.last - self.first)
        return sum(SEGMENT + (end - begin) / lasting * self.posts for begin, end in window.edges)

    def touching(self, question: Question) -> list[Source]:
        """The segments with posts of the time asked for."""
        return [
            each
            for each in self.sources
            if len(each.segment) and not question.is_apart(*each.segment.times[-2:].tolist())
        ]

    def plain(self, shape: Shape) -> Plain:
        """Answers without a cache."""

        def answer(question: Question) -> tuple[Groups, Scans]:
            parts, scans = [nothing(shape)], []
            for each in self.touching(question):
                groups, scan = search_groups(each.segment, question, shape, each.gone)
                parts.append(groups)
                scans.append((each.name, scan))
            return merge(parts), tuple(scans)

        return answer


class Snapshots:
    """Snapshots by their segments: the newest few."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, int], Source] = {}  # they hold the deleted rows whose id is part of the key
        self._found: dict[Keys, Snapshot] = {}
        self._last: tuple[Segments, Snapshot] | None = None  # a reader asks with the same ones

    def of(self, segments: Segments) -> Snapshot:
        last = self._last
        if last is not None and last[0] is segments:
            return last[1]
        found = self._of(segments)
        if isinstance(segments, tuple):  # what cannot change
            self._last = segments, found
        return found

    def _of(self, segments: Segments) -> Snapshot:
        sources = [self._source(*each) for each in segments]
        keys = tuple(each.key for each in sources)
        found = self._found.get(keys)
        if found is None:
            found = Snapshot.of(sources)
            recent = list(self._found.items())[1 - MOST_REMEMBERED :]
            self._found = {**dict(recent), keys: found}
            wanted = {id(each) for one in self._found.values() for each in one.sources}
            self._sources = {key: each for key, each in list(self._sources.items()) if id(each) in wanted}
        return found

    def _source(self, name: str, segment: PostSegment, gone: np.ndarray) -> Source:
        key = (name, id(gone) if len(gone) else 0)
        found = self._sources.get(key)
        if found is None:
            found = self._sources[key] = Source.of(name, segment, gone)
        return found
