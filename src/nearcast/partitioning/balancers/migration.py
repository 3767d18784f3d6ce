"""PS2Stream's local load adjustment (PS2Stream §V-A): the most loaded worker w_o hands cells to the least loaded w_l,
as few queries as possible (Minimum Cost Migration, Definition 4).

Cells of the paper's grid (64 a side) are blocks of the partition's finer cells here. A leaf's part of a block is a
unit: that is what moves.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearcast.partitioning.knapsack import gr
from nearcast.partitioning.moves import Loads, Move, cell_load, imbalance, leaf_nodes, leaf_shares, worker_loads
from nearcast.partitioning.partition import BY_POST, SPACE, Partition
from nearcast.partitioning.redrawn import Redrawn, plain

RATIO = 2.0  # σ; the paper gives no figure
SIDE = 64  # blocks a side, as the grid of §VI-B

Choose = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def adjust(
    partition: Partition, loads: Loads, ratio: float = RATIO, choose: Choose = gr, side: int = SIDE
) -> Move | None:
    """Phase II: where L_max / L_min > σ (`ratio`), units of at least τ = (L_o - L_l) / 2 in load go from w_o to w_l,
    chosen by GR or by another of `knapsack`. None if that would not lower the greater load.
    """
    load = worker_loads(partition, loads.leaf_load)
    if imbalance(load) <= ratio:
        return None
    most, least = int(load.argmax()), int(load.argmin())
    units = Units.of(partition, loads, most, side)
    target = float(load[most] - load[least]) / 2
    picked = choose(units.load, units.queries, target)
    if not len(picked) or load[least] + units.load[picked].sum() >= load[most]:
        picked = _within(units, picked, float(load[most] - load[least]))
    if not len(picked):
        return None
    cause = f"L_max / L_min is {imbalance(load):.3g}, more than {ratio:g}: {len(picked)} cells to worker {least}"
    return _moved(partition, loads, units, picked, least, cause)


def _within(units: "Units", picked: np.ndarray, most: float) -> np.ndarray:
    """A choice that leaves w_l below what w_o had: without its last units, where these are too heavy."""
    sums = np.cumsum(units.load[picked])
    return picked[sums < most]


@dataclass(frozen=True)
class Units:
    """What a worker has of each block: (block, leaf), its load L_g and the number of queries S_g. Places without either
    are left out.
    """

    side: int
    block: np.ndarray
    leaf: np.ndarray
    load: np.ndarray
    queries: np.ndarray

    @classmethod
    def of(cls, partition: Partition, loads: Loads, worker: int, side: int) -> "Units":
        side = min(side, partition.cells)
        node_of = leaf_nodes(partition)
        mine = np.flatnonzero(partition.owner == worker)
        share = leaf_shares(partition, loads)[mine]
        query_share = np.where(partition.kind[node_of[mine]] == BY_POST, 1.0, share)
        of_cell = cell_load(partition, loads)
        some = loads.busy
        if np.count_nonzero(of_cell[some]) < np.count_nonzero(of_cell):  # load that nothing explains
            some = np.union1d(some, np.flatnonzero(of_cell))
        concerned = some[np.isin(np.arange(partition.nodes), node_of[mine])[partition.node[some]]]
        key = block_of(concerned, partition.cells, side) * partition.nodes + partition.node[concerned]
        places, at = numbered(key, side * side * partition.nodes)
        load = np.bincount(at, of_cell[concerned])
        queries = np.bincount(at, loads.cell_queries[concerned] / loads.spread)
        order = np.argsort(places % partition.nodes, kind="stable")  # by node, then by block
        starts = np.searchsorted(places[order] % partition.nodes, np.arange(partition.nodes + 1))
        begin, end = starts[node_of[mine]], starts[node_of[mine] + 1]
        which = np.repeat(np.arange(len(mine)), end - begin)
        place = order[np.arange(len(which)) - np.repeat(np.cumsum(end - begin) - (end - begin) - begin, end - begin)]
        return cls(
            side,
            places[place] // partition.nodes,
            mine[which],
            load[place] * share[which],
            queries[place] * query_share[which],
        )


def numbered(keys: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys, all below `most`, sorted, and where each of the keys is among them."""
    if most > 1 << 22:
        places, at = np.unique(keys, return_inverse=True)
        return places, at
    met = np.zeros(most, np.bool_)
    met[keys] = True
    return np.flatnonzero(met), (np.cumsum(met, dtype=np.int64) - 1)[keys]


def block_of(cell: np.ndarray, cells: int, side: int) -> np.ndarray:
    """The block of some cells."""
    return (cell // cells * side // cells) * side + cell % cells * side // cells


def cells_of_block(partition: Partition, side: int, block: int, node: int) -> np.ndarray:
    """The cells of a block that belong to a node."""
    cells = partition.cells
    (y0, y1), (x0, x1) = ((-(-at * cells // side), -(-(at + 1) * cells // side)) for at in divmod(block, side))
    y, x = np.nonzero(partition.node.reshape(cells, cells)[y0:y1, x0:x1] == node)
    return (y0 + y) * cells + x0 + x


def _moved(partition: Partition, loads: Loads, units: Units, picked: np.ndarray, to: int, cause: str) -> Move:
    """The partition in which the picked units belong to another worker. Cells that lose the same leaves become one new
    node; those of SPACE nodes all become one leaf.
    """
    node_of = leaf_nodes(partition)
    by_place: dict[tuple[int, int], list[int]] = {}
    for unit in picked.tolist():
        leaf = int(units.leaf[unit])
        by_place.setdefault((int(node_of[leaf]), int(units.block[unit])), []).append(leaf)
    groups: dict[tuple[int, tuple[int, ...]], list[np.ndarray]] = {}
    for (node, block), leaves in by_place.items():
        alike = (-1, ()) if partition.kind[node] == SPACE else (node, tuple(leaves))
        groups.setdefault(alike, []).append(cells_of_block(partition, units.side, block, node))
    redrawn = Redrawn(partition, loads)
    for (node, moved), cells in groups.items():
        redrawn.add(np.concatenate(cells), redrawn.nodes[node].given(moved, to) if moved else plain(to))
    return redrawn.move("migrate", cause)
