"""A distribution by cell of a quadtree: of keywords, of numbers of words, of lengths of life (SSTD §4.1.1)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.kernels.query_counts import first_cell, spread_values

ALL, ENDING = 0, 1


@dataclass(frozen=True)
class Spread:
    """`weight` of each `value` at a `place`, sorted by both. A place is (cell * 2 + ending) * kinds + kind.

    A query counts in every cell it touches, from the root to the level where it would touch more than 16 cells, or to
    the last level kept; there its values are marked as ending, and they count for every cell below. So what is said of
    a cell is exact for the queries that are small against it, and takes in those of its surroundings that are large.
    """

    kinds: int
    place: np.ndarray
    value: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        rectangles: np.ndarray,
        bits: int,
        depth: int,
        kind: np.ndarray,
        kinds: int,
        offsets: np.ndarray,
        values: np.ndarray,
        weights: np.ndarray,
    ) -> "Spread":
        """Of queries with values[offsets[r]:offsets[r + 1]], over a grid of 2**bits cells a side; `kind` is below 0 for
        those to be left out.
        """
        known, index = np.unique(values, return_inverse=True)
        count = max(len(known), 1)
        keys, sums = spread_values(
            frozen(rows),
            frozen(rectangles),
            bits,
            depth,
            frozen(np.asarray(offsets, np.int64)),
            frozen(index.astype(np.int64)),
            frozen(np.asarray(weights, np.float64)),
            frozen(np.asarray(kind, np.int64)),
            kinds,
            count,
        )
        order = np.argsort(keys)
        keys = keys[order]
        return cls(kinds, keys // count, known[keys % count].astype(np.uint64), sums[order])

    def merged(self, other: "Spread") -> "Spread":
        place = np.concatenate((self.place, other.place))
        value = np.concatenate((self.value, other.value))
        weight = np.concatenate((self.weight, other.weight))
        order = np.lexsort((value, place))
        place, value, weight = place[order], value[order], weight[order]
        if not len(place):
            return self
        starts = np.flatnonzero(np.r_[True, (place[1:] != place[:-1]) | (value[1:] != value[:-1])])
        return Spread(self.kinds, place[starts], value[starts], np.add.reduceat(weight, starts))

    def aged(self, factor: float, least: float) -> "Spread":
        """Every weight times `factor`; what falls below `least` is forgotten."""
        weight = self.weight * factor
        kept = weight >= least
        return replace(self, place=self.place[kept], value=self.value[kept], weight=weight[kept])

    @cached_property
    def values(self) -> np.ndarray:
        """All values there are, sorted."""
        return np.unique(self.value)

    @cached_property
    def index(self) -> np.ndarray:
        """Where each entry's value is in `values`."""
        return np.searchsorted(self.values, self.value)

    def at(self, kind: int, level: int, x: int, y: int) -> tuple[np.ndarray, np.ndarray]:
        """(entry, weight) of one kind in the cell (x, y) of a level: positions in `index` and what they weigh. A value
        may come more than once.
        """
        spans = []
        for up in range(level + 1):
            cell = int(first_cell(level - up)) + (y >> up) * (1 << (level - up)) + (x >> up)
            for ending in (ENDING,) if up else (ALL, ENDING):
                spot = (cell * 2 + ending) * self.kinds + kind
                spans.append(np.searchsorted(self.place, (spot, spot + 1)))
        entries = np.concatenate([np.arange(a, b) for a, b in spans])
        return entries, self.weight[entries]
