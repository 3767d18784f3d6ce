"""Loads by worker, leaf and cell."""

import numpy as np
import pytest
from hypothesis import given

from nearcast.partitioning.moves import Loads, cell_load, imbalance, leaf_posts, leaf_queries
from nearcast.partitioning.partition import BY_POST, BY_QUERY, SPACE, Partition
from tests.partitioning.balancers.cases import mixes


@given(mixes)
def test_the_loads_of_cells_sum_up_to_those_of_leaves(case: tuple[Partition, Loads]) -> None:
    partition, loads = case
    cells = cell_load(partition, loads)
    assert (cells >= 0).all()
    for node in range(partition.nodes):
        leaves = slice(partition.first[node], partition.first[node + 1])
        assert cells[partition.node == node].sum() == pytest.approx(loads.leaf_load[leaves].sum())


def test_a_cell_weighs_as_posts_times_queries_and_as_posts_where_there_are_none() -> None:
    node = np.array([0, 0, 1, 1], np.int32)
    kind = np.full(2, SPACE, np.uint8)
    partition = Partition("", (0, 0, 1, 1), 2, node, kind, np.arange(3, dtype=np.int32), np.zeros(2), np.zeros(2), 1)
    loads = Loads(np.array([1.0, 2, 3, 1]), np.array([4.0, 1, 0, 0]), np.array([12.0, 8.0]))
    assert cell_load(partition, loads).tolist() == [8, 4, 6, 2]


def test_a_by_query_leaf_has_its_share_of_queries_and_a_by_post_leaf_all() -> None:
    partition = Partition(
        "",
        (0, 0, 1, 1),
        2,
        np.array([0, 0, 1, 2], np.int32),
        np.array([BY_QUERY, BY_POST, SPACE], np.uint8),
        np.array([0, 2, 4, 5], np.int32),
        np.zeros(5),
        np.zeros(5, np.int32),
        1,
    )
    loads = Loads(np.array([4.0, 4, 6, 5]), np.array([3.0, 5, 10, 7]), np.array([1.0, 3, 0, 0, 2]))
    assert leaf_queries(partition, loads).tolist() == [2, 6, 10, 10, 7]
    assert leaf_posts(partition, loads).tolist() == [2, 6, 3, 3, 5]


def test_a_query_over_several_cells_is_transferred_once() -> None:
    node, kind = np.array([0, 0, 0, 1], np.int32), np.full(2, SPACE, np.uint8)
    partition = Partition("", (0, 0, 1, 1), 2, node, kind, np.arange(3, dtype=np.int32), np.zeros(2), np.zeros(2), 1)
    loads = Loads(np.ones(4), np.array([6.0, 6, 6, 6]), np.ones(2), spread=2.0)
    assert leaf_queries(partition, loads).tolist() == [9, 3]
    assert cell_load(partition, loads).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])


@pytest.mark.parametrize(("loads", "ratio"), [([4, 2], 2), ([0, 0], 1), ([3, 0], np.inf), ([5], 1), ([6, 3, 2], 3)])
def test_imbalance_is_the_greatest_over_the_least(loads: list[float], ratio: float) -> None:
    assert imbalance(np.array(loads, np.float64)) == ratio
