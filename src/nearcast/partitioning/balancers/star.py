"""STAR's workload adjustment (STAR §6): the most loaded worker hands leaves on its border to the workers beyond it,
so that each goes on having leaves that lie together.
"""

import numpy as np

from nearcast.partitioning.moves import Loads, Move, leaf_nodes, leaf_posts, leaf_queries, reowned, worker_loads
from nearcast.partitioning.partition import Partition

BALANCE = 1.2  # L_max over the mean; the paper gives no figure


def adjust(partition: Partition, loads: Loads, balance: float = BALANCE) -> Move | None:
    """Where the most loaded worker w_o has more than `balance` times the mean: its border leaves B, in descending order
    of load(g) / size(g), each go to the least loaded of the workers with a leaf beside it, until w_o is within bounds
    or B is used up. The size of a leaf is its queries and posts.

    A leaf stays where its new owner would come to more than w_o has, or w_o to nothing: the paper does not say so, but
    without it the load would go back and forth.
    """
    load = worker_loads(partition, loads.leaf_load)
    limit = balance * load.mean()
    worst = int(load.argmax())
    if load[worst] <= limit:
        return None
    cause = f"worker {worst} has {load[worst] / load.mean():.3g} times the mean load, more than {balance:g}"
    size = leaf_queries(partition, loads) + leaf_posts(partition, loads)
    owner = partition.owner.copy()
    beside = neighbours(partition)
    border = [leaf for leaf in np.flatnonzero(owner == worst).tolist() if (owner[beside[leaf]] != worst).any()]
    ratio = loads.leaf_load / np.maximum(size, 1e-300)
    for leaf in sorted(border, key=lambda each: (-ratio[each], each)):
        if load[worst] <= limit:
            break
        workers = np.unique(owner[beside[leaf]])
        workers = workers[workers != worst]
        to = int(workers[load[workers].argmin()])
        moved = float(loads.leaf_load[leaf])
        if moved > 0 and load[to] + moved < load[worst]:
            load[worst] -= moved
            load[to] += moved
            owner[leaf] = to
    return reowned(partition, loads, owner, "borders", cause)


def neighbours(partition: Partition) -> list[np.ndarray]:
    """For each leaf the leaves of other nodes that share a side of a cell with its own, and those of its own node."""
    grid = partition.node.reshape(partition.cells, partition.cells)
    sides = [(grid[:, :-1], grid[:, 1:]), (grid[:-1], grid[1:])]
    pairs = np.concatenate([np.column_stack((a[a != b], b[a != b])) for a, b in sides])
    pairs = np.unique(np.concatenate((pairs, pairs[:, ::-1])), axis=0)
    node = leaf_nodes(partition)
    starts = np.searchsorted(pairs[:, 0], np.arange(partition.nodes + 1))
    out = []
    for leaf in range(partition.leaves):
        around = pairs[starts[node[leaf]] : starts[node[leaf] + 1], 1]
        near = np.flatnonzero(np.isin(node, around) | (node == node[leaf]))
        out.append(near[near != leaf])
    return out
