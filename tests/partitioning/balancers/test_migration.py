"""What moves between two workers, and what stays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning import knapsack
from nearcast.partitioning.balancers import migration as migrate
from nearcast.partitioning.moves import Loads, imbalance, worker_loads
from nearcast.partitioning.partition import BY_POST, SPACE, Partition
from nearcast.partitioning.tiles import space_partition
from tests.partitioning.balancers.cases import check_partition, mixes, tiles

Case = tuple[Partition, Loads]


@given(st.one_of(mixes, tiles), st.sampled_from(["gr", "dp", "si", "ra"]), st.sampled_from([1, 3, 8, 64]))
def test_a_migration_relieves_the_most_loaded_and_touches_no_third(case: Case, name: str, side: int) -> None:
    partition, loads = case
    move = migrate.adjust(partition, loads, 1.0, getattr(knapsack, name), side)
    if move is None:
        return
    check_partition(move.partition)
    most, least = int(move.before.argmax()), int(move.before.argmin())
    assert move.after[most] < move.before[most]
    assert move.after[least] < move.before[most]
    others = np.delete(np.arange(partition.workers), [most, least])
    assert move.after[others] == pytest.approx(move.before[others])
    assert move.after.sum() == pytest.approx(move.before.sum())


def crew(partition: Partition, cell: int) -> list[tuple[int, tuple[int, ...]]]:
    """(owner, keywords) of the leaves of a cell, in their order."""
    node = partition.node[cell]
    starts = partition.keyword_starts
    out = []
    for leaf in range(partition.first[node], partition.first[node + 1]):
        words = partition.keywords[starts[leaf] : starts[leaf + 1]].tolist() if len(starts) > 1 else []
        out.append((int(partition.owner[leaf]), tuple(words)))
    return out


@given(st.one_of(mixes, tiles))
def test_only_the_owners_of_what_moved_change(case: Case) -> None:
    partition, loads = case
    move = migrate.adjust(partition, loads, 1.0)
    if move is None:
        return
    most, least = int(move.before.argmax()), int(move.before.argmin())
    for cell in range(64):
        assert move.partition.kind[move.partition.node[cell]] == partition.kind[partition.node[cell]]
        pairs = list(zip(crew(partition, cell), crew(move.partition, cell), strict=True))
        for (owner, words), (new_owner, new_words) in pairs:
            assert words == new_words
            assert owner == new_owner or (owner, new_owner) == (most, least)


@given(st.one_of(mixes, tiles), st.integers(0, 4), st.sampled_from([1, 4, 8]))
def test_units_sum_up_to_what_the_worker_has(case: Case, worker: int, side: int) -> None:
    partition, loads = case
    worker %= partition.workers
    units = migrate.Units.of(partition, loads, worker, side)
    assert units.load.sum() == pytest.approx(worker_loads(partition, loads.leaf_load)[worker])
    mine, has = set(np.flatnonzero(partition.owner == worker)), set(units.leaf)
    assert has <= mine
    assert not loads.leaf_load[sorted(mine - has)].any()  # a leaf with neither load nor queries has no unit
    assert len(set(zip(units.block.tolist(), units.leaf.tolist(), strict=True))) == len(units.block)
    plain = [leaf for leaf in set(units.leaf.tolist()) if _kind(partition, leaf) in (SPACE, BY_POST)]
    for leaf in plain:
        cells = partition.first[partition.node] <= leaf
        cells &= partition.first[partition.node + 1] > leaf
        assert units.queries[units.leaf == leaf].sum() == pytest.approx(loads.cell_queries[cells].sum())


def _kind(partition: Partition, leaf: int) -> int:
    return int(partition.kind[np.searchsorted(partition.first, leaf, "right") - 1])


@given(tiles)
def test_the_cost_is_what_comes_to_a_worker_that_did_not_have_it(case: Case) -> None:
    partition, loads = case
    move = migrate.adjust(partition, loads, 1.0)
    if move is not None:
        moved = partition.owner[partition.node] != move.partition.owner[move.partition.node]
        assert move.queries == pytest.approx(loads.cell_queries[moved].sum())
        assert move.posts == pytest.approx(loads.cell_posts[moved].sum())


@given(st.one_of(mixes, tiles))
def test_nothing_moves_while_the_loads_are_balanced(case: Case) -> None:
    partition, loads = case
    if imbalance(worker_loads(partition, loads.leaf_load)) <= 2.0:
        assert migrate.adjust(partition, loads) is None


def test_blocks_are_squares_of_cells() -> None:
    blocks = migrate.block_of(np.arange(16), 4, 2)
    assert blocks.reshape(4, 4).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]


@pytest.mark.parametrize(("cells", "side"), [(4, 2), (4, 4), (5, 2), (7, 3), (3, 1)])
def test_the_cells_of_a_block_are_those_whose_block_it_is(cells: int, side: int) -> None:
    node = np.arange(cells * cells, dtype=np.int32) % 3
    partition = space_partition("made", (0.0, 0.0, 1.0, 1.0), cells, node, np.ones(3), np.zeros(3), 1)
    blocks = migrate.block_of(np.arange(cells * cells), cells, side)
    for block in range(side * side):
        for each in range(3):
            expected = np.flatnonzero((blocks == block) & (node == each))
            assert migrate.cells_of_block(partition, side, block, each).tolist() == expected.tolist()


@given(st.lists(st.integers(0, 9), max_size=20), st.sampled_from((10, 1 << 30)))
def test_keys_are_numbered_in_their_order(keys: list[int], most: int) -> None:
    places, at = migrate.numbered(np.array(keys, np.int64), most)
    assert places.tolist() == sorted(set(keys)) and places[at].tolist() == keys
