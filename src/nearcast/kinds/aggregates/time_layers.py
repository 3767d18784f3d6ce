"""Layers of time intervals over one file of partial results: STAR's MT-index (STAR §5.2) for files that stay.

Layer L_0 has the intervals of a series as they were counted; those of the layers above are 4, 16, 64 … times as long,
counted from the epoch. A window of n intervals is then the union of some 6·log4(n) of them. A file never changes, so
neither do its layers: a late post is in a later file, with an interval of its own, and a window is what all files have
of it. (`nearcast_papers.baselines.mt_index` is the same in memory, as the paper has it.)

Only layers that pay are kept: one that is hardly smaller than that below it, because most intervals have no posts or
each has groups of its own (GROUP BY minute), is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.group_by import merge, nothing, regrouped
from nearcast.kinds.aggregates.groups import MEASURED, Groups, Shape
from nearcast.kinds.aggregates.kernels.time_runs import cover_runs, window_runs

ANY = 1 << 62  # number of groups
SERIES, INTERVAL = 0, 1  # the attributes in front of those of the GROUP BY
ROWS = ("kinds", "values", "posts", *MEASURED)  # arrays of groups with a row a group
STEP = 2  # of shifts: intervals are 4 times as long
PAYS = 0.7  # a layer has at most this part of the rows below it
FEW = 24  # rows of a window that are added up as they are
LONG = 16  # intervals of a series, on average, from which on layers are made


@dataclass(frozen=True)
class Layers:
    """Partial results in order of series and interval (`groups`), and those of the layers `above` one after the other,
    each in that order, with the number of a block for the interval; `sizes` are the rows of those layers. A block of
    layer i is 2^`shifts[i]` intervals.
    """

    groups: Groups
    above: Groups
    sizes: tuple[int, ...] = ()
    shifts: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, groups: Groups) -> "Layers":
        """Without layers above."""
        return cls(in_order(groups), nothing(groups.shape))

    @classmethod
    def built(cls, groups: Groups) -> "Layers":
        """With those layers that pay."""
        groups = in_order(groups)
        series, interval = groups.values[:, SERIES], groups.values[:, INTERVAL]
        another = series[1:] != series[:-1]
        intervals = 1 + int((another | (interval[1:] != interval[:-1])).sum())
        if len(groups) < LONG or intervals < LONG * (1 + int(another.sum())):
            return cls(groups, nothing(groups.shape))
        kept, layers, shifts, shift = len(groups), list[Groups](), [0], 0
        below, blocks = groups, interval - 1
        while blocks.max() - blocks.min() > 1:
            shift += STEP
            values = below.values.copy()
            values[:, INTERVAL] = blocks >> STEP
            below = regrouped(replace(below, values=values))  # stays in order: groups are numbered when first met
            blocks = below.values[:, INTERVAL]
            if len(below) <= PAYS * kept:
                kept = len(below)
                layers.append(below)
                shifts.append(shift)
        return cls(groups, joined(layers, groups.shape), tuple(map(len, layers)), tuple(shifts))

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def series(self) -> np.ndarray:
        """Those that have any, ascending."""
        return frozen(np.unique(self.groups.values[:, SERIES]))

    @cached_property
    def _begins(self) -> np.ndarray:
        """Where each series begins in each layer, and where the last ends."""
        out, base = [], 0
        held = np.concatenate([self.groups.values[:, SERIES], self.above.values[:, SERIES]])
        for size in (len(self.groups), *self.sizes):
            places = np.searchsorted(held[base : base + size], self.series)
            out.append(np.append(places, size) + base)
            base += size
        return frozen(np.stack(out))

    @cached_property
    def _blocks(self) -> np.ndarray:
        return frozen(np.concatenate([self.groups.values[:, INTERVAL] - 1, self.above.values[:, INTERVAL]]))

    @cached_property
    def _shifts(self) -> np.ndarray:
        return frozen(np.array(self.shifts, np.int64))

    def runs(self, series: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Of each window, the intervals of a series after `first` and up to `last`, its rows of L_0: [begin, end), or
        0 and 0. Windows that have the same rows have the same partial results.
        """
        asked = (frozen(np.ascontiguousarray(each)) for each in (series, first, last))
        return window_runs(*(self.series, self._begins, self._blocks, *asked))

    def intervals(self, series: int) -> np.ndarray:
        """Those of a series that have posts, ascending."""
        at = int(np.searchsorted(self.series, series))
        if at == len(self.series) or self.series[at] != series:
            return np.empty(0, np.int64)
        begin, end = self._begins[0, at : at + 2].tolist()
        return np.unique(self._blocks[begin:end]) + 1

    def windows(self, series: np.ndarray, runs: np.ndarray) -> list[Groups]:
        """What makes up windows of some series, whose rows are `runs`: the number of the window stands for the series,
        and a group may be there several times.
        """
        found = cover_runs(*(self.series, self._begins, self._blocks, self._shifts, frozen(series), frozen(runs), FEW))
        sizes = found[:, 2] - found[:, 1]
        ends = np.cumsum(sizes)
        rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(found[:, 1] - (ends - sizes), sizes)
        window = np.repeat(found[:, 0], sizes)
        lower = rows < len(self.groups)
        parts = [
            (self.groups, rows[lower], window[lower]),
            (self.above, rows[~lower] - len(self.groups), window[~lower]),
        ]
        return [_renamed(groups.take(some), of) for groups, some, of in parts if len(some)]


def _renamed(groups: Groups, window: np.ndarray) -> Groups:
    values = groups.values.copy()
    values[:, SERIES], values[:, INTERVAL] = window, 0
    return replace(groups, values=values)


def in_order(groups: Groups) -> Groups:
    """By series and interval."""
    series, interval = groups.values[:, SERIES], groups.values[:, INTERVAL]
    later = (series[1:] > series[:-1]) | ((series[1:] == series[:-1]) & (interval[1:] >= interval[:-1]))
    return groups if later.all() else groups.take(np.lexsort((interval, series)))


def joined(layers: Sequence[Groups], shape: Shape) -> Groups:
    """Groups of the same strings one after the other: the same group may be there several times."""
    if not layers:
        return nothing(shape)
    bases = np.cumsum([0, *map(len, layers)]).tolist()
    columns = {name: np.concatenate([getattr(each, name) for each in layers]) for name in (*ROWS, "term", "term_posts")}
    of = np.concatenate([each.term_group + base for each, base in zip(layers, bases, strict=False)])
    return Groups(shape=shape, spelling=layers[0].spelling, term_group=of, **columns)


def added_up(
    files: Sequence[Layers], series: np.ndarray, first: np.ndarray, last: np.ndarray, shape: Shape
) -> tuple[np.ndarray, Groups]:
    """Windows over several files: (the number of each window, -1 where it has no posts; the groups of each number,
    which stands for the series). Windows of the same rows have the same number.
    """
    runs = [each.runs(series, first, last) for each in files]
    numbers = np.full(len(series), -1, np.int64)
    busy = np.zeros(len(series), np.bool_)
    for each in runs:
        busy |= each[:, 0] < each[:, 1]
    some = np.flatnonzero(busy)
    if not len(some):
        return numbers, nothing(shape)
    keys = np.column_stack([series[some], *(each[some] for each in runs)])
    _, firsts, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    numbers[some] = which.reshape(-1)
    distinct = some[firsts]
    found = [f.windows(series[distinct], each[distinct]) for f, each in zip(files, runs, strict=True)]
    parts = [part for parts in found for part in parts]
    return numbers, merge(parts, ANY) if len(parts) > 1 else regrouped(parts[0])
