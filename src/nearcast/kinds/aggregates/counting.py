"""Counting for standing aggregates (STAR §5): which of them each post concerns, and what it adds to them."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import runs
from nearcast.common.op_schema import BEGINNING
from nearcast.common.post_schema import attribute_column
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.ticks import open_ticking, reporting_refs
from nearcast.kinds.aggregates import KIND
from nearcast.kinds.aggregates.condition_index import Seen, StandingIndex, distinct_conditions
from nearcast.kinds.aggregates.index import ChTrees
from nearcast.kinds.aggregates.interval_counts import CountedPosts, Partials
from nearcast.kinds.aggregates.series import Aggregates, Series
from nearcast.kinds.aggregates.shared_counting import SharedCounting
from nearcast.storage.manifest import Manifest
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.attributes import names_in
from nearcast.storage.posts.coded_columns import coded
from nearcast.storage.posts.derived import attributes_of, with_derived
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import Rows


def open_aggregates(plan: BatchPlan, manifest: Manifest) -> list[Aggregates]:
    """The aggregates of a manifest that may still report."""
    if not reporting_refs(manifest, (KIND.code,)):
        return []
    if manifest.clock is None or manifest.first_post is None:  # before the first post nothing has ended
        segments = open_standing_segments(plan, manifest)
        return [aggregates_of(name, None, rows) for name, rows in segments.items()]
    horizon = manifest.clock - plan.settings.lateness
    found = []
    for part in open_ticking(plan, manifest, (KIND.code,)):
        active = np.flatnonzero(part.stop > horizon)
        found.append(aggregates_of(part.name, active, part.segment.rows))
    return found


def open_standing_segments(plan: BatchPlan, manifest: Manifest) -> dict[str, Rows]:
    names = [ref.name for ref in reporting_refs(manifest, (KIND.code,))]
    return {name: segment.rows for name, segment in open_segments(plan, names, manifest).items()}


_aggregates: dict[tuple[str, int], Aggregates] = {}


def aggregates_of(name: str, active: np.ndarray | None, rows: Rows) -> Aggregates:
    """Kept in the process by segment and by how many of its rows are active: they only become fewer."""
    count = len(rows) if active is None else len(active)
    key = name, count
    if key not in _aggregates:
        for old in [each for each in _aggregates if each[0] == name]:
            del _aggregates[old]
        while len(_aggregates) > 100:
            del _aggregates[next(iter(_aggregates))]
        _aggregates[key] = Aggregates(rows if active is None or count == len(rows) else rows.take(active))
    return _aggregates[key]


_counting: tuple[tuple[str, bytes], "SeriesCounting"] | None = None


def counting_of(plan: BatchPlan, rows: Rows) -> "SeriesCounting":
    """Kept in the process while the same aggregates stand."""
    global _counting
    key = plan.root, np.sort(rows.seq).tobytes()
    if _counting is None or _counting[0] != key:
        _counting = key, SeriesCounting(rows)
    return _counting[1]


class SeriesCounting:
    """Some series, and an index of their conditions, each once however many series have it."""

    def __init__(self, rows: Rows, kind: type[StandingIndex] = ChTrees) -> None:
        self.rows, self.kind = rows, kind
        self.series: list[Series] = Aggregates(rows).series
        some = rows.take(np.array([each.row for each in self.series], np.int64))
        first, which = distinct_conditions(some)
        self.conditions = some.take(first)
        self.together = SharedCounting(self.series, which)
        order = np.argsort(which, kind="stable")
        self.members = order  # series by condition
        self.starts = np.searchsorted(which[order], np.arange(len(first) + 1))
        self.index: StandingIndex | None = None
        named = {name for text in some.predicates.to_pylist() for name in names_in(text or "[]")}
        self.names = sorted(named.union(*((*each.shape.by, *each.shape.measured) for each in self.series)))

    def since(self, rows: Rows) -> int:
        """No report of these new rows counts a post from before this."""
        starts = rows.start if (rows.start != BEGINNING).all() else np.array([BEGINNING])
        return max(BEGINNING, int(starts.min()) - max(each.reach for each in self.series))

    def stored(self, segment: PostSegment, rows: np.ndarray) -> Partials:
        """What posts of a segment add."""
        return self.count(segment.columns(rows), attributes_of(segment, rows, self.names))

    def arriving(self, posts: pa.Table, columns: PostColumns) -> Partials:
        """What posts of a batch add."""
        return self.count(columns, with_derived(posts, self.names))

    def count(self, posts: PostColumns, attributes: pa.Table) -> Partials:
        return self.counted(posts, attributes, *self.met(posts, attributes))

    def counted(self, posts: PostColumns, attributes: pa.Table, post: np.ndarray, condition: np.ndarray) -> Partials:
        """What pairs of a post and the conditions that it meets add."""
        if "ts" in self.names:
            moments = pa.array(posts.ts, pa.timestamp("us", tz="UTC"))
            attributes = attributes.append_column(attribute_column("ts", "t"), moments)
        column = lru_cache(lambda name: coded(attributes, name))
        return self.together.count(CountedPosts(posts.ts, posts.terms, posts.offsets, column), post, condition)

    def pairs(self, segment: PostSegment, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of posts of a segment and the series (their places) whose conditions they meet."""
        post, condition = self.met(segment.columns(rows), attributes_of(segment, rows, self.names))
        sizes = self.starts[condition + 1] - self.starts[condition]
        return np.repeat(post, sizes), self.members[runs(self.starts[condition], sizes)]

    def met(self, posts: PostColumns, attributes: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a post and the conditions (their number) that it meets."""
        if self.index is None:
            self.prepare(Seen.of(posts, attributes))
        assert self.index is not None
        found = self.index.match(posts, attributes)
        return found.posts, self.place[found.rows]

    def prepare(self, seen: Seen) -> None:
        """Build the index, planned by posts that were seen."""
        self.index = self.kind.build(self.conditions, seen)
        self.place = np.argsort(self.conditions.seq)[np.searchsorted(np.sort(self.conditions.seq), self.index.rows.seq)]
