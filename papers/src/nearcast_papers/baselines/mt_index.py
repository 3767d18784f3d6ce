"""The MT-index, STAR's layers of time intervals (STAR §5.2): windows added up from few partial results.

Layer L_0 has intervals of length r, and an interval of L_{i+1} is made of two adjacent ones of L_i. A window that ends
at any multiple of r is the union of at most 2·log2(W/r) of them, where L_0 alone would take W/r. Each interval holds
the partial results of all series that have posts in it, as one `Groups`, so that many series are added up at once.

- Posts add to the interval of their own time; a late one also to the intervals above it that have been made already.
- When time reaches the end of an interval, those that no window covers any more are dropped, and pairs become intervals
  of the layer above. An interval without posts takes no memory, and one whose other half is empty is that half.
- The general case: series whose windows and beats differ share an index if r is the greatest common divisor of all
  their windows and beats, so that each window of each beat is made of whole intervals, also one that is no multiple of
  its beat; W is the longest window. To avoid a very large W with a small r, there is an index for each class of windows
  (`kinds.aggregates.series`).

The paper counts its layers from where the stream began; here they are counted from the epoch, so that what is made does
not depend on when a process began to make it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

import numpy as np

from nearcast.kinds.aggregates.group_by import merge, nothing
from nearcast.kinds.aggregates.groups import MEASURED, Groups, Shape

ANY = 1 << 62  # number of groups
BEFORE = -(2**62)  # no time has come
SERIES, INTERVAL = 0, 1  # the attributes in front of those of the GROUP BY
ROWS = ("kinds", "values", "posts", *MEASURED)  # arrays of groups with a row a group


def common_interval(windows: Sequence[int], beats: Sequence[int]) -> int:
    """The longest interval that all windows of all beats are made of."""
    return gcd(*windows, *beats)


@dataclass(frozen=True)
class Interval:
    """Partial results of one interval, in order of series."""

    groups: Groups

    @classmethod
    def of(cls, groups: Groups) -> "Interval":
        series = groups.values[:, SERIES]
        if (series[1:] < series[:-1]).any():
            groups = groups.take(np.argsort(series, kind="stable"))
        return cls(groups)

    @cached_property
    def series(self) -> np.ndarray:
        return np.ascontiguousarray(self.groups.values[:, SERIES])

    def asked(self, series: np.ndarray, places: np.ndarray) -> Groups:
        """The groups of some series, each known by its place from now on; a series may be asked for several times."""
        first = np.searchsorted(self.series, series, side="left")
        counts = np.searchsorted(self.series, series, side="right") - first
        ends = np.cumsum(counts)
        rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - (ends - counts), counts)
        some = self.groups.take(rows)
        values = some.values.copy()
        values[:, SERIES], values[:, INTERVAL] = np.repeat(places, counts), 0
        return replace(some, values=values)

    @property
    def nbytes(self) -> int:
        names = (*ROWS, "term_group", "term", "term_posts")
        return sum(int(getattr(self.groups, name).nbytes) for name in names)


class MtIndex:
    """Of series with one shape (which begins with series and interval), intervals of `length` and windows of at most
    `reach` (microseconds, a multiple of `length`). Interval j is the time ((j − 1)·length, j·length].

    Exact for every window (begin, end] of whole intervals that ends no later than `reach` after its begin and begins no
    earlier than `reach` before the time of the last `advance`. Without `layered` there is L_0 only.
    """

    def __init__(self, shape: Shape, length: int, reach: int, layered: bool = True) -> None:
        if length <= 0 or reach <= 0 or reach % length:
            raise ValueError("windows are made of whole intervals")
        self.shape, self.length, self.reach = shape, length, reach // length
        self.top = self.reach.bit_length() - 1 if layered else 0
        self.layers: list[dict[int, Interval]] = [{} for _ in range(self.top + 1)]
        self.fresh: dict[tuple[int, int], list[Groups]] = {}  # what has been added to an interval since it was read
        self.now = BEFORE

    @property
    def nbytes(self) -> int:
        self._settle()
        each_once = {id(each): each for layer in self.layers for each in layer.values()}
        return sum(each.nbytes for each in each_once.values())

    # -- adding --------------------------------------------------------------------------------------------------------

    def add(self, partials: Groups) -> None:
        """Partial results by (series, number of the interval, …). What is older than any window reaches is ignored."""
        numbers = partials.values[:, INTERVAL]
        for number in np.unique(numbers[numbers > self.now - self.reach]).tolist():
            part = partials.take(np.flatnonzero(numbers == number))
            for layer in range(self.top + 1):
                block = (number - 1) >> layer
                if layer == 0 or (self._made(layer, block) and block << layer >= self.now - self.reach):
                    self.fresh.setdefault((layer, block), []).append(part)

    def advance(self, now: int) -> None:
        """Time has come to `now` (microseconds): drop what no window covers, and make the intervals that are over."""
        self._settle()
        self.now = max(self.now, now // self.length)
        oldest = self.now - self.reach  # windows have intervals after this one
        for layer, blocks in enumerate(self.layers):
            for block in [block for block in blocks if block << layer < oldest]:
                del blocks[block]
        for layer in range(self.top):
            halves, wholes = self.layers[layer], self.layers[layer + 1]
            for block in {block >> 1 for block in halves}:
                if block not in wholes and self._made(layer + 1, block) and block << (layer + 1) >= oldest:
                    parts = [halves[half] for half in (2 * block, 2 * block + 1) if half in halves]
                    wholes[block] = parts[0] if len(parts) == 1 else joined([part.groups for part in parts])

    def _made(self, layer: int, block: int) -> bool:
        """Whether an interval is over, and made if it has posts. Block b of a layer are intervals b·2^layer + 1 and on
        to (b + 1)·2^layer.
        """
        return (block + 1) << layer <= self.now

    def _settle(self) -> None:
        """Put what was added into its intervals."""
        for (layer, block), parts in self.fresh.items():
            known = self.layers[layer].get(block)
            self.layers[layer][block] = joined([*([known.groups] if known else []), *parts])
        self.fresh.clear()

    # -- adding up -----------------------------------------------------------------------------------------------------

    def cover(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The fewest (layer, block) that make up the intervals after `begin` up to `end`, of those that are made."""
        while begin < end:
            layer = min(self.top, (end - begin).bit_length() - 1)
            if begin:
                layer = min(layer, (begin & -begin).bit_length() - 1)
            while layer and not self._made(layer, begin >> layer):
                layer -= 1
            yield layer, begin >> layer
            begin += 1 << layer

    def combine(self, series: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Groups:
        """What each series has counted in the window (begin, end], in microseconds. In the result the place of the
        request stands for the series, and the interval is 0; groups are in order of requests.
        """
        self._settle()
        first, last = begin // self.length, end // self.length
        if len(series) and (int(first.min()) < self.now - self.reach or (end - begin).max() > self.reach * self.length):
            raise ValueError("a window reaches further back than what is kept")
        parts = []
        windows, which = np.unique(np.stack([first, last]), axis=1, return_inverse=True)
        for window, (low, high) in enumerate(windows.T.tolist()):
            places = np.flatnonzero(which.reshape(-1) == window)
            for layer, block in self.cover(low, high):
                if block in self.layers[layer]:
                    parts.append(self.layers[layer][block].asked(series[places], places))
        whole = merge(parts, ANY, in_order=True) if parts else nothing(self.shape)
        return Interval.of(whole).groups


def joined(parts: Sequence[Groups]) -> Interval:
    """Partial results of intervals as those of one."""
    parts = [one_interval(part) for part in parts]
    return Interval.of(merge(parts, ANY, in_order=True))


def one_interval(groups: Groups) -> Groups:
    """Without the number of the interval."""
    if not groups.values[:, INTERVAL].any():
        return groups
    values = groups.values.copy()
    values[:, INTERVAL] = 0
    return replace(groups, values=values)
