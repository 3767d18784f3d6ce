"""Standing aggregates with the same conditions are counted together: once, by all that any of them is grouped by.

Many series may have the conditions of a post, all those without any, say; but they differ only in GROUP BY, measures
and intervals. So posts are counted once for a *base*, in groups by the attributes of all its series and in intervals
that theirs are made of; what the batch adds to each series is then added up from those groups, which are far fewer than
posts (STAR rolls views up in the same way, §4.1.1). Frequent terms are counted for each GROUP BY of its own,
because a finer group has hardly fewer terms than its posts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np

from nearcast.common.arrays import runs
from nearcast.kinds.aggregates.group_by import added_up, merge
from nearcast.kinds.aggregates.groups import MEASURED, Groups, Shape
from nearcast.kinds.aggregates.interval_counts import AHEAD, ANY, CountedPosts, Counters, Partials, class_of
from nearcast.kinds.aggregates.series import Series


@dataclass(frozen=True)
class Recipes:
    """How groups of bases become those of series of one class. Row i: the base, the number of the series, how many
    intervals are one of its; and which attributes and measures of the base are its own.
    """

    series: np.ndarray
    by: np.ndarray
    measured: np.ndarray


class SharedCounting:
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
        self.counters = Counters(self.bases)
        self.recipes = self._recipes()

    def _recipes(self) -> dict[tuple[Shape, Shape], Recipes]:
        """Of the bases that have several series, by the classes of base and series."""
        found: dict[tuple[Shape, Shape], list[tuple[list[int], list[int], list[int]]]] = {}
        for base, some in zip(self.bases, self.members, strict=True):
            for each in (self.series[at] for at in some if len(some) > 1):
                by = [*range(AHEAD), *(AHEAD + base.shape.by.index(name) for name in each.shape.by)]
                measured = [base.shape.measured.index(name) for name in each.shape.measured]
                row = [base.number, each.number, each.interval // base.interval]
                classes = class_of(base.shape), class_of(each.shape)
                found.setdefault(classes, []).append((row, by, measured))
        return {
            classes: Recipes(*(np.array(part, np.int64) for part in zip(*rows, strict=True)))
            for classes, rows in found.items()
        }

    def count(self, posts: CountedPosts, post: np.ndarray, condition: np.ndarray) -> Partials:
        """What pairs of a post and the conditions that it meets add to all series."""
        sizes = self.starts[condition + 1] - self.starts[condition]
        at = runs(self.starts[condition], sizes)
        return self.dealt_out(self.counters.count(posts, np.repeat(post, sizes), self.by_condition[at]))

    def dealt_out(self, counted: Partials) -> Partials:
        """What was counted of bases, by series."""
        parts: dict[Shape, list[Groups]] = {}
        derived = set()
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
                    derived.add(made.shape)
        return Partials({s: (added_up if s in derived else merge)(some, ANY) for s, some in parts.items()})

    def _derived(self, groups: Groups) -> Iterator[Groups]:
        """Of groups in the order of their bases: what they are to series, class by class; the same group may be there
        several times.
        """
        bases = groups.values[:, 0]
        for (base, shape), recipes in self.recipes.items():
            if base != groups.shape:
                continue
            begins = np.searchsorted(bases, recipes.series[:, 0])
            sizes = np.searchsorted(bases, recipes.series[:, 0], side="right") - begins
            if not sizes.sum():
                continue
            some = groups.take(runs(begins, sizes))
            of = np.repeat(np.arange(len(sizes)), sizes)
            kinds, values = (np.take_along_axis(each, recipes.by[of], axis=1) for each in (some.kinds, some.values))
            values[:, 0] = recipes.series[of, 1]
            values[:, 1] = -(-values[:, 1] // recipes.series[of, 2])
            measured = recipes.measured[of]
            columns: dict[str, Any] = {
                name: np.take_along_axis(getattr(some, name), measured, axis=1) for name in MEASURED
            }
            yield replace(some, shape=shape, kinds=kinds, values=values, **columns)


def _base(number: int, series: Sequence[Series]) -> Series:
    """What some series can be added up from; a single one is its own."""
    shapes = [each.shape for each in series]
    by = tuple(dict.fromkeys(name for shape in shapes for name in shape.by))
    measured = tuple(dict.fromkeys(name for shape in shapes for name in shape.measured))
    interval = gcd(*(each.interval for each in series))
    return replace(series[0], number=number, shape=Shape(by, measured, shapes[0].terms), interval=interval)
