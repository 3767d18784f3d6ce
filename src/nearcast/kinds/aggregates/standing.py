"""Work for standing aggregates (STAR §5): which of them each post concerns, and what it adds to them.

A worker counts the posts that it stores, by series and interval (`kinds.aggregates.series`), and writes what they add
as one file of the batch. A new series looks at the posts already kept. Reports add up such files in the second round of
a batch (`kinds.aggregates.reports`).
"""

from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import AGGREGATES, BEGINNING
from nearcast.common.post_schema import attribute_column
from nearcast.engine.batch import Plan, open_segments
from nearcast.engine.post_copies import own_posts
from nearcast.engine.task_result import Report
from nearcast.engine.ticks import open_standing, reporting_refs
from nearcast.kinds.aggregates.condition_index import Seen, StandingIndex, distinct_conditions, take_posts
from nearcast.kinds.aggregates.index import ChTrees
from nearcast.kinds.aggregates.interval_counts import Counted, Partials
from nearcast.kinds.aggregates.series import Aggregates, Series
from nearcast.kinds.aggregates.shared_counting import Together, runs
from nearcast.storage.deletes import deletes_for
from nearcast.storage.manifest import PARTIALS, POSTS, Manifest, SegmentRef
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.attributes import names_in
from nearcast.storage.posts.coded_columns import coded
from nearcast.storage.posts.derived import attributes_of, with_derived
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import Rows

MANY_POSTS = 200_000  # of kept posts are looked at at once


class Tally:
    """The standing aggregates of one batch: those of the manifest that still report, and those that it adds."""

    def __init__(self, plan: Plan, worker: int, report: Report, new: Rows | None = None) -> None:
        self.plan, self.worker, self.report = plan, worker, report
        self.manifest = plan.manifest
        self.standing = open_aggregates(plan, plan.manifest)
        self.new: Rows | None = None
        if new is not None and len(new):
            self.new = Aggregates(new).numbered(self.standing, self.horizon)
        self.found: list[Partials] = []
        self.bounds: list[tuple[int, int]] = []

    @property
    def horizon(self) -> int:
        """Beats before this have been reported."""
        clock = self.manifest.clock
        return BEGINNING if clock is None else clock - self.plan.settings.lateness

    def __bool__(self) -> bool:
        return self.new is not None or any(len(each.rows) for each in self.standing)

    @cached_property
    def counting(self) -> "Counting":
        parts = [each.rows for each in self.standing] + ([self.new] if self.new is not None else [])
        return counting_of(self.plan, Rows.join(parts))

    def catch_up(self, deleted: pa.Table) -> None:
        """New series look at the posts already kept that their reports may count; deletions of the same batch count."""
        if self.new is None or self.plan.settings.keep == "none" or self.manifest.clock is None:
            return
        begun = self.new.take(np.flatnonzero(self.new.beats[:, 3] == self.new.seq))
        if not len(begun):
            return
        counting = Counting(begun)
        since = counting.since(begun)
        for ref in self.manifest.of(POSTS):
            if ref.max_ts < since or not self.plan.mine(ref, self.worker):
                continue
            segment = PostSegment(self.plan.state.path(ref.name))
            rows = own_posts(self.plan, ref, segment, np.flatnonzero(segment.ts >= since), self.worker)
            deletes = deletes_for(self.plan.state, self.manifest, ref).select(["id", "id_text"])
            rows = rows[~segment.deleted(pa.concat_tables([deletes, deleted.cast(deletes.schema)]))[rows]]
            for begin in range(0, len(rows), MANY_POSTS):
                some = rows[begin : begin + MANY_POSTS]
                self.add(counting.stored(segment, some), segment.ts_of(some))

    def count(self, posts: pa.Table, columns: PostColumns, picked: np.ndarray) -> None:
        """Some of the posts that come with the batch."""
        if len(picked):
            columns = take_posts(columns, picked)
            self.add(self.counting.arriving(posts.take(pa.array(picked)), columns), columns.ts)

    def add(self, found: Partials, ts: np.ndarray) -> None:
        if len(found):
            self.found.append(found)
            self.bounds.append((int(ts.min()), int(ts.max())))

    def write(self) -> None:
        """What the posts of the batch, and those that new series have looked at, add."""
        whole = Partials.merged(self.found)
        if not len(whole):
            return
        name = self.plan.state.new_name(PARTIALS, self.plan.batch, self.worker)
        size = whole.write(self.plan.state.path(name))
        low, high = min(low for low, _ in self.bounds), max(high for _, high in self.bounds)
        ref = SegmentRef(PARTIALS, name, len(whole), size, self.plan.batch, self.worker, low, high)
        self.report.segments.append(ref)


def open_aggregates(plan: Plan, manifest: Manifest) -> list[Aggregates]:
    """The aggregates of a manifest that may still report."""
    if not reporting_refs(manifest, (AGGREGATES,)):
        return []
    if manifest.clock is None or manifest.first_post is None:  # before the first post nothing has ended
        segments = open_standing_segments(plan, manifest)
        return [aggregates_of(name, None, rows) for name, rows in segments.items()]
    horizon = manifest.clock - plan.settings.lateness
    found = []
    for part in open_standing(plan, manifest, (AGGREGATES,)):
        active = np.flatnonzero(part.stop > horizon)
        found.append(aggregates_of(part.name, active, part.segment.rows))
    return found


def open_standing_segments(plan: Plan, manifest: Manifest) -> dict[str, Rows]:
    names = [ref.name for ref in reporting_refs(manifest, (AGGREGATES,))]
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


_counting: tuple[tuple[str, bytes], "Counting"] | None = None


def counting_of(plan: Plan, rows: Rows) -> "Counting":
    """Kept in the process while the same aggregates stand."""
    global _counting
    key = plan.root, np.sort(rows.seq).tobytes()
    if _counting is None or _counting[0] != key:
        _counting = key, Counting(rows)
    return _counting[1]


class Counting:
    """Some series, and an index of their conditions, each once however many series have it."""

    def __init__(self, rows: Rows, kind: type[StandingIndex] = ChTrees) -> None:
        self.rows, self.kind = rows, kind
        self.series: list[Series] = Aggregates(rows).series
        some = rows.take(np.array([each.row for each in self.series], np.int64))
        first, which = distinct_conditions(some)
        self.conditions = some.take(first)
        self.together = Together(self.series, which)
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
        return self.together.count(Counted(posts.ts, posts.terms, posts.offsets, column), post, condition)

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
