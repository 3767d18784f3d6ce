"""Which views to keep (STAR §4.1.1): those that take most load off for the space they need.

Pure functions over estimates. The load of a worker (Definition 4.1, eq. 1) is c1 times the updates of views by new
posts, plus c2 times what queries look at: the entries of views (n2) and posts (n3). What a query looks at is the
cheapest way to answer it with the views there are: the recursion of §4.1.3 over the nodes of the quadtree.
"""

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nearcast.kinds.aggregates.cache.nodes import span

UPDATE = 3.0  # c1: what updating a view with a post costs, in posts looked at
LOOK = 1.0  # c2
OPENING = 1_000.0  # what using a view costs whatever its size: some 0.1 ms, where a post takes 100 ns
SEGMENT = 1_500.0  # what searching a segment costs whatever is found


@dataclass(frozen=True)
class Candidate:
    """A view that might be kept.

    `what` says what it holds of the posts of its `place`, which is a node, or a region (node 0): two candidates of one
    place may hold different things. `posts` are those in it, `entries` its size, `space` its bytes, `updates` the posts
    that arrive for it in the time that the queries were counted in.
    """

    node: int
    what: Any
    posts: float
    entries: float
    space: float
    updates: float = 0.0
    place: object = None

    @cached_property
    def codes(self) -> tuple[int, int]:
        return span(self.node)


@dataclass(frozen=True)
class AskedQuery:
    """A query that was asked `times` times: the `posts` to look at without any view, and the candidates (by number)
    that hold what it wants of a node that it covers (`options`) or of all its region (`whole`).

    `at_most`: no more than so many posts need ever be looked at, because of its words or its time. `share` is the part
    of a view's entries that its time asks for, `edges` what is left to posts of a time that is not whole minutes.
    `fixed` is what searching the segments costs, whatever is found.
    """

    times: float
    posts: float
    options: tuple[int, ...]
    at_most: float = float("inf")
    share: float = 1.0
    whole: tuple[int, ...] = ()
    edges: float = 0.0
    fixed: float = 0.0


def effort(query: AskedQuery, candidates: Sequence[Candidate], views: Collection[int]) -> float:
    """n2 + n3 of one query (§4.1.3): of each node that has a view, the view or what is below it, whichever is less; or
    the view of all its region.
    """
    usable = sorted((i for i in query.options if i in views), key=lambda i: _preorder(candidates[i]))
    least = query.fixed + min(query.posts, query.at_most)
    less = sum_of_best(usable, candidates, query.share)
    if less < 0.0:
        least = min(least, query.fixed + min(query.posts + less, query.at_most) + query.edges)
    whole = (query.share * candidates[i].entries + OPENING + query.edges for i in query.whole if i in views)
    return min(least, min(whole, default=least))


def sum_of_best(usable: Sequence[int], candidates: Sequence[Candidate], share: float = 1.0) -> float:
    """How much less than all posts the best choice of views looks at (never above 0); `usable` in order of codes."""
    roots: list[tuple[int, float]] = []  # nodes not yet below another: first code, and how much less
    for i in reversed(usable):
        view = candidates[i]
        below = 0.0
        while roots and roots[-1][0] < view.codes[1]:
            below += roots.pop()[1]
        roots.append((view.codes[0], min(share * view.entries + OPENING - view.posts, below)))
    return sum(less for _, less in roots)


def load(queries: Sequence[AskedQuery], candidates: Sequence[Candidate], views: Collection[int]) -> float:
    """L of Definition 4.1, with these views kept."""
    return UPDATE * sum(candidates[i].updates for i in views) + LOOK * sum(
        each.times * effort(each, candidates, views) for each in queries
    )


class Workload:
    """The queries and the candidates, and what keeping one more would bring (eq. 2), without counting all again."""

    def __init__(self, queries: Sequence[AskedQuery], candidates: Sequence[Candidate]) -> None:
        self.queries, self.candidates = queries, candidates
        self.kept: set[int] = set()
        self._of: list[list[int]] = [[] for _ in candidates]  # Q(v): the queries that a view helps to answer
        for number, each in enumerate(queries):
            for i in {*each.options, *each.whole}:
                self._of[i].append(number)
        self._effort = [effort(each, candidates, ()) for each in queries]

    def asked(self, view: int) -> frozenset[int]:
        return frozenset(self._of[view])

    def benefit(self, view: int) -> float:
        """B(v, S) = max(L(S) − L(S ∪ {v}), 0)."""
        return max(0.0, self._gain(view, self.kept | {view}))

    def _gain(self, view: int, views: Collection[int]) -> float:
        less = sum(
            self.queries[q].times * (self._effort[q] - effort(self.queries[q], self.candidates, views))
            for q in self._of[view]
        )
        return LOOK * less - UPDATE * self.candidates[view].updates

    def keep(self, view: int) -> None:
        self.kept.add(view)
        for q in self._of[view]:
            self._effort[q] = effort(self.queries[q], self.candidates, self.kept)

    def is_dominated(self, view: int, by: int) -> bool:
        """Definition 4.2: `by` answers what `view` answers, and to keep both is more load than to keep `by`."""
        first, second = self.candidates[view], self.candidates[by]
        if view == by or first.place != second.place or not self.asked(view) <= self.asked(by):
            return False
        queries = [self.queries[q] for q in self._of[view]]
        less = sum(
            q.times * (effort(q, self.candidates, (by,)) - effort(q, self.candidates, (view, by))) for q in queries
        )
        return LOOK * less < UPDATE * first.updates


def select(queries: Sequence[AskedQuery], candidates: Sequence[Candidate], capacity: float) -> Iterator[int]:
    """The views to keep, in the order of their benefit for a byte, until none brings anything or fits.

    Load-aware greedy: what a chosen view dominates is no candidate any more. Benefits are counted again only where a
    candidate would be next; they hardly ever grow as more views are kept.
    """
    work = Workload(queries, candidates)
    here: dict[object, list[int]] = {}
    for i, view in enumerate(candidates):
        here.setdefault(view.place, []).append(i)
    heap = [(-work.benefit(i) / max(1.0, view.space), i, 0) for i, view in enumerate(candidates)]
    heapq.heapify(heap)
    out: set[int] = set()
    left = capacity
    while heap:
        value, i, counted = heapq.heappop(heap)
        if i in out or value >= 0.0 or candidates[i].space > left:
            continue
        if counted < len(work.kept):
            heapq.heappush(heap, (-work.benefit(i) / max(1.0, candidates[i].space), i, len(work.kept)))
            continue
        work.keep(i)
        left -= candidates[i].space
        out.add(i)
        out |= {other for other in here[candidates[i].place] if other not in out and work.is_dominated(other, i)}
        yield i


def select_classic(queries: Sequence[AskedQuery], candidates: Sequence[Candidate], capacity: float) -> Iterator[int]:
    """The classic greedy choice (Baseline-2 of §8.2): benefit for a byte, blind to what keeping a view up costs.

    Baseline-2 is given candidates of queries without a range and words only.
    """
    free = [replace(each, updates=0.0) for each in candidates]
    work = Workload(queries, free)
    left = capacity
    while True:
        fitting = [i for i, each in enumerate(free) if i not in work.kept and each.space <= left]
        best = max(fitting, key=lambda i: (work.benefit(i) / max(1.0, free[i].space), -i), default=None)
        if best is None or work.benefit(best) <= 0.0:
            return
        work.keep(best)
        left -= free[best].space
        yield best


def _preorder(view: Candidate) -> tuple[int, int]:
    first, end = view.codes
    return first, -end
