"""What balancing works on and what it decides: loads and moves."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nearcast.routing.partition import BY_POST, SPACE, Partition


@dataclass(frozen=True)
class Loads:
    """What was measured: posts that arrived and queries that stand in each cell, and the work done in each leaf, in any
    unit. A query counts in every cell it touches, `spread` of them on average. `carrying` is the part of the work that
    is done for each post, whatever queries there are.
    """

    cell_posts: np.ndarray
    cell_queries: np.ndarray
    leaf_load: np.ndarray
    spread: float = 1.0
    carrying: float = 0.0

    @cached_property
    def cell_transfer(self) -> np.ndarray:
        """The queries that go with each cell, so that a query counts once in all."""
        return self.cell_queries / self.spread


@dataclass(frozen=True)
class Move:
    """A decision: from the loads `before` of the workers to those `after`, as far as can be foretold, at the cost of
    `queries` that a worker must learn and of `posts` that are stored elsewhere from then on (estimates, by the cells
    that change hands). `loads` are those foretold for the new partition, so that strategies can follow one another.
    """

    strategy: str
    cause: str
    partition: Partition
    loads: Loads
    queries: float
    posts: float
    before: np.ndarray
    after: np.ndarray

    @property
    def effect(self) -> float:
        """How much the load of the most loaded worker falls."""
        return float(self.before.max() - self.after.max())


def worker_loads(partition: Partition, leaf_load: np.ndarray) -> np.ndarray:
    return np.bincount(partition.owner, leaf_load, partition.workers)


def imbalance(worker_load: np.ndarray) -> float:
    """L_max / L_min (seed 000, Definition 4): infinite where a worker has nothing to do, 1 where none has."""
    if worker_load.max() <= 0:
        return 1.0
    return float(worker_load.max() / worker_load.min()) if worker_load.min() > 0 else float("inf")


def leaf_nodes(partition: Partition) -> np.ndarray:
    """The node of each leaf."""
    return np.repeat(np.arange(partition.nodes), np.diff(partition.first))


def leaf_shares(partition: Partition, loads: Loads) -> np.ndarray:
    """The share of each leaf in the load of its node; even shares where there is none."""
    node = leaf_nodes(partition)
    total = np.bincount(node, loads.leaf_load, partition.nodes)
    even = 1.0 / np.diff(partition.first)
    return np.where(total[node] > 0, loads.leaf_load / np.where(total > 0, total, 1.0)[node], even[node])


def leaf_queries(partition: Partition, loads: Loads) -> np.ndarray:
    """How many queries each leaf keeps: all of its node's, or its share of them in a BY_QUERY node."""
    node = leaf_nodes(partition)
    share = np.where(partition.kind[node] == BY_POST, 1.0, leaf_shares(partition, loads))
    return np.bincount(partition.node, loads.cell_transfer, partition.nodes)[node] * share


def leaf_posts(partition: Partition, loads: Loads) -> np.ndarray:
    """How many posts each leaf stores: its share of its node's."""
    some = np.flatnonzero(loads.cell_posts)
    posts = np.bincount(partition.node[some], loads.cell_posts[some], partition.nodes)
    return posts[leaf_nodes(partition)] * leaf_shares(partition, loads)


def cell_load(partition: Partition, loads: Loads) -> np.ndarray:
    """The load of each cell: that of its node, spread over the node's cells by L_g = n_o · n_q (seed 001, Def. 3), the
    carrying by posts; all by posts where no cell has both, and evenly where there are none. It sums up to the loads of
    the leaves.
    """
    out = np.zeros(len(partition.node))
    left = np.bincount(leaf_nodes(partition), loads.leaf_load, partition.nodes)
    some = np.flatnonzero(loads.cell_posts)
    posts, everywhere = loads.cell_posts[some], np.arange(len(out))
    pairs = posts * loads.cell_queries[some]
    if loads.carrying and pairs.any():  # in the unit of pairs
        pairs = pairs * (1.0 - loads.carrying) + posts * (loads.carrying * pairs.sum() / posts.sum())
    for at, weight in ((some, pairs), (some, posts), (everywhere, None)):
        if not left.any():
            break
        weight = np.ones(len(at)) if weight is None else weight
        total = np.bincount(partition.node[at], weight, partition.nodes)
        share = np.where(total > 0, left / np.where(total > 0, total, 1.0), 0.0)
        out[at] += weight * share[partition.node[at]]
        left = np.where(total > 0, 0.0, left)
    return out


def reowned(partition: Partition, loads: Loads, owner: np.ndarray, strategy: str, cause: str) -> Move | None:
    """The move that gives leaves to other workers, if any."""
    moved = owner != partition.owner
    if not moved.any():
        return None
    after = replace(partition, owner=np.ascontiguousarray(owner, np.int32))
    return Move(
        strategy,
        cause,
        after,
        loads,
        float(leaf_queries(partition, loads)[moved].sum()),
        float(leaf_posts(partition, loads)[moved].sum()),
        worker_loads(partition, loads.leaf_load),
        worker_loads(after, loads.leaf_load),
    )


def only_space(partition: Partition) -> bool:
    return bool((partition.kind == SPACE).all())
