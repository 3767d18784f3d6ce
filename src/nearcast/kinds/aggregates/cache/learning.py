"""Choosing what to keep, from the queries that were asked (STAR §4.1.1 and §4.2).

Every query with a region suggests the view of the largest node that its region covers, any other the view of the root;
and, beyond the seed, the view of its region, and one with the attributes of all queries that suggest the same place and
words. The greedy choice of `selection` keeps those that take most load off. Then posts are chosen along the borders
that queries still overlap in part, by `borders`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.kinds.aggregates.cache.border_posts import (
    POST_BYTES,
    Borders,
    Overlap,
    Region,
    node_of,
    overlaps_of,
    posts_of,
)
from nearcast.kinds.aggregates.cache.border_posts import select as select_borders
from nearcast.kinds.aggregates.cache.catalog import Catalog
from nearcast.kinds.aggregates.cache.estimates import Estimates
from nearcast.kinds.aggregates.cache.nodes import ROOT, Cover, Quadtree
from nearcast.kinds.aggregates.cache.plan import search_effort
from nearcast.kinds.aggregates.cache.query_log import LoggedQuery
from nearcast.kinds.aggregates.cache.selection import AskedQuery, Candidate, select, select_classic
from nearcast.kinds.aggregates.cache.snapshot import Snapshot
from nearcast.kinds.aggregates.cache.views import EVERY_PLACE, MINUTE, Need, Spec, View, comparable, where
from nearcast.kinds.aggregates.kernels.border_regions import SLOTS, reaches
from nearcast.kinds.aggregates.kernels.quadtree import cell_codes
from nearcast.storage.posts.post_segment import PostSegment

MOST_NODES = 4_000  # overlapped nodes whose borders are considered, those most often asked for


@dataclass(frozen=True)
class Budget:
    """C and B of the seed, in bytes. `classic` asks for the choice of Baseline-2 (§8.2); without `regions`, views are
    of nodes only, as in the seed.
    """

    views: int
    objects: int
    classic: bool = False
    regions: bool = True


def learn(
    budget: Budget, entries: Sequence[LoggedQuery], snapshot: Snapshot, before: Catalog, arrived: float
) -> Catalog:
    """A new catalog for the queries asked. `arrived` are the posts that came while they were."""
    tree = Quadtree.of(each.segment for each in snapshot.sources)
    bare = Catalog(tree)
    views = _views(budget, entries, snapshot, bare, before, arrived) if budget.views else ()
    with_views = Catalog(tree, views)
    if not budget.objects:
        return with_views
    return Catalog(tree, views, _borders(budget.objects, entries, snapshot, with_views))


# -- views -------------------------------------------------------------------------------------------------------------


def _views(
    budget: Budget,
    entries: Sequence[LoggedQuery],
    snapshot: Snapshot,
    catalog: Catalog,
    before: Catalog,
    arrived: float,
) -> tuple[View, ...]:
    found: dict[Spec, None] = {}
    asked: list[tuple[LoggedQuery, Need, Cover]] = []
    for entry in entries:
        question = entry.question
        if not comparable(question.predicates) or (entry.timed and snapshot.own_minutes):
            continue
        if budget.classic and (question.kind or question.has_words):
            continue
        need, cover = Need.of(question, entry.shape, entry.timed, entry.counters), catalog.cover(question)
        asked.append((entry, need, cover))
        node = catalog.tree.largest(cover)
        if node is not None:
            found[Spec.of(node, need)] = None
        if budget.regions and question.kind:
            found[Spec.of(where(question), need)] = None
    specs = list(found | dict.fromkeys(_united(found)))
    candidates = _candidates(specs, snapshot, catalog, arrived)
    queries = _asked(asked, specs, snapshot)
    chosen = (select_classic if budget.classic else select)(queries, candidates, budget.views)
    kept = {view.spec: view for view in before.views}
    views, held = [], 0
    for number in chosen:
        spec = candidates[number].what
        view = kept.get(spec) or View(spec)
        try:
            view.total(snapshot.sources, snapshot.keys)
        except BadInput:  # more groups than an answer may have
            continue
        if held + view.nbytes <= budget.views:
            held += view.nbytes
            views.append(view)
    return tuple(views)


def _united(specs: Iterable[Spec]) -> list[Spec]:
    """Of views that differ only in their attributes, the one that does for all of them: it may be little larger."""
    groups: dict[tuple[object, ...], list[Spec]] = {}
    for spec in specs:
        groups.setdefault((spec.place, spec.words, spec.terms, MINUTE in spec.attributes), []).append(spec)
    out = []
    for alike in groups.values():
        attributes = frozenset(name for spec in alike for name in spec.attributes)
        measured = frozenset(name for spec in alike for name in spec.measured)
        counters = max(spec.counters for spec in alike)
        need = Need(alike[0].words, attributes, measured, alike[0].terms, counters=counters)
        out.append(Spec.of(alike[0].place, need))
    return out


def _candidates(specs: Sequence[Spec], snapshot: Snapshot, catalog: Catalog, arrived: float) -> list[Candidate]:
    estimates = Estimates(snapshot)
    out = []
    for spec in specs:
        posts = catalog.cover(spec.question).posts
        size = estimates.size(spec, posts)
        updates = arrived * (posts / snapshot.posts if snapshot.posts else 0.0) * estimates.share(spec)
        out.append(Candidate(spec.node, spec, posts, size.entries, size.space, updates, spec.place))
    return out


def _asked(
    asked: Sequence[tuple[LoggedQuery, Need, Cover]], specs: Sequence[Spec], snapshot: Snapshot
) -> list[AskedQuery]:
    by_words: dict[object, list[int]] = {}
    for number, spec in enumerate(specs):
        by_words.setdefault(spec.words, []).append(number)
    out = []
    for entry, need, cover in asked:
        able = [i for i in by_words.get(need.words, ()) if specs[i].answers(need)]
        region = where(entry.question)
        whole = tuple(i for i in able if specs[i].place == (ROOT if region == EVERY_PLACE else region))
        inside = _within(np.array([specs[i].node for i in able], np.int64), cover.inside)
        options = tuple(i for i, fits in zip(able, inside.tolist(), strict=True) if fits)
        window = snapshot.window(entry.question) if entry.timed else None
        share, edges = (window.share, snapshot.edge_effort(window)) if window is not None else (1.0, 0.0)
        posts = cover.posts
        fixed, at_most = search_effort(snapshot, entry.question, window, posts)
        out.append(AskedQuery(entry.times, posts, options, at_most, share, whole, edges, fixed))
    return out


def _within(nodes: np.ndarray, covers: np.ndarray) -> np.ndarray:
    """Which nodes lie in one of some others, which do not overlap."""
    out = np.zeros(len(nodes), np.bool_)
    above = nodes.copy()
    while (above > 0).any():
        out |= np.isin(above, covers)
        above >>= 2
    return out


# -- borders -----------------------------------------------------------------------------------------------------------


def _borders(budget: int, entries: Sequence[LoggedQuery], snapshot: Snapshot, catalog: Catalog) -> Borders:
    found: dict[tuple[int, tuple[tuple[int, float], ...]], float] = {}
    for entry in entries:
        if entry.question.kind and not entry.question.has_words:
            for node, needs in overlaps_of(catalog.cover(entry.question).meeting, entry.question):
                found[node, needs] = found.get((node, needs), 0.0) + entry.times
    times: dict[int, float] = {}
    for (node, _), n in found.items():
        times[node] = times.get(node, 0.0) + n
    nodes = np.array(sorted(sorted(times, key=lambda node: -times[node])[:MOST_NODES]), np.int64)
    if not len(nodes):
        return Borders.of(())
    held = Holdings(frozen(nodes), [each.segment for each in snapshot.sources])
    overlaps = [Overlap(node, held.posts(node), n, needs) for (node, needs), n in found.items() if node in held]
    borders = Borders.of(select_borders(overlaps, held, budget // POST_BYTES))
    for each in snapshot.sources:
        borders.rows(each.name, each.segment)
    return borders.within(budget)


class Holdings:
    """How many posts caching regions of some nodes would have: counted, not estimated."""

    def __init__(self, nodes: np.ndarray, segments: Sequence[PostSegment]) -> None:
        self._at = {node: i for i, node in enumerate(nodes.tolist())}
        rows = [posts_of(nodes, each) for each in segments]
        places = [(each.arrays["fixed"], each.arrays["exact"]) for each in segments]
        of = [node_of(nodes, cell_codes(*p, r)) for p, r in zip(places, rows, strict=True)]
        number = np.concatenate([np.empty(0, np.int64), *of])
        self._begins = np.searchsorted(np.sort(number), np.arange(len(nodes) + 1))
        self._reach = []
        for slot in range(SLOTS):
            reach = [reaches(*p, r, nodes, o, slot) for p, r, o in zip(places, rows, of, strict=True)]
            flat = np.concatenate([np.empty(0), *reach])
            self._reach.append(flat[np.lexsort((flat, number))])

    def __contains__(self, node: int) -> bool:
        return node in self._at

    def posts(self, node: int) -> float:
        at = self._at[node]
        return float(self._begins[at + 1] - self._begins[at])

    def __call__(self, region: Region) -> float:
        at = self._at[region.node]
        inside = self._reach[region.slot][self._begins[at] : self._begins[at + 1]]
        return float(np.searchsorted(inside, region.reach, side="right"))
