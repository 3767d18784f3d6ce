"""The nodes of a QT-tree and the two ways to split one (SSTD §4.1.2, Algorithm 1)."""

import heapq
from dataclasses import dataclass, field

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.kernels.grid import grid_leaves
from nearcast.partitioning.cost_model import Prices
from nearcast.partitioning.kernels.query_counts import PARTS, known_words, split_by_increment
from nearcast.partitioning.partition import BY_POST, SPACE
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import CELLS
from nearcast.storage.subscriptions.rows import take_lists

BITS = CELLS.bit_length() - 1
GAIN = 1e-9  # of a node's work, below which a textual split is not worth its leaves


@dataclass
class SplitNode:
    """A square of J and the posts in it that this node has, by number. `cut` says how its children came about."""

    level: int
    x: int
    y: int
    posts: np.ndarray
    work: float = 0.0
    cut: int = SPACE
    children: list["SplitNode"] = field(default_factory=list)


@dataclass(frozen=True)
class Planter:
    """Splits nodes. `cells` are the posts' cells of the fine grid; words[offsets[i]:offsets[i + 1]] are those words of
    post i that J knows.
    """

    j: Statistics
    cells: np.ndarray
    words: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, sample: RouterSample, j: Statistics) -> "Planter":
        posts = sample.posts
        cells = grid_leaves(frozen(posts.lon), frozen(posts.lat), frozen(np.array(j.extent)), CELLS)
        offsets = frozen(np.asarray(posts.offsets, np.int64))
        words, offsets = known_words(frozen(posts.terms), offsets, frozen(j.words.values))
        return cls(j, cells, frozen(words), frozen(offsets))

    def thinned(self, most: int) -> "Planter":
        """With at most so many posts, spread evenly over all."""
        every = -(-len(self.cells) // most)
        if every <= 1:
            return self
        kept = np.arange(0, len(self.cells), every)
        words, offsets = take_lists(self.words, self.offsets, kept)
        return Planter(self.j, self.cells[kept], frozen(words), frozen(offsets))

    def root(self) -> SplitNode:
        return self._weighed(SplitNode(0, 0, 0, frozen(np.arange(len(self.cells)))))

    def quadrants(self, posts: np.ndarray, level: int) -> np.ndarray:
        """Which quadrant of its square of `level` each post is in, row by row from the south-west."""
        shift = BITS - level - 1
        x, y = self.cells[posts] % CELLS, self.cells[posts] // CELLS
        return 2 * (y >> shift & 1) + (x >> shift & 1)

    def by_space(self, node: SplitNode) -> list[SplitNode]:
        """Four children of equal size; none where J or the grid ends."""
        if node.level >= min(BITS, self.j.depth):
            return []
        quadrant = self.quadrants(node.posts, node.level)
        return [
            self._weighed(
                SplitNode(
                    node.level + 1,
                    2 * node.x + part % 2,
                    2 * node.y + part // 2,
                    frozen(node.posts[quadrant == part]),
                )
            )
            for part in range(PARTS)
        ]

    def by_text(self, node: SplitNode, prices: Prices | None = None) -> list[SplitNode]:
        """Up to four children on the same square; none where one would have everything."""
        prices = prices or self.prices(node)
        part = split_by_increment(
            node.posts, self.words, self.offsets, prices.chances, prices.coefficients, prices.flat
        )
        groups = [frozen(node.posts[part == child]) for child in range(PARTS)]
        groups = [group for group in groups if len(group)]
        if len(groups) < 2:
            return []
        return [SplitNode(node.level, node.x, node.y, group, self._work(prices, group)) for group in groups]

    def split(self, node: SplitNode, ways: str) -> bool:
        """Give a node its children, if it can have any: those with less work in all, spatial ones among equals."""
        spatial = self.by_space(node) if ways != "text" else []
        textual = self.by_text(node) if ways != "space" else []
        if textual and ways == "greedy" and total(textual) >= node.work * (1 - GAIN):
            textual = []
        if textual and not (spatial and total(spatial) <= total(textual)):
            node.cut, node.children = BY_POST, textual
        else:
            node.cut, node.children = SPACE, spatial
        return bool(node.children)

    def prices(self, node: SplitNode) -> Prices:
        return Prices.of(self.j, node.level, node.x, node.y)

    def _weighed(self, node: SplitNode) -> SplitNode:
        node.work = self._work(self.prices(node), node.posts)
        return node

    def _work(self, prices: Prices, posts: np.ndarray) -> float:
        return len(posts) * prices.post(prices.hits(posts, self.words, self.offsets))


def total(nodes: list[SplitNode]) -> float:
    return sum(node.work for node in nodes)


def leaves(root: SplitNode) -> list[SplitNode]:
    return [leaf for child in root.children for leaf in leaves(child)] if root.children else [root]


def plant(planter: Planter, theta: int, ways: str = "greedy") -> SplitNode:
    """Algorithm 1."""
    root = planter.root()
    grow(planter, [root], theta, ways)
    return root


def grow(planter: Planter, nodes: list[SplitNode], theta: int, ways: str) -> None:
    """Split the heaviest of these nodes, or of what becomes of them, until there are θ. Nodes of equal work
    are split from the root down, so that without any work the tree is a grid.
    """
    heap = [(-node.work, node.level, number, node) for number, node in enumerate(nodes)]
    heapq.heapify(heap)
    count = number = len(nodes)
    while heap and count < theta:
        node = heapq.heappop(heap)[-1]
        if not planter.split(node, ways):
            continue
        count += len(node.children) - 1
        for child in node.children:
            heapq.heappush(heap, (-child.work, child.level, number, child))
            number += 1
