"""STAR's workload partitioning (STAR §6): a quadtree whose leaves are dealt out to workers in depth-first order,
in runs of about equal load, so that neighbours stay together.
"""

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from nearcast.common.errors import BadInput
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import SRQ, STQ, RouterSample
from nearcast.partitioning.sample_tally import CELLS, Rectangle, Tally, rectangles_of
from nearcast.partitioning.tiles import paint, space_partition

C1, C2, C3 = 1.0, 0.01, 0.01  # an object; an object and a continuous, a snapshot query. The paper gives no figures
BALANCE = 1.2
MOST_LEAVES = 1024

Weigh = Callable[[list[Rectangle]], tuple[np.ndarray, np.ndarray]]


def build(
    sample: RouterSample,
    workers: int,
    c1: float = C1,
    c2: float = C2,
    c3: float = C3,
    balance: float = BALANCE,
    memory: "float | Sequence[float] | None" = None,
    leaves: int = MOST_LEAVES,
    cells: int = CELLS,
) -> Partition:
    """Phase 1 splits the most loaded node in four until there are more leaves than workers; phase 2 deals them out, and
    goes on splitting until no worker has more than `balance` times the mean load and none more than its `memory`, in
    posts and queries of the sample (copies counted). It gives up balance, not memory, at `leaves` leaves, or where all
    that is left to split is single cells. Cost: O(posts + queries + cells² + splits · leaves).

    The load of a node is c1|O| + c2|O||Q_c| + c3|O||Q_s|; the text names c2 and c3 alike, the reading is that c2 is of
    continuous and c3 of snapshot queries.
    """
    tally = Tally.of(sample, cells)
    rows, rectangles = rectangles_of(sample.queries, tally.extent, cells)
    snapshot = np.isin(sample.queries.type, range(SRQ, STQ + 1))[rows]
    standing, asked = tally.only(rectangles[~snapshot]), tally.only(rectangles[snapshot])

    def weigh(parts: list[Rectangle]) -> tuple[np.ndarray, np.ndarray]:
        x0, y0, x1, y1 = np.array(parts).T
        posts = tally.posts(x0, y0, x1, y1)
        continuous, snapshots = standing.queries(x0, y0, x1, y1), asked.queries(x0, y0, x1, y1)
        return posts * (c1 + c2 * continuous + c3 * snapshots), (posts + continuous).astype(np.float64)

    limits = np.full(workers, np.inf) if memory is None else np.broadcast_to(np.asarray(memory, np.float64), workers)
    tree = _Leaves(weigh, cells)
    while len(tree) <= workers and tree.split():
        pass
    while True:
        parts, load, size = tree.depth_first()
        owner = deal(load, size, workers, limits)
        dealt = np.bincount(owner[owner >= 0], load[owner >= 0], workers)
        if owner.min() >= 0 and dealt.max() <= balance * load.sum() / workers:
            break
        hopeless = tree.heaviest_cell > balance * load.sum() / workers and owner.min() >= 0
        if hopeless or len(parts) + 3 > max(leaves, workers + 3) or not tree.split():
            break
    if owner.min() < 0:
        raise BadInput(
            f"{workers} workers that hold {limits.sum():,.0f} posts and queries are too few for a sample with "
            f"{size.sum():,.0f} of them: give them more memory, or take more workers"
        )
    return space_partition("quad", tally.extent, cells, paint(parts, cells), load, owner, workers)


def deal(load: np.ndarray, size: np.ndarray, workers: int, limits: np.ndarray) -> np.ndarray:
    """The worker of each leaf in depth-first order: worker w gets those about the w-th stretch of length L_avg of the
    summed loads. No worker's load is then further from L_avg than the largest leaf's.

    A leaf that would exceed its worker's memory goes to the next one with room, and the rest follows; to -1 if none
    has. Without any load the sizes count, without these the number of leaves.
    """
    weight = load if load.sum() > 0 else size if size.sum() > 0 else np.ones(len(load))
    middle = np.cumsum(weight) - weight / 2
    wished = np.minimum((middle * workers / weight.sum()).astype(np.int64), workers - 1)
    owner = np.full(len(load), -1, np.int32)
    held = np.zeros(workers)
    at = 0
    for leaf in range(len(load)):
        at = max(at, int(wished[leaf]))
        while at < workers and held[at] + size[leaf] > limits[at]:
            at += 1
        if at < workers:
            fits = at
        else:
            room = np.flatnonzero(held + size[leaf] <= limits)
            if not len(room):
                return owner
            fits, at = int(room[-1]), workers - 1
        owner[leaf] = fits
        held[fits] += size[leaf]
    return owner


class _Leaves:
    """The leaves of a quadtree that grows: those to be split, the most loaded first, and single cells."""

    def __init__(self, weigh: Weigh, cells: int) -> None:
        self.weigh = weigh
        self.heap: list[tuple[float, float, int, tuple[int, ...], Rectangle]] = []
        self.single: list[tuple[float, float, int, tuple[int, ...], Rectangle]] = []
        self.heaviest_cell = 0.0
        self._add([(0, 0, cells, cells)], [()])

    def _add(self, parts: list[Rectangle], paths: list[tuple[int, ...]]) -> None:
        for part, path, load, size in zip(parts, paths, *self.weigh(parts), strict=True):
            leaf = (-float(load), -float(size), len(path), path, part)
            if part[2] - part[0] == 1:
                self.single.append(leaf)
                self.heaviest_cell = max(self.heaviest_cell, float(load))
            else:
                heapq.heappush(self.heap, leaf)

    def __len__(self) -> int:
        return len(self.heap) + len(self.single)

    def split(self) -> bool:
        """Split the most loaded leaf in four quarters; False if all are single cells."""
        if not self.heap:
            return False
        *_, path, (x0, y0, x1, y1) = heapq.heappop(self.heap)
        x, y = (x0 + x1) // 2, (y0 + y1) // 2
        quarters = [(x0, y0, x, y), (x, y0, x1, y), (x0, y, x, y1), (x, y, x1, y1)]
        self._add(quarters, [(*path, i) for i in range(4)])
        return True

    def depth_first(self) -> tuple[list[Rectangle], np.ndarray, np.ndarray]:
        """Rectangle, load and size of each leaf, in the order of a walk through the tree."""
        leaves = sorted(self.single + self.heap, key=lambda leaf: leaf[3])
        return (
            [leaf[4] for leaf in leaves],
            -np.array([leaf[0] for leaf in leaves]),
            -np.array([leaf[1] for leaf in leaves]),
        )
