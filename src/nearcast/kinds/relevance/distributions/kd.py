"""A kd-tree whose leaves cost alike (Skype §7.3.2, Algorithm 3)."""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import freeze
from nearcast.kinds.relevance.distributions.subscriber_arrays import as_kind
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import least
from nearcast.kinds.relevance.kernels.distribution import dealt, leaves_at

LEAF = -1
COLUMNS = ("axis", "cut", "low", "high")
Places = tuple[np.ndarray, np.ndarray]  # lon, lat


@dataclass(frozen=True)
class KdTree:
    """Nodes as `kinds.relevance.kernels.distribution.leaves_at` has them. A leaf has the slots low to high: more than
    one where subscribers are all at one place, or none was known; they are dealt out by their keys then.
    """

    axis: np.ndarray
    cut: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, subscribers: Places, posts: Places, shares: np.ndarray) -> "KdTree":
        """A node costs C(nd) = N(nd) * p(nd) (equation 15): subscribers inside times posts inside. By lon and by lat in
        turns, a node is cut at the subscriber's coordinate that makes |C(nd1) - C(nd2)| least; by the other where all
        coordinates are the same. Slots weigh as `shares` say: see `cut_words`. Among equals the cut with the
        most even numbers of subscribers. O(n log n) a level.
        """
        nodes: list[list[float]] = []

        def split(inside: Places, beside: Places, first: int, last: int, depth: int) -> int:
            number = len(nodes)
            nodes.append([LEAF, 0.0, first, last])
            middle = (first + last) // 2
            weights = int(shares[first:middle].sum()), int(shares[middle:last].sum())
            for axis in (depth % 2, 1 - depth % 2) if last - first > 1 else ():
                cut = best_cut(inside[axis], beside[axis], *weights)
                if cut is not None:
                    below = [each[axis] <= cut for each in (inside, beside)]
                    low = split(*_take((inside, beside), below), first, middle, depth + 1)
                    above = [~each for each in below]
                    high = split(*_take((inside, beside), above), middle, last, depth + 1)
                    nodes[number] = [axis, cut, low, high]
                    break
            return number

        split(subscribers, posts, 0, len(shares), 0)
        table = np.array(nodes).reshape(-1, 4)
        return cls(table[:, 0].astype(np.int8), table[:, 1].copy(), *table[:, 2:].T.astype(np.int32))

    def slots(self, lon: np.ndarray, lat: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The slot of each subscriber."""
        leaf = leaves_at(
            as_kind(lon, np.float64), as_kind(lat, np.float64), as_kind(self.axis, np.int8),
            as_kind(self.cut, np.float64), as_kind(self.low, np.int32), as_kind(self.high, np.int32),
        )  # fmt: skip
        out = self.low[leaf].astype(np.int64)
        several = np.flatnonzero(self.high[leaf] - self.low[leaf] > 1)
        counts = (self.high - self.low)[leaf[several]]
        out[several] += dealt(as_kind(keys[several], np.uint64), as_kind(counts, np.int64))
        return out


def best_cut(coordinates: np.ndarray, posts: np.ndarray, low: int, high: int) -> float | None:
    """The coordinate that cuts best, what is at it going to the low side; None where all are the same."""
    values, counts = np.unique(coordinates, return_counts=True)
    if len(values) < 2:
        return None
    below = np.cumsum(counts)[:-1]
    before = np.searchsorted(np.sort(posts), values[:-1], "right")
    sizes = np.stack((below, len(coordinates) - below))
    costs = sizes * np.stack((before, len(posts) - before))
    return float(values[least(costs, sizes, low, high)])


def _take(places: tuple[Places, Places], masks: list[np.ndarray]) -> tuple[Places, Places]:
    (lon, lat), (post_lon, post_lat) = places
    mine, theirs = masks
    return (lon[mine], lat[mine]), (post_lon[theirs], post_lat[theirs])
