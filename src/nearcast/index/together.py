"""Standing aggregates with the same conditions are counted together: once, by all that any of them is grouped by.

Many series may have the conditions of a post, all those without any, say; but they differ only in GROUP BY, measures
and intervals. So posts are counted once for a *base*, in groups by the attributes of all its series and in intervals
that theirs are made of; what the batch adds to each series is then added up from those groups, which are far fewer than
posts (STAR rolls views up in the same way, seed 003 §4.1.1). Frequent terms are counted for each GROUP BY of its own,
because a finer group has hardly fewer terms than its posts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from nearcast.index.aggregate import merge, regrouped
from nearcast.index.groups import MEASURED, Groups, Shape
from nearcast.index.partials import AHEAD, ANY, Counted, Partials, class_of, count
from nearcast.index.series import Series


@dataclass(frozen=True)
class Recipe:
    """How groups of a base, of the shape `base`, become those of a series: which of its attributes and measures."""

    base: Shape
    by: tuple[int, ...]
    measured: tuple[int, ...]
    shape: Shape

    @classmethod
    def of(cls, base: Shape, shape: Shape) -> "Recipe":
        by = (*range(AHEAD), *(AHEAD + base.by.index(name) for name in shape.by))
        return cls(class_of(base), by, tuple(base.measured.index(name) for name in shape.measured), class_of(shape))


class Together:
    """Series (`condition` is the number of the conditions of each), by their bases."""

    def __init__(self, series: Sequence[Series], condition: np.ndarray) -> None:
        self.series = series
        alike: dict[tuple[object, ...], list[int]] = {}
        for at, (each, conditions) in enumerate(zip(series, condition.tolist(), strict=True)):
            alike.setdefault((conditions, each.start, each.shape if each.shape.terms else None), []).append(at)
        self.members = list(alike.values())
        self.bases = [_base(number, [series[at] for at in some]) for number, some in enumerate(self.members)]
        conditions_of = np.array([condition[some[0]] for some in self.members], np.int64)
        order = np.argsort(conditions_of, kind="stable")
        self.by_condition = order  # bases, those of a condition side by side
        self.starts = np.searchsorted(conditions_of[order], np.arange(condition.max(initial=-1) + 2))
        self.alone = np.array([series[some[0]].number if len(some) == 1 else -1 for some in self.members], np.int64)
        self.recipes = self._recipes()

    def _recipes(self) -> dict[Recipe, np.ndarray]:
        """Of the bases that have several series: (base, number of the series, how many intervals are one of its)."""
        found: dict[Recipe, list[tuple[int, int, int]]] = {}
        for base, some in zip(self.bases, self.members, strict=True):
            for each in (self.series[at] for at in some if len(some) > 1):
                recipe = Recipe.of(base.shape, each.shape)
                found.setdefault(recipe, []).append((base.number, each.number, each.interval // base.interval))
        return {recipe: np.array(several, np.int64) for recipe, several in found.items()}

    def count(self, posts: Counted, post: np.ndarray, condition: np.ndarray) -> Partials:
        """What pairs of a post and the conditions that it meets add to all series."""
        sizes = self.starts[condition + 1] - self.starts[condition]
        at = runs(self.starts[condition], sizes)
        return self.dealt_out(count(self.bases, posts, np.repeat(post, sizes), self.by_condition[at]))

    def dealt_out(self, counted: Partials) -> Partials:
        """What was counted of bases, by series."""
        parts: dict[Shape, list[Groups]] = {}
        for shape, groups in counted.parts.items():
            number = self.alone[groups.values[:, 0]]
            single = np.flatnonzero(number >= 0)
            if len(single):
                some = groups if len(single) == len(groups) else groups.take(single)
                values = some.values.copy()
                values[:, 0] = number[single]
                parts.setdefault(shape, []).append(replace(some, values=values))
            if len(single) < len(groups):
                for made in self._derived(groups.take(np.argsort(groups.values[:, 0], kind="stable"))):
                    parts.setdefault(made.shape, []).append(made)
        return Partials({shape: merge(some, ANY) for shape, some in parts.items()})

    def _derived(self, groups: Groups) -> list[Groups]:
        """Of groups in the order of their bases: those of the series, for each recipe."""
        bases, found = groups.values[:, 0], []
        for recipe, several in self.recipes.items():
            if recipe.base != groups.shape:
                continue
            begins = np.searchsorted(bases, several[:, 0])
            sizes = np.searchsorted(bases, several[:, 0], side="right") - begins
            if not sizes.sum():
                continue
            some = groups.take(runs(begins, sizes))
            values = np.ascontiguousarray(some.values[:, recipe.by])
            values[:, 0] = np.repeat(several[:, 1], sizes)
            values[:, 1] = -(-values[:, 1] // np.repeat(several[:, 2], sizes))
            columns = {name: getattr(some, name)[:, recipe.measured] for name in MEASURED}
            kinds = np.ascontiguousarray(some.kinds[:, recipe.by])
            found.append(regrouped(replace(some, shape=recipe.shape, kinds=kinds, values=values, **columns)))
        return found


def runs(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers of runs, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes), sizes)


def _base(number: int, series: Sequence[Series]) -> Series:
    """What some series can be added up from; a single one is its own."""
    shapes = [each.shape for each in series]
    by = tuple(dict.fromkeys(name for shape in shapes for name in shape.by))
    measured = tuple(dict.fromkeys(name for shape in shapes for name in shape.measured))
    interval = gcd(*(each.interval for each in series))
    return replace(series[0], number=number, shape=Shape(by, measured, shapes[0].terms), interval=interval)
