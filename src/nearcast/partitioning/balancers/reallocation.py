"""SSTD's workload reallocation (SSTD §5.2): leaves stay as they are and change hands. PM shuffles those of the most
and the least loaded worker, FM all of them.
"""

import numpy as np

from nearcast.partitioning.karmarkar_karp import karmarkar_karp
from nearcast.partitioning.moves import Loads, Move, imbalance, leaf_queries, reowned, worker_loads
from nearcast.partitioning.partition import Partition

RATIO = 6.0  # λ


def pm(partition: Partition, loads: Loads, ratio: float = RATIO) -> Move | None:
    """Where L_max / L_min > λ (`ratio`): the leaves of the most and of the least loaded worker, divided anew between
    these two, or None if that changes nothing. It may not be enough: see `imbalance(move.after)`.
    """
    load = worker_loads(partition, loads.leaf_load)
    if imbalance(load) <= ratio:
        return None
    return _shuffle(partition, loads, [int(load.argmax()), int(load.argmin())], "pm", _cause(load, ratio))


def fm(partition: Partition, loads: Loads, ratio: float = RATIO) -> Move | None:
    """Where L_max / L_min > λ (`ratio`): all leaves divided anew among all workers."""
    load = worker_loads(partition, loads.leaf_load)
    if imbalance(load) <= ratio:
        return None
    return _shuffle(partition, loads, list(range(partition.workers)), "fm", _cause(load, ratio))


def reallocated(partition: Partition, loads: Loads, crew: list[int]) -> np.ndarray:
    """The owner of each leaf after the leaves of these workers were divided among them by Karmarkar-Karp, the subsets
    assigned so that the fewest queries move. Leaves without load stay: to move them costs and gains nothing.
    """
    owner = partition.owner.copy()
    leaves = np.flatnonzero(np.isin(partition.owner, crew) & (loads.leaf_load > 0))
    subset = karmarkar_karp(loads.leaf_load[leaves], len(crew))
    queries = leaf_queries(partition, loads)[leaves]
    owner[leaves] = np.array(crew)[assign(subset, queries, partition.owner[leaves], crew)[subset]]
    return owner


def assign(subset: np.ndarray, queries: np.ndarray, owner: np.ndarray, crew: list[int]) -> np.ndarray:
    """For each subset the position in `crew` of the worker that takes it: all together, leaves with the fewest queries
    change hands (the assignment problem, by the Hungarian algorithm in O(n³)).
    """
    from scipy.optimize import linear_sum_assignment  # 0.2 s to import, and seldom needed

    kept = np.zeros((len(crew), len(crew)))
    np.add.at(kept, (subset, np.searchsorted(crew, owner, sorter=np.argsort(crew))), queries)
    _, columns = linear_sum_assignment(-kept)
    return np.argsort(crew)[columns]


def _shuffle(partition: Partition, loads: Loads, crew: list[int], strategy: str, cause: str) -> Move | None:
    move = reowned(partition, loads, reallocated(partition, loads, crew), strategy, cause)
    return move if move and move.effect > 0 else None


def _cause(load: np.ndarray, ratio: float) -> str:
    return f"L_max / L_min is {imbalance(load):.3g}, more than {ratio:g}"
