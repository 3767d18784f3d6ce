"""Aggregates with a cache: from views, from cached borders and, for what they leave, from posts (seed 003 §4.1.3).

A query's region is a set of quadtree nodes: those it covers, and leaves that it overlaps in part. Covered nodes are
answered by their views, or those of their children, whichever is cheaper; overlapped ones by posts cached along their
borders; all others by posts of the segments. A time window is split at full minutes: the minutes come from views, what
is before and after them from posts. The sum is the answer, the same as without a cache.
"""

from dataclasses import dataclass, replace

import numpy as np

from nearcast.cache.catalog import Catalog, Place, Usable
from nearcast.cache.partials import Partial, combined, part_of
from nearcast.cache.selection import OPENING
from nearcast.cache.snapshot import Plain, Searched, Snapshot, Window
from nearcast.cache.views import Need, Source, comparable
from nearcast.index.aggregate import aggregate
from nearcast.index.groups import Groups, Shape
from nearcast.index.question import Question, words_in
from nearcast.index.rows import frozen
from nearcast.index.search_range import Looked, meets_predicates, search_range
from nearcast.kernels.check import check_rows
from nearcast.kernels.quadtree import cell_codes, rows_in_nodes, rows_outside

NOTHING_USABLE = Usable.of(())
WORTH = 0.8  # a plan with the cache must look at less than this part of what the plain one does


@dataclass(frozen=True)
class Used:
    """What an answer came from, for EXPLAIN: views, and the posts they stand for; posts from cached borders; and the
    segments that were searched for the rest, and how.
    """

    views: int = 0
    spared: int = 0
    cached: int = 0
    looked: Searched = ()

    def __str__(self) -> str:
        parts = [f"{self.views:,} views for {self.spared:,} posts"] if self.views else []
        parts += [f"{self.cached:,} posts from cached borders"] if self.cached else []
        parts += [f"{sum(how.candidates for _, how in self.looked):,} posts looked at"] if self.looked else []
        return ", ".join(parts) or "nothing to look at"


@dataclass(frozen=True)
class Answer:
    """Aggregates, and what they came from."""

    partial: Partial
    used: Used

    @property
    def groups(self) -> Groups:
        return self.partial.groups


@dataclass(frozen=True)
class Plan:
    """How a query is answered: `used` views (by number), covered nodes `left` to posts, and for those and the nodes
    that meet the region either a search that leaves out the nodes of views (`search`), or one node by node.
    """

    catalog: Catalog
    place: Place
    usable: Usable
    used: np.ndarray
    left: np.ndarray
    spared: float
    search: bool
    window: Window | None

    @property
    def complete(self) -> bool:
        """Whether views answer it all, but for the edges of its time."""
        return not len(self.left) and not len(self.place.cover.meeting)


def planned(catalog: Catalog, snapshot: Snapshot, question: Question, shape: Shape, approximate: bool) -> Plan | None:
    """None where the plain way looks at no more."""
    window = snapshot.window(question)
    usable = NOTHING_USABLE
    if (
        catalog.views
        and comparable(question.predicates)
        and not (window and (not window.share or snapshot.own_minutes))
    ):
        usable = catalog.usable(Need.of(question, shape, window is not None, approximate))
    regional = bool(question.kind and len(catalog.borders))
    if not len(usable.views) and not regional:
        return None
    place = catalog.place(question)
    costs = usable.entries * (window.share if window else 1.0) + OPENING
    used, left, spared = catalog.choose(place, usable, costs)
    if not len(used) and not (regional and np.isin(place.cover.meeting, catalog.borders.nodes).any()):
        return None

    other = float("inf")  # posts that a search would look at because of words or time
    if question.has_words:
        other = sum(words_in(question, each.segment).frequency or len(each.segment) for each in snapshot.sources)
    if window is not None:
        other = min(other, max(window.share, 1e-6) * snapshot.posts)
    everything = place.inside + place.meeting
    rest = everything - spared
    edges = 0.0
    if window is not None and len(used):
        lasting = max(1, snapshot.last - snapshot.first)
        edges = sum(end - begin for begin, end in window.edges) / lasting * snapshot.posts
    effort = float(costs[used].sum()) + min(rest, other) + min(edges, everything)
    if len(used) and effort >= WORTH * min(everything, other):
        return None
    if not len(used) and other < rest:
        return None
    return Plan(catalog, place, usable, used, left, spared, other < rest, window if len(used) else None)


def carry_out(
    plan: Plan, snapshot: Snapshot, question: Question, shape: Shape, approximate: bool, plain: Plain, tick: int
) -> Answer:
    """The answer that a plan gives."""
    window = plan.window
    middle = question if window is None else replace(question, since=window.low, until=window.high)
    parts: list[Partial] = []
    for number in plan.used.tolist():
        view = plan.usable.views[number]
        view.used = tick
        total = view.total(snapshot.sources, snapshot.keys)
        rows = total.rows(question.predicates, middle.since, middle.until) if window or question.predicates else ALL
        parts.append(part_of(total.groups, total.summaries if approximate else None, rows, shape))
    looked: list[tuple[str, Looked]] = []
    cached = 0
    if not plan.complete:
        for source in snapshot.touching(middle):
            groups, from_borders, how = _from_posts(plan, source, middle, shape, tick)
            parts.append(Partial(groups))
            cached += from_borders
            looked.append((source.name, how))
    for since, until in window.edges if window else ():
        groups, how_all = plain(replace(question, since=since, until=until))
        parts.append(Partial(groups))
        looked += how_all
    used = Used(len(plan.used), int(plan.spared), cached, tuple(looked))
    if len(parts) == 1 and len(plan.used) == 1 and _is_whole(plan, shape):
        return Answer(parts[0], used)
    return Answer(combined(parts), used)


ALL = slice(None)


def _is_whole(plan: Plan, shape: Shape) -> bool:
    """Whether the groups of the one view used are those of the answer."""
    view = plan.usable.views[int(plan.used[0])]
    return set(view.spec.attributes) == set(shape.by)


def _from_posts(plan: Plan, source: Source, question: Question, shape: Shape, tick: int) -> tuple[Groups, int, Looked]:
    """What views leave over, of one segment: (aggregates, posts from cached borders, what was looked at)."""
    segment, usable = source.segment, plan.usable
    if plan.search:
        hits = search_range(segment, question, source.gone)
        codes = cell_codes(segment.arrays["fixed"], segment.arrays["exact"], frozen(hits.rows))
        rows = rows_outside(codes, frozen(hits.rows), usable.firsts[plan.used], usable.ends[plan.used])
        return aggregate(segment, rows, shape), 0, hits.looked
    words = words_in(question, segment)
    if words.impossible:
        return aggregate(segment, NO_ROWS, shape), 0, Looked(len(segment), "vocabulary", "no post has the words", 0)
    where = (*question.place, words.code, *question.time)
    meeting, found, from_borders = plan.place.cover.meeting, [], 0
    if len(plan.catalog.borders) and len(meeting):
        near, answered = plan.catalog.borders.gather(source.name, segment, meeting, question, tick)
        found.append(check_rows(frozen(near), *segment.columns_for_checks, source.gone, *where))
        meeting, from_borders = meeting[~answered], len(near)
    nodes = np.concatenate((plan.left, meeting))
    index = (len(segment), *segment.tree, *segment.columns_for_checks, source.gone)
    rows, looked = rows_in_nodes(frozen(nodes), len(plan.left), *index, *where)
    rows = np.concatenate((rows, *found)) if found else rows
    if question.predicates and len(rows):
        rows = rows[meets_predicates(segment, question, rows)]
    why = f"{len(nodes):,} nodes beside the cache, {from_borders:,} posts from cached borders"
    return aggregate(segment, rows, shape), from_borders, Looked(len(segment), "nodes", why, looked + from_borders)


NO_ROWS = frozen(np.empty(0, np.int64))
