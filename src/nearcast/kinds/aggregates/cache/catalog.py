"""What a cache holds at a time: the quadtree, the views and the cached borders. It is replaced, never changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.cache.border_posts import Borders
from nearcast.kinds.aggregates.cache.nodes import ROOT, Cover, Quadtree, span
from nearcast.kinds.aggregates.cache.views import EVERY_PLACE, Need, View, Where, where
from nearcast.kinds.aggregates.kernels.quadtree import choose
from nearcast.storage.posts.question import Question

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
class Catalog:
    tree: Quadtree
    views: tuple[View, ...] = ()
    borders: Borders = field(default_factory=lambda: Borders.of(()))
    _covers: dict[Where, Cover] = field(default_factory=dict)
    _usable: dict[Need, Usable] = field(default_factory=dict)
    _whole: dict[tuple[Where, Need], View | None] = field(default_factory=dict)

    def cover(self, question: Question) -> Cover:
        key = where(question)
        found = self._covers.get(key)
        if found is None:
            _remember(self._covers, key, found := self.tree.cover(question))
        return found

    def usable(self, need: Need) -> Usable:
        found = self._usable.get(need)
        if found is None:
            mine = self._by_words.get(need.words, ())
            _remember(self._usable, need, found := Usable.of([view for view in mine if view.spec.answers(need)]))
        return found

    def whole(self, region: Where, need: Need) -> View | None:
        """The smallest view that answers a need for all of a region."""
        key = region, need
        if key not in self._whole:
            place = ROOT if region == EVERY_PLACE else region
            able = [view for view in self._by_place.get((place, need.words), ()) if view.spec.answers(need)]
            _remember(self._whole, key, min(able, key=lambda view: view.entries, default=None))
        return self._whole.get(key)

    @cached_property
    def _by_words(self) -> dict[object, list[View]]:
        """The views of nodes."""
        found: dict[object, list[View]] = {}
        for view in self.views:
            if view.spec.node:
                found.setdefault(view.spec.words, []).append(view)
        return found

    @cached_property
    def _by_place(self) -> dict[object, list[View]]:
        found: dict[object, list[View]] = {}
        for view in self.views:
            found.setdefault((view.spec.place, view.spec.words), []).append(view)
        return found

    def choose(self, cover: Cover, usable: Usable, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """§4.1.3: (the views to use, the covered nodes left to posts, the posts in the nodes of those views)."""
        return choose(self.tree.codes, self.tree.weight, cover.inside, usable.nodes, frozen(costs))


def _remember(memory: dict[K, V], key: K, value: V) -> None:
    while len(memory) >= MOST_REMEMBERED:
        memory.pop(next(iter(memory), key), None)
    memory[key] = value
