"""SSTD's QT-tree adjustment FG (SSTD §5.3): heavy leaves are split and light ones merged, then all are dealt out
again by FM.
"""

from dataclasses import replace

import numpy as np

from nearcast.partitioning.balancers.reallocation import RATIO, reallocated
from nearcast.partitioning.karmarkar_karp import karmarkar_karp
from nearcast.partitioning.moves import Loads, Move, imbalance, worker_loads
from nearcast.partitioning.partition import BY_POST, SPACE, Partition
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.redrawn import DrawnNode, Leaf, Redrawn, move_of, plain
from nearcast.partitioning.router_sample import SKQ, SRQ
from nearcast.partitioning.sample_tally import Rectangle
from nearcast.partitioning.tiles import area, bounds, rectangle

EPSILON = 0.5  # ε
PARTS = 4


def adjust(
    partition: Partition, loads: Loads, statistics: Statistics, ratio: float = RATIO, epsilon: float = EPSILON
) -> Move | None:
    """Where L_max / L_min > λ (`ratio`): in each round the most loaded leaf is split and the lightest four that can be
    are merged, until Karmarkar-Karp finds an allotment within λ, or the merged would outweigh the greatest leaf. Where
    there is nothing to merge the tree grows, to twice its leaves at most. None if the greatest load does not fall.

    `statistics` (J) must be over the partition's extent. Leaves of BY_QUERY nodes, which are not the QT-tree's, stay.
    """
    load = worker_loads(partition, loads.leaf_load)
    if imbalance(load) <= ratio:
        return None
    tree = _Tree(partition, loads, statistics, epsilon)
    most = 2 * partition.leaves + PARTS
    while tree.count < most and not tree.balanced(ratio) and tree.split() and tree.merge():
        pass
    after, predicted = tree.redrawn.finished()
    shuffled = reallocated(after, replace(loads, leaf_load=predicted), list(range(after.workers)))
    after = replace(after, owner=shuffled)
    cause = f"L_max / L_min is {imbalance(load):.3g}, more than {ratio:g}: {tree.splits} splits, {tree.merges} merges"
    move = move_of(partition, loads, after, predicted, "fg", cause)
    return move if move.effect > 0 else None


def similarity(parent: np.ndarray, children: np.ndarray) -> float:
    """ĥ of §5.3, from N_0.p_j and N_i.p_j: the share of the parent's queries that touch a child, on average over the
    four children and the types of query.

    The text prints Σ_i Σ_j (N_i.p_j / N_0.p_j) over 4 Σ_j (N_0.p_j / N_0.p_j). Read as here, the denominator counts the
    types with N_0.p_j > 0 and the others are left out of both sums, which is the guard against 0 / 0. So ĥ is 1 where
    every query touches every child and a quarter where each touches one. Without any query it is 0: nothing speaks for
    words.
    """
    known = parent > 0
    if not known.any():
        return 0.0
    return float((children[:, known] / parent[known]).sum() / (len(children) * known.sum()))


def smallest_cover(part: Rectangle, cells: int, depth: int) -> tuple[int, int, int]:
    """(level, x, y) of the smallest node of J with children that covers a rectangle of cells (of `cells` a side)."""
    for level in range(depth - 1, -1, -1):
        x, y = part[0] * (1 << level) // cells, part[1] * (1 << level) // cells
        if (part[2] << level) <= (x + 1) * cells and (part[3] << level) <= (y + 1) * cells:
            return level, x, y
    return 0, 0, 0


class _Tree:
    """The leaves of a partition as they are split and merged."""

    def __init__(self, partition: Partition, loads: Loads, statistics: Statistics, epsilon: float) -> None:
        self.statistics, self.epsilon = statistics, epsilon
        self.cells, self.workers = partition.cells, partition.workers
        self.redrawn = Redrawn(partition, loads)
        held = np.bincount(partition.node, minlength=partition.nodes)
        loaded = self.redrawn.loaded
        total = np.bincount(partition.node[loaded], self.redrawn.cell_load[loaded], partition.nodes)
        self.part: dict[int, Rectangle | None] = {}  # of the nodes there are; None if it is no rectangle
        self.load: dict[int, float] = {}
        for node, row in enumerate(bounds(partition)):
            self.part[node] = rectangle(row) if area(rectangle(row)) == held[node] else None
            self.load[node] = float(total[node])
        self.halved: set[int] = set()  # nodes that come from a split
        self.splits = self.merges = 0

    def leaves(self) -> list[tuple[float, int, int]]:
        """(load, node, which of its leaves) of all leaves."""
        nodes = self.redrawn.nodes
        return [(self.load[n] * leaf.share, n, i) for n in self.part for i, leaf in enumerate(nodes[n].leaves)]

    @property
    def count(self) -> int:
        return sum(len(self.redrawn.nodes[n].leaves) for n in self.part)

    def balanced(self, ratio: float) -> bool:
        load = np.array([each for each, _, _ in self.leaves()])
        return imbalance(np.bincount(karmarkar_karp(load, self.workers), load, self.workers)) <= ratio

    def split(self) -> bool:
        """Split the most loaded leaf, by space or by words (eq. 3); False if it cannot be."""
        _, node, which = max(self.leaves(), key=lambda leaf: (leaf[0], -leaf[1], -leaf[2]))
        part, kind = self.part[node], self.redrawn.nodes[node].kind
        done = False
        if kind == SPACE and part is not None:
            level, x, y = smallest_cover(part, self.cells, self.statistics.depth)
            children = [(level + 1, 2 * x + i, 2 * y + j) for j in (0, 1) for i in (0, 1)]
            parent = self.statistics.chances(level, x, y)
            alike = similarity(parent, np.array([self.statistics.chances(*child) for child in children]))
            textual = alike > self.epsilon or area(part) == 1
            done = (textual and self._by_words(node, self._words(level, x, y))) or self._by_space(node, part)
        elif kind == BY_POST:
            done = self._further(node, which)
        self.splits += done
        return done

    def _by_space(self, node: int, part: Rectangle) -> bool:
        x0, y0, x1, y1 = part
        x, y = (x0 + x1 + 1) // 2, (y0 + y1 + 1) // 2
        quarters = [(x0, y0, x, y), (x, y0, x1, y), (x0, y, x, y1), (x, y, x1, y1)]
        quarters = [quarter for quarter in quarters if area(quarter) > 0]
        if len(quarters) < 2:
            return False
        owner = self.redrawn.nodes[node].leaves[0].owner
        self.halved.update([self._add(quarter, plain(owner)) for quarter in quarters])
        self._drop(node)
        return True

    def _by_words(self, node: int, words: np.ndarray) -> bool:
        """Four leaves for the same place, to which the words of queries are dealt out, the most frequent first."""
        part = self.part[node]
        if len(words) < PARTS or part is None:
            return False
        owner = self.redrawn.nodes[node].leaves[0].owner
        leaves = tuple(Leaf(owner, np.sort(words[i::PARTS]), 1 / PARTS) for i in range(PARTS))
        self.halved.add(self._add(part, DrawnNode(BY_POST, leaves)))
        self._drop(node)
        return True

    def _further(self, node: int, which: int) -> bool:
        """A leaf of words in four, in the same node."""
        old = self.redrawn.nodes[node].leaves
        leaf = old[which]
        if len(leaf.words) < PARTS:
            return False
        four = tuple(Leaf(leaf.owner, leaf.words[i::PARTS], leaf.share / PARTS) for i in range(PARTS))
        self.redrawn.nodes[node] = DrawnNode(BY_POST, (*old[:which], *four, *old[which + 1 :]))
        return True

    def _words(self, level: int, x: int, y: int) -> np.ndarray:
        """The words of searches there, the most frequent first."""
        weight = sum(self.statistics.keywords(kind, level, x, y) for kind in (SRQ, SKQ))
        known = np.asarray(weight)
        order = np.argsort(-known, kind="stable")
        return np.asarray(self.statistics.words.values[order[known[order] > 0]])

    def merge(self) -> bool:
        """Merge the lightest four leaves that may be; False if they would outweigh the greatest leaf. True where there
        are none, so that the tree grows.
        """
        candidates = self._mergeable()
        if not candidates:
            return True
        load, nodes, part = min(candidates, key=lambda each: (each[0], each[1]))
        if load > max(each for each, _, _ in self.leaves()):
            return False
        leaves = [(self.load[n] * leaf.share, leaf.owner) for n in nodes for leaf in self.redrawn.nodes[n].leaves]
        self._add(part, plain(max(leaves)[1]))
        for node in nodes:
            self._drop(node)
        self.merges += 1
        return True

    def _mergeable(self) -> list[tuple[float, tuple[int, ...], Rectangle]]:
        """(load, nodes, rectangle): four leaves that are the quarters of a square of the tree, or four leaves of words.
        What was split just now is not merged again.
        """
        quarters: dict[tuple[int, int, int], list[int]] = {}
        out: list[tuple[float, tuple[int, ...], Rectangle]] = []
        for node, part in self.part.items():
            each = self.redrawn.nodes[node]
            if part is None or node in self.halved:
                continue
            if each.kind == BY_POST and len(each.leaves) == PARTS:
                out.append((self.load[node], (node,), part))
            side = part[2] - part[0]
            aligned = part[3] - part[1] == side and part[0] % side == part[1] % side == 0 == side & (side - 1)
            if each.kind == SPACE and aligned:
                quarters.setdefault((side, part[0] // (2 * side), part[1] // (2 * side)), []).append(node)
        for (side, x, y), nodes in quarters.items():
            if len(nodes) == PARTS:
                whole = (2 * side * x, 2 * side * y, 2 * side * (x + 1), 2 * side * (y + 1))
                out.append((sum(self.load[node] for node in nodes), tuple(nodes), whole))
        return out

    def _add(self, part: Rectangle, new: DrawnNode) -> int:
        x0, y0, x1, y1 = part
        cells = (np.arange(y0, y1)[:, None] * self.cells + np.arange(x0, x1)).reshape(-1)
        node = self.redrawn.add(cells, new)
        self.part[node] = part
        self.load[node] = float(self.redrawn.cell_load[cells].sum())
        return node

    def _drop(self, node: int) -> None:
        del self.part[node], self.load[node]
