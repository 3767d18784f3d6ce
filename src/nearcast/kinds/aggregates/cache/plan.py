"""Aggregates with a cache: from views, from cached borders and, for what they leave, from posts (STAR §4.1.3).

A query's region is a set of quadtree nodes: those it covers, and leaves that it overlaps in part. Covered nodes are
answered by their views, or those of their children, whichever is cheaper; overlapped ones by posts cached along their
borders; all others by posts of the segments. A time window is split at full minutes: the minutes come from views, what
is before and after them from posts. The sum is the answer, the same as without a cache.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.cache.border_posts import Borders
from nearcast.kinds.aggregates.cache.cached_groups import Partial, combined, part_of
from nearcast.kinds.aggregates.cache.catalog import Catalog, Usable
from nearcast.kinds.aggregates.cache.selection import OPENING, SEGMENT
from nearcast.kinds.aggregates.cache.snapshot import Plain, Scans, Snapshot, TimeWindow
from nearcast.kinds.aggregates.cache.views import Need, Source, View, comparable, where
from nearcast.kinds.aggregates.group_by import nothing
from nearcast.kinds.aggregates.group_rows import aggregate_rows_of
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.kernels.quadtree import cell_codes, rows_in_nodes, rows_outside
from nearcast.storage.posts.kernels.check import check_rows
from nearcast.storage.posts.question import Question, words_in
from nearcast.storage.posts.range_search import SegmentScan, meets_predicates, search_range

NOTHING_USABLE = Usable.of(())
NO_ROWS = frozen(np.empty(0, np.int64))
ALL = slice(None)
LOOKED_AT = 0.2  # what it costs to look at a post that is not wanted, where one that is costs 1
CHOSEN = 0.2  # of posts satisfy the predicates of a query, which is not known beforehand
BORDERS = 500.0  # what it costs to look for posts in cached borders, of each segment
WORTH = 0.8  # a plan with the cache must look at less than this part of what the plain one does


@dataclass(frozen=True)
class Used:
    """What an answer came from, for EXPLAIN: views, and the posts they stand for; posts from cached borders; and the
    segments that were searched for the rest, and how.
    """

    views: int = 0
    spared: int = 0
    cached: int = 0
    scans: Scans = ()

    def __str__(self) -> str:
        parts = [f"{self.views:,} views for {self.spared:,} posts"] if self.views else []
        parts += [f"{self.cached:,} posts from cached borders"] if self.cached else []
        parts += [f"{sum(scan.candidates for _, scan in self.scans):,} posts looked at"] if self.scans else []
        return ", ".join(parts) or "nothing to look at"


@dataclass(frozen=True)
class CacheResult:
    """Aggregates, and what they came from."""

    partial: Partial
    used: Used

    @property
    def groups(self) -> Groups:
        return self.partial.groups


@dataclass(frozen=True)
class CachePlan:
    """How a query is answered: by `views`; and of what they leave, covered nodes (`left`) and nodes that it overlaps
    (`meeting`), by posts: found node by node, or by a `search` that leaves out the codes of the views' nodes.
    """

    views: tuple[View, ...]
    spared: float
    window: TimeWindow | None
    left: np.ndarray = field(default_factory=lambda: NO_ROWS)
    meeting: np.ndarray = field(default_factory=lambda: NO_ROWS)
    search: bool = False
    firsts: np.ndarray = field(default_factory=lambda: NO_ROWS)
    ends: np.ndarray = field(default_factory=lambda: NO_ROWS)
    borders: Borders | None = None

    @property
    def complete(self) -> bool:
        """Whether views answer it all, but for the edges of its time."""
        return not len(self.left) and not len(self.meeting)


def planned(catalog: Catalog, snapshot: Snapshot, question: Question, shape: Shape, counters: int) -> CachePlan | None:
    """The cheapest way with the cache, by what it looks at; None where the plain way is cheaper."""
    window = snapshot.window(question)
    need = None
    if (
        catalog.views
        and comparable(question.predicates)
        and not (window and (not window.share or snapshot.own_minutes))
    ):
        need = Need.of(question, shape, window is not None, counters)
    whole = catalog.whole(where(question), need) if need else None
    if whole is not None and window is None:
        return CachePlan((whole,), whole.posts, None)
    usable = catalog.usable(need) if need else NOTHING_USABLE
    regional = bool(question.kind and not question.has_words and len(catalog.borders))  # words lead to fewer posts
    if whole is None and not len(usable.views) and not regional:
        return None
    cover = catalog.cover(question)
    share = window.share if window else 1.0
    edges = snapshot.edge_effort(window) if window else 0.0
    everything = cover.posts
    fixed, other = search_effort(snapshot, question, window, everything)
    plain = fixed + min(everything, other)
    if whole is not None and share * whole.entries + OPENING + edges < WORTH * plain:
        return CachePlan((whole,), whole.posts, window)
    costs = usable.entries * share + OPENING
    used, left, spared = catalog.choose(cover, usable, costs)
    meeting, rest = cover.meeting, everything - spared
    search = other < rest
    found = {
        "left": left, "meeting": meeting, "search": search, "borders": catalog.borders if regional else None,
        "firsts": usable.firsts[used], "ends": usable.ends[used],
    }  # fmt: skip
    if len(used):
        effort = fixed + float(costs[used].sum()) + min(rest, other) + edges
        return CachePlan(usable.pick(used), spared, window, **found) if effort < WORTH * plain else None
    spared = cover.posts_meeting * LOOKED_AT - BORDERS * len(snapshot.sources)
    if search or spared < (1.0 - WORTH) * plain or not catalog.borders.has_any(meeting):
        return None
    return CachePlan((), 0.0, None, **found)


def search_effort(
    snapshot: Snapshot, question: Question, window: TimeWindow | None, everything: float
) -> tuple[float, float]:
    """What a search costs whatever it finds, and what it costs to look at posts because of their words or their time,
    where the region has about so many: those found, and less for each that is only looked at.
    """
    touched = snapshot.touching(question)
    looked = total = float(max(1, snapshot.posts))
    found = everything * (CHOSEN if question.predicates else 1.0)
    if question.has_words:
        words = [(each, words_in(question, each.segment)) for each in touched]
        touched = [each for each, there in words if not there.impossible]
        with_words = sum(there.frequency or len(each.segment) for each, there in words if not there.impossible)
        looked, found = float(with_words), found * with_words / total
    if window is not None:
        looked, found = min(looked, window.share * total), found * window.share
    return SEGMENT * len(touched), looked * LOOKED_AT + found


def carry_out(
    plan: CachePlan, snapshot: Snapshot, question: Question, shape: Shape, counters: int, plain: Plain, tick: int
) -> CacheResult:
    """The answer that a plan gives."""
    window = plan.window
    middle = question if window is None else replace(question, since=window.low, until=window.high)
    parts: list[Partial] = []
    for view in plan.views:
        view.used = tick
        total = view.total(snapshot.sources, snapshot.keys)
        rows = total.rows(middle) if window or question.predicates else ALL
        parts.append(part_of(total.groups, total.summaries if counters else None, rows, shape))
    scans: list[tuple[str, SegmentScan]] = []
    cached = 0
    if not plan.complete:
        found = []
        for source in snapshot.touching(middle):
            rows_left, from_borders, scan = _from_posts(plan, source, middle, tick)
            found.append((source.segment, rows_left))
            cached += from_borders
            scans.append((source.name, scan))
        parts.append(Partial(aggregate_rows_of(found, shape)))
    for since, until in window.edges if window else ():
        groups, edge_scans = plain(replace(question, since=since, until=until))
        parts.append(Partial(groups))
        scans += edge_scans
    used = Used(len(plan.views), int(plan.spared), cached, tuple(scans))
    if len(parts) == 1 and plan.views and set(plan.views[0].spec.attributes) == set(shape.by):
        return CacheResult(parts[0], used)  # the groups of the view are those of the answer
    return CacheResult(combined(parts or [Partial(nothing(shape))]), used)


def _from_posts(plan: CachePlan, source: Source, question: Question, tick: int) -> tuple[np.ndarray, int, SegmentScan]:
    """What views leave over, of one segment: (rows, how many of them from cached borders, what was looked at)."""
    segment = source.segment
    if plan.search:
        hits = search_range(segment, question, source.gone)
        codes = cell_codes(segment.arrays["fixed"], segment.arrays["exact"], frozen(hits.rows))
        return rows_outside(codes, frozen(hits.rows), plan.firsts, plan.ends), 0, hits.scan
    words = words_in(question, segment)
    if words.impossible:
        return NO_ROWS, 0, SegmentScan(len(segment), "vocabulary", "no post has the words", 0)
    posts, asked = segment.columns_for_checks, question.space_time
    meeting, found, from_borders = plan.meeting, [], 0
    if plan.borders is not None and len(meeting):
        near, answered = plan.borders.gather(source.name, segment, meeting, question, tick)
        found.append(check_rows(frozen(near), posts, source.gone, asked, words.code))
        meeting, from_borders = meeting[~answered], len(near)
    nodes = np.concatenate((plan.left, meeting))
    rows, looked = rows_in_nodes(
        frozen(nodes), len(plan.left), len(segment), segment.tree, posts, source.gone, asked, words.code
    )
    rows = np.concatenate((rows, *found)) if found else rows
    if question.predicates and len(rows):
        rows = rows[meets_predicates(segment, question, rows)]
    why = f"{len(nodes):,} nodes beside the cache, {from_borders:,} posts from cached borders"
    return rows, from_borders, SegmentScan(len(segment), "nodes", why, looked + from_borders)
