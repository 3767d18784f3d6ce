"""PM and FM against trying every assignment."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.balancers import reallocation as reallocate
from nearcast.partitioning.moves import Loads, imbalance, leaf_queries, worker_loads
from nearcast.partitioning.partition import Partition
from tests.partitioning.balancers.cases import check_partition, mixes, random_mix, tiles

Case = tuple[Partition, Loads]


@given(st.one_of(mixes, tiles))
def test_fm_moves_the_fewest_queries_that_its_subsets_allow(case: Case) -> None:
    partition, loads = case
    move = reallocate.fm(partition, loads, ratio=1.0)
    if move is None:
        return
    queries, new = leaf_queries(partition, loads), move.partition.owner
    idle = (loads.leaf_load == 0) & (new == partition.owner)  # what has no load stays whatever the order
    costs = [
        queries[(np.array(order)[new] != partition.owner) & ~idle].sum()
        for order in permutations(range(partition.workers))
    ]
    assert move.queries <= min(costs) + 1e-9
    assert move.queries == queries[new != partition.owner].sum()
    check_partition(move.partition)


@given(st.one_of(mixes, tiles))
def test_pm_touches_only_the_most_and_the_least_loaded(case: Case) -> None:
    partition, loads = case
    move = reallocate.pm(partition, loads, ratio=1.0)
    if move is None:
        return
    load = worker_loads(partition, loads.leaf_load)
    moved = move.partition.owner != partition.owner
    two = {int(load.argmax()), int(load.argmin())}
    assert set(partition.owner[moved]) | set(move.partition.owner[moved]) <= two
    assert move.after.max() < move.before.max()
    assert move.after.sum() == move.before.sum()
    assert (loads.leaf_load[moved] > 0).all()


@given(st.one_of(mixes, tiles), st.sampled_from([1.0, 2.0, 6.0]))
def test_nothing_happens_while_the_loads_are_balanced(case: Case, ratio: float) -> None:
    partition, loads = case
    if imbalance(worker_loads(partition, loads.leaf_load)) <= ratio:
        assert reallocate.pm(partition, loads, ratio) is None
        assert reallocate.fm(partition, loads, ratio) is None


def test_the_example_of_the_paper_moves_four_leaves() -> None:
    # W1(P1 P2 P4), W2(P3 P5), W3(P6 P7); X1(P1 P3 P6), X2(P2 P5), X3(P4 P7). Leaves P1 … P7 are 0 … 6.
    subset, owner = np.array([0, 1, 0, 2, 1, 0, 2]), np.array([0, 0, 1, 0, 1, 2, 2])
    queries = np.array([1.0, 9, 1, 1, 1, 1, 9])  # P2 and P7 are dear: X2 stays with W1, X3 with W3
    assert reallocate.assign(subset, queries, owner, [0, 1, 2]).tolist() == [1, 0, 2]
    moved = np.array([1, 0, 2])[subset] != owner
    assert (np.flatnonzero(moved) + 1).tolist() == [1, 4, 5, 6]


def test_crew_in_any_order() -> None:
    subset, owner = np.array([0, 1]), np.array([7, 3])
    assert reallocate.assign(subset, np.ones(2), owner, [7, 3]).tolist() == [0, 1]
    assert reallocate.assign(subset, np.ones(2), owner, [3, 7]).tolist() == [1, 0]


def test_fm_recovers_balance_where_leaves_are_small() -> None:
    partition, _ = random_mix(3, 9, 4)
    loads = Loads(np.ones(64), np.ones(64), np.ones(partition.leaves))
    crowded = Partition(**{**partition.__dict__, "owner": np.zeros(partition.leaves, np.int32)})
    move = reallocate.fm(crowded, loads)
    assert move is not None
    assert move.after.max() - move.after.min() <= 1
    assert "inf" in move.cause
