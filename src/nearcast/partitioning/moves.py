"""What balancing works on and what it decides: loads and moves."""

from dataclasses import dataclass, field, replace

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.partition import BY_POST, SPACE, Partition


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
    known: "_Known" = field(default_factory=lambda: _Known(), repr=False, compare=False)  # same cells, worked out once

    @property
    def cell_transfer(self) -> np.ndarray:
        """The queries that go with each cell, so that a query counts once in all."""
        return self.cell_queries / self.spread

    @property
    def busy(self) -> np.ndarray:
        """The cells that have posts or queries: mostly few of them all."""
        if self.known.busy is None:
            self.known.busy = np.flatnonzero((self.cell_posts != 0) | (self.cell_queries != 0))
        return self.known.busy

    def by_node(self, partition: Partition) -> tuple[np.ndarray, np.ndarray]:
        """(queries, posts) of each node, a query counting once in all."""
        known = self.known.by_node
        if known is None or known[0] is not partition.node:
            node, busy = partition.node[self.busy], self.busy
            queries = np.bincount(node, self.cell_queries[busy] / self.spread, partition.nodes)
            posts = np.bincount(node, self.cell_posts[busy], partition.nodes)
            self.known.by_node = known = (partition.node, queries, posts)
        return known[1], known[2]


class _Known:
    """What follows from the posts and queries of the cells alone, whatever the load of the leaves."""

    def __init__(self) -> None:
        self.busy: np.ndarray | None = None
        self.by_node: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self.cell_load: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class Move:
    """A decision: from the loads `before` of the workers to those `after`, as far as can be predicted, at the cost of
    `queries` that a worker must learn and of `posts` that are stored elsewhere from then on (estimates, by the cells
    that change hands). `loads` are those predicted for the new partition, so that strategies can follow one another.
    `gradual` is a partition made anew, which subscriptions that stand already come to follow later (PS2Stream §V-B).
    """

    strategy: str
    cause: str
    partition: Partition
    loads: Loads
    queries: float
    posts: float
    before: np.ndarray
    after: np.ndarray
    gradual: bool = False

    @property
    def effect(self) -> float:
        """How much the load of the most loaded worker falls."""
        return float(self.before.max() - self.after.max())


def worker_loads(partition: Partition, leaf_load: np.ndarray) -> np.ndarray:
    return np.bincount(partition.owner, leaf_load, partition.workers)


def imbalance(worker_load: np.ndarray) -> float:
    """L_max / L_min (SSTD, Definition 4): infinite where a worker has nothing to do, 1 where none has."""
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
    return loads.by_node(partition)[0][node] * share


def leaf_posts(partition: Partition, loads: Loads) -> np.ndarray:
    """How many posts each leaf stores: its share of its node's."""
    return loads.by_node(partition)[1][leaf_nodes(partition)] * leaf_shares(partition, loads)


def cell_load(partition: Partition, loads: Loads) -> np.ndarray:
    """The load of each cell: that of its node, spread over the node's cells by L_g = n_o · n_q (PS2Stream, Def. 3), the
    carrying by posts; all by posts where no cell has both, and evenly where there are none. It sums up to the loads of
    the leaves. It is not to be changed: it is worked out once.
    """
    known = loads.known.cell_load
    if known is None or known[0] is not partition.node or known[1] is not loads.leaf_load:
        loads.known.cell_load = known = (partition.node, loads.leaf_load, frozen(_cell_load(partition, loads)))
    return known[2]


def _cell_load(partition: Partition, loads: Loads) -> np.ndarray:
    out = np.zeros(len(partition.node))
    left = np.bincount(leaf_nodes(partition), loads.leaf_load, partition.nodes)
    some = loads.busy[loads.cell_posts[loads.busy] != 0]
    posts = loads.cell_posts[some]
    pairs = posts * loads.cell_queries[some]
    if loads.carrying and pairs.any():  # in the unit of pairs
        pairs = pairs * (1.0 - loads.carrying) + posts * (loads.carrying * pairs.sum() / posts.sum())
    for weight in (pairs, posts, None):
        if not left.any():
            break
        at = np.arange(len(out)) if weight is None else some
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
