"""RP-trees, as STAR compares itself with them (STAR §8.3).

Queries are partitioned by a pivot attribute, the least frequent of those they have a predicate on, and each partition
has an R-tree of the ranges of its queries; those without a range are in a list beside it. For each pivot that a post
has, the queries whose range has it are candidates: other predicates are checked, and words last. Exact, each pair once.

The R-trees are packed (sorted by longitude into slices, and by latitude in each), FAN boxes a node.
"""

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.kernels.conditions import NULL, Posts, Values
from nearcast_papers.baselines.kernels.stab import Trees, stab_posts
from nearcast_papers.baselines.pivoted import Pivoted, least_frequent

FAN = 16


class RpTrees(Pivoted):
    def lay_out(self) -> None:
        predicates, kinds = self.queries.predicates, self.rows.kinds
        having = np.zeros((len(predicates.texts), len(predicates.names)), np.bool_)
        needing = predicates.tests[:, 1] != NULL  # false of every post without the attribute
        having[predicates.owners[needing], predicates.tests[needing, 0]] = True
        pivots = least_frequent(having[predicates.of_row])
        boxes, owners = split_boxes(self.queries.conditions.boxes, np.flatnonzero(kinds))
        lists, free, trees = [], [np.empty(0, np.int64)], PackedTrees()
        begin = 0
        for pivot in np.unique(pivots):
            mine = pivots[owners] == pivot
            rest = np.flatnonzero((pivots == pivot) & (kinds == 0))
            lists.append((pivot, trees.add(boxes[mine], owners[mine]), begin, begin + len(rest)))
            begin += len(rest)
            free.append(rest)
        tests = np.diff(predicates.starts)[predicates.of_row] > 0
        entries = self.left_open(kinds > 1, tests)
        arrays = (
            np.array(lists, np.int64).reshape(-1, 4), *trees.arrays(), np.concatenate(free),
            entries, np.zeros(len(entries), np.uint64),
        )  # fmt: skip
        self.trees = Trees(*map(frozen, arrays))

    def step(
        self, posts: Posts, values: Values, begin: int, out_posts: np.ndarray, out_rows: np.ndarray
    ) -> tuple[int, int, int]:
        return stab_posts(self.trees, self.queries.conditions, posts, values, self.inactive, begin, out_posts, out_rows)


def split_boxes(boxes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of some rows, each with its row; one that crosses the antimeridian as two."""
    west, south, east, north = boxes[rows].T
    wraps = west > east
    first = np.stack([west, south, np.where(wraps, np.inf, east), north], axis=1)
    second = np.stack([np.full(wraps.sum(), -np.inf), south[wraps], east[wraps], north[wraps]], axis=1)
    return np.concatenate([first, second]), np.concatenate([rows, rows[wraps]])


class PackedTrees:
    """R-trees in common arrays, the children of a node side by side."""

    def __init__(self) -> None:
        self.boxes, self.firsts, self.lasts = [np.empty((0, 4))], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self.leaf, self.item_boxes, self.items = [np.empty(0, np.bool_)], [np.empty((0, 4))], [np.empty(0, np.int64)]

    def add(self, boxes: np.ndarray, owners: np.ndarray) -> int:
        """One more, of these boxes; its root, -1 if there are none."""
        if not len(boxes):
            return -1
        order = packed_order(boxes)
        base = sum(map(len, self.items))
        self.item_boxes.append(boxes[order])
        self.items.append(owners[order])
        level, base_below, leaf = boxes[order], base, True
        while leaf or len(level) > 1:
            cuts = np.arange(0, len(level), FAN)
            ends = np.append(cuts[1:], len(level))
            low = np.minimum.reduceat(level[:, :2], cuts)
            high = np.maximum.reduceat(level[:, 2:], cuts)
            nodes = sum(map(len, self.firsts))
            self.boxes.append(np.concatenate([low, high], axis=1))
            self.firsts.append(cuts + base_below)
            self.lasts.append(ends + base_below)
            self.leaf.append(np.full(len(cuts), leaf))
            level, base_below, leaf = self.boxes[-1], nodes, False
        return base_below

    def arrays(self) -> tuple[np.ndarray, ...]:
        parts = (self.boxes, self.firsts, self.lasts, self.leaf, self.item_boxes, self.items)
        return tuple(np.concatenate(part) for part in parts)


def packed_order(boxes: np.ndarray) -> np.ndarray:
    """Slices by longitude, each by latitude, so that boxes which follow each other are near each other."""
    finite = np.clip(boxes, -180.0, 180.0)
    slices = max(1, int(np.ceil(np.sqrt(len(boxes) / FAN))))
    by_lon = np.argsort(finite[:, 0] + finite[:, 2], kind="stable")
    slice_of = np.empty(len(boxes), np.int64)
    slice_of[by_lon] = np.arange(len(boxes)) * slices // len(boxes)
    return np.lexsort((finite[:, 1] + finite[:, 3], slice_of))
