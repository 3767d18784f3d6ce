"""STAR's borders: who gives what to whom."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.balancers import star as borders
from nearcast.partitioning.moves import Loads, worker_loads
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.routers import quad_tree
from nearcast.partitioning.sample_tally import WORLD
from nearcast.partitioning.tiles import space_partition
from tests.partitioning.balancers.cases import CELLS, check_partition, mixes, tiles
from tests.partitioning.routers.tile_cases import random_sample

Case = tuple[Partition, Loads]


def row(owner: list[int], workers: int) -> Partition:
    """A strip of leaves from west to east, two columns each."""
    node = np.tile(np.arange(8) // 2, 8)
    return space_partition("quad", WORLD, 8, node, np.zeros(4), np.array(owner), workers)


def loads_of(*load: float, queries: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)) -> Loads:
    return Loads(np.zeros(64), np.tile(np.repeat(queries, 2), 8), np.array(load))


def test_only_leaves_at_the_border_move() -> None:
    move = borders.adjust(row([0, 0, 0, 1], 2), loads_of(4.0, 4.0, 4.0, 1.0))
    assert move is not None
    assert move.partition.owner.tolist() == [0, 0, 1, 1]
    assert move.after.tolist() == [8.0, 5.0]
    assert move.queries == 16


def test_the_leaf_with_more_load_for_its_size_goes_first() -> None:
    partition = row([1, 0, 0, 2], 3)
    move = borders.adjust(partition, loads_of(1.0, 6.0, 5.0, 1.0, queries=(1, 9, 1, 1)), balance=1.4)
    assert move is not None
    assert move.partition.owner.tolist() == [1, 0, 2, 2]


def test_the_least_loaded_neighbour_gets_it() -> None:
    grid = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]])
    partition = space_partition("quad", WORLD, 4, grid.reshape(-1), np.zeros(4), np.array([0, 1, 2, 0]), 3)
    move = borders.adjust(partition, Loads(np.ones(16), np.ones(16), np.array([5.0, 2.0, 1.0, 5.0])))
    assert move is not None
    assert move.partition.owner.tolist() == [2, 1, 2, 0]


@given(st.one_of(tiles, mixes), st.sampled_from([1.0, 1.2, 2.0]))
def test_the_most_loaded_gives_and_nobody_ends_above_it(case: Case, balance: float) -> None:
    partition, loads = case
    before = worker_loads(partition, loads.leaf_load)
    move = borders.adjust(partition, loads, balance)
    if before.max() <= balance * before.mean():
        assert move is None
    if move is None:
        return
    check_partition(move.partition)
    worst = int(before.argmax())
    moved = np.flatnonzero(move.partition.owner != partition.owner)
    assert (partition.owner[moved] == worst).all()
    assert move.after.max() < before[worst] or (before == before[worst]).sum() > 1
    assert move.after.sum() == pytest.approx(before.sum())
    for leaf in moved:
        around = set(move.partition.owner[borders.neighbours(partition)[leaf]].tolist())
        assert move.partition.owner[leaf] in around | {int(partition.owner[leaf])}


@given(st.one_of(tiles, mixes))
def test_neighbours_share_a_side_of_a_cell(case: Case) -> None:
    partition, _ = case
    grid = partition.node.reshape(CELLS, CELLS)
    beside: set[tuple[int, int]] = {(n, n) for n in range(partition.nodes)}
    for y in range(CELLS):
        for x in range(CELLS):
            for other in ((y, x + 1), (y + 1, x)):
                if max(other) < CELLS:
                    beside |= {(int(grid[y, x]), int(grid[other])), (int(grid[other]), int(grid[y, x]))}
    node = np.repeat(np.arange(partition.nodes), np.diff(partition.first))
    found = borders.neighbours(partition)
    for leaf in range(partition.leaves):
        expected = [other for other in range(partition.leaves) if (node[leaf], node[other]) in beside and other != leaf]
        assert found[leaf].tolist() == expected


def test_repeated_adjustment_balances_a_quadtree() -> None:
    partition = quad_tree.build(random_sample(9, "uniform", 2000, 0), 6, balance=1.1, cells=64)
    load = partition.load.copy()
    load[: len(load) // 3] *= 4
    loads = Loads(np.ones(64 * 64), np.ones(64 * 64), load)
    for _ in range(30):
        move = borders.adjust(partition, loads, 1.3)
        if move is None:
            break
        partition = move.partition
    dealt = worker_loads(partition, load)
    assert dealt.max() <= 1.3 * dealt.mean()
