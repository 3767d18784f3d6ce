"""What a cache holds at a time: the quadtree, the views and the cached borders. It is replaced, never changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from nearcast.cache.borders import Borders
from nearcast.cache.nodes import ROOT, Cover, Quadtree, span
from nearcast.cache.views import EVERY_PLACE, Need, View, Where, where
from nearcast.index.question import Question
from nearcast.index.rows import frozen
from nearcast.kernels.quadtree import choose, posts_in

K = TypeVar("K")
V = TypeVar("V")
MOST_REMEMBERED = 4_096  # regions and needs


@dataclass(frozen=True)
class Usable:
    """The views that answer a need, in the order of codes, and their sizes."""

    views: tuple[View, ...]
    nodes: np.ndarray
    entries: np.ndarray
    firsts: np.ndarray
    ends: np.ndarray

    def pick(self, numbers: np.ndarray) -> tuple[View, ...]:
        return tuple(self.views[number] for number in numbers.tolist())

    @classmethod
    def of(cls, views: Sequence[View]) -> "Usable":
        spans = {view.spec.node: span(view.spec.node) for view in views}
        ordered = sorted(views, key=lambda view: (spans[view.spec.node][0], -spans[view.spec.node][1]))
        nodes = np.array([view.spec.node for view in ordered], np.int64)
        bounds = np.array([spans[view.spec.node] for view in ordered], np.int64).reshape(-1, 2)
        entries = np.array([view.entries for view in ordered], np.float64)
        return cls(tuple(ordered), frozen(nodes), entries, bounds[:, 0].copy(), bounds[:, 1].copy())


@dataclass(frozen=True)
class Place:
    """A region as nodes, and about how many posts it has: in nodes it covers, and in those it overlaps in part."""

    cover: Cover
    inside: float
    meeting: float


@dataclass(frozen=True)
class Catalog:
    tree: Quadtree
    views: tuple[View, ...] = ()
    borders: Borders = field(default_factory=lambda: Borders.of(()))
    _places: dict[Where, Place] = field(default_factory=dict)
    _usable: dict[Need, Usable] = field(default_factory=dict)
    _whole: dict[tuple[Where, Need], View | None] = field(default_factory=dict)

    def place(self, question: Question) -> Place:
        key = where(question)
        found = self._places.get(key)
        if found is None:
            cover = self.tree.cover(question)
            codes, weight = self.tree.codes, self.tree.weight
            inside, meeting = (
                weight * float(sum(posts_in(codes, node) for node in nodes)) for nodes in (cover.inside, cover.meeting)
            )
            _remember(self._places, key, found := Place(cover, inside, meeting))
        return found

    def usable(self, need: Need) -> Usable:
        found = self._usable.get(need)
        if found is None:
            mine = self._by_words.get(need.words, ())
            able = [view for view in mine if view.spec.node and view.spec.answers(need)]
            _remember(self._usable, need, found := Usable.of(able))
        return found

    def whole(self, region: Where, need: Need) -> View | None:
        """The smallest view that answers a need for all of a region."""
        key = region, need
        if key not in self._whole:
            place = ROOT if region == EVERY_PLACE else region
            able = [v for v in self._by_words.get(need.words, ()) if v.spec.place == place and v.spec.answers(need)]
            _remember(self._whole, key, min(able, key=lambda view: view.entries, default=None))
        return self._whole.get(key)

    @cached_property
    def _by_words(self) -> dict[object, list[View]]:
        found: dict[object, list[View]] = {}
        for view in self.views:
            found.setdefault(view.spec.words, []).append(view)
        return found

    def choose(self, place: Place, usable: Usable, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """§4.1.3: (the views to use, the covered nodes left to posts, the posts in the nodes of those views)."""
        tree = self.tree
        return choose(tree.codes, tree.weight, place.cover.inside, usable.nodes, frozen(costs))


def _remember(memory: dict[K, V], key: K, value: V) -> None:
    while len(memory) >= MOST_REMEMBERED:
        memory.pop(next(iter(memory), key), None)
    memory[key] = value
