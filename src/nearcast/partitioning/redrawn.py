"""A partition drawn anew in places: nodes that take over cells from others."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from nearcast.partitioning.moves import Loads, Move, cell_load, leaf_nodes, leaf_shares, worker_loads
from nearcast.partitioning.partition import BY_POST, SPACE, Partition

NO_WORDS = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Leaf:
    """`share` is its part of the load of its node."""

    owner: int
    words: np.ndarray
    share: float


@dataclass(frozen=True)
class DrawnNode:
    """`first` is the number of its first leaf in the partition it comes from, -1 for a new one."""

    kind: int
    leaves: tuple[Leaf, ...]
    first: int = -1

    def share_of(self, worker: int) -> float:
        """A worker's part of the load."""
        return sum(leaf.share for leaf in self.leaves if leaf.owner == worker)

    def given(self, moved: Collection[int], to: int) -> "DrawnNode":
        """The same with some leaves, by their numbers, in other hands."""
        leaves = [replace(leaf, owner=to) if self.first + i in moved else leaf for i, leaf in enumerate(self.leaves)]
        return DrawnNode(self.kind, tuple(leaves))


def plain(owner: int) -> DrawnNode:
    """A node of space with its one leaf."""
    return DrawnNode(SPACE, (Leaf(owner, NO_WORDS, 1.0),))


class Redrawn:
    """`nodes` are those of the partition, then those added; `cell_load` is predicted to stay as it is, and `loaded` are
    the cells that have any.
    """

    def __init__(self, partition: Partition, loads: Loads) -> None:
        self.old, self.loads = partition, loads
        self.cell_load = cell_load(partition, loads).copy()
        self.loaded = np.flatnonzero(self.cell_load)
        self.node = partition.node.copy()
        self.nodes = old_nodes(partition, loads)

    def add(self, cells: np.ndarray, node: DrawnNode) -> int:
        """Give cells (a mask, or their numbers) to a new node."""
        self.node[cells] = len(self.nodes)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def finished(self) -> tuple[Partition, np.ndarray]:
        """The new partition, without nodes that have no cells any more, and the load predicted for its leaves."""
        held = np.zeros(len(self.nodes), np.bool_)
        held[self.node] = True
        kept, node = np.flatnonzero(held), self.node
        if len(kept) < len(held):
            node = (np.cumsum(held, dtype=np.int32) - 1)[node]
        nodes = [self.nodes[k] for k in kept]
        of_node = np.bincount(node[self.loaded], self.cell_load[self.loaded], len(kept))
        leaves = [leaf for each in nodes for leaf in each.leaves]
        load = np.array([of_node[n] * leaf.share for n, each in enumerate(nodes) for leaf in each.leaves])
        kind = np.array([each.kind for each in nodes], np.uint8)
        starts = np.concatenate(([0], np.cumsum([len(leaf.words) for leaf in leaves]))).astype(np.int64)
        after = replace(
            self.old,
            node=node.astype(np.int32, copy=False),
            kind=kind,
            first=np.concatenate(([0], np.cumsum([len(each.leaves) for each in nodes]))).astype(np.int32),
            load=load,
            owner=np.array([leaf.owner for leaf in leaves], np.int32),
            keywords=np.concatenate([leaf.words for leaf in leaves]),
            keyword_starts=starts if kind.any() else np.zeros(1, np.int64),
        )
        return after, load

    def move(self, strategy: str, cause: str) -> Move:
        return move_of(self.old, self.loads, *self.finished(), strategy, cause)


def move_of(old: Partition, loads: Loads, new: Partition, load: np.ndarray, strategy: str, cause: str) -> Move:
    """The move from one partition to another, whose leaves will have this load."""
    predicted = replace(loads, leaf_load=load)
    queries, posts = transferred(old, loads, new, predicted)
    before, after = worker_loads(old, loads.leaf_load), worker_loads(new, load)
    return Move(strategy, cause, new, predicted, queries, posts, before, after)


def transferred(old: Partition, loads: Loads, new: Partition, predicted: Loads) -> tuple[float, float]:
    """Queries and posts that come to workers which did not have them, by the workers' shares of each cell."""
    busy = loads.busy
    at = old.node[busy].astype(np.int64) * new.nodes + new.node[busy]
    queries, posts = np.bincount(at, loads.cell_queries[busy] / loads.spread), np.bincount(at, loads.cell_posts[busy])
    pairs = np.flatnonzero(queries + posts)
    queries, posts, before, after = queries[pairs], posts[pairs], pairs // new.nodes, pairs % new.nodes
    old_queries, old_posts = _held(old, loads)
    new_queries, new_posts = _held(new, predicted)
    come = np.maximum(new_queries[after] - old_queries[before], 0.0).sum(axis=1) @ queries
    stored = np.maximum(new_posts[after] - old_posts[before], 0.0).sum(axis=1) @ posts
    return float(come), float(stored)


def _held(partition: Partition, loads: Loads) -> tuple[np.ndarray, np.ndarray]:
    """The share of each node's queries and of its posts that each worker has: nodes by workers."""
    node, share = leaf_nodes(partition), leaf_shares(partition, loads)
    at = node * partition.workers + partition.owner
    size = partition.nodes * partition.workers
    queries = np.bincount(at, np.where(partition.kind[node] == BY_POST, 1.0, share), size)
    return (
        np.minimum(queries, 1.0).reshape(-1, partition.workers),
        np.bincount(at, share, size).reshape(-1, partition.workers),
    )


def old_nodes(partition: Partition, loads: Loads) -> list[DrawnNode]:
    share = leaf_shares(partition, loads)
    starts = partition.keyword_starts if len(partition.keyword_starts) > 1 else np.zeros(partition.leaves + 1, np.int64)
    out = []
    for kind, first, last in zip(partition.kind, partition.first, partition.first[1:], strict=False):
        leaves = [
            Leaf(int(partition.owner[i]), partition.keywords[starts[i] : starts[i + 1]], float(share[i]))
            for i in range(first, last)
        ]
        out.append(DrawnNode(int(kind), tuple(leaves), int(first)))
    return out
