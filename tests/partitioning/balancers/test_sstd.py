"""PM, FM, FG: each only where the one before is not enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.balancers import reallocation as reallocate
from nearcast.partitioning.balancers import sstd as escalate
from nearcast.partitioning.moves import Loads, imbalance
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.sample_tally import WORLD
from nearcast.partitioning.tiles import paint, space_partition
from tests.partitioning.balancers.cases import random_tiles
from tests.partitioning.routers.tile_cases import random_sample

QUARTERS = [(0, 0, 4, 4), (4, 0, 8, 4), (0, 4, 4, 8), (4, 4, 8, 8)]
STATISTICS = Statistics.of(random_sample(1, "uniform", 20, 0), WORLD, depth=3, word_depth=2)


@pytest.mark.parametrize(
    ("load", "owner", "plan", "expected"),
    [
        ((5.0, 5.0, 5.0, 5.0), (0, 0, 1, 1), escalate.PLAN, None),
        ((5.0, 5.0, 5.0, 5.0), (0, 0, 0, 1), escalate.PLAN, "pm"),
        ((5.0, 5.0, 5.0, 5.0), (0, 0, 0, 1), ("fm",), "fm"),
        ((8.0, 8.0, 8.0, 1.0), (0, 0, 0, 1), escalate.PLAN, "pm"),
        ((90.0, 2.0, 2.0, 2.0), (0, 0, 0, 1), escalate.PLAN, "fg"),
        ((90.0, 2.0, 2.0, 2.0), (0, 0, 0, 1), ("pm",), "pm"),  # not enough, but all that may be done
        ((90.0, 2.0, 2.0, 2.0), (0, 0, 0, 1), (), None),
    ],
)
def test_the_first_that_is_enough_is_taken(
    load: tuple[float, ...], owner: tuple[int, ...], plan: tuple[str, ...], expected: str | None
) -> None:
    partition = space_partition("qt", WORLD, 8, paint(QUARTERS, 8), np.zeros(4), np.array(owner), 2)
    move = escalate.adjust(partition, Loads(np.ones(64), np.ones(64), np.array(load)), STATISTICS, 2.0, plan=plan)
    assert (move.strategy if move else None) == expected


def test_all_workers_are_shuffled_where_two_are_not_enough() -> None:
    partition = space_partition("qt", WORLD, 8, paint(QUARTERS, 8), np.zeros(4), np.array([0, 0, 1, 1]), 4)
    loads = Loads(np.ones(64), np.ones(64), np.full(4, 3.0))
    move = escalate.adjust(partition, loads, STATISTICS, 2.0)
    assert move is not None
    assert move.strategy == "fm"
    assert move.after.tolist() == [3.0] * 4


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_escalating_is_never_worse_than_a_single_step(seed: int, workers: int) -> None:
    partition, loads = random_tiles(seed, 8, workers)
    move = escalate.adjust(partition, loads, STATISTICS, 1.5)
    for single in (reallocate.pm(partition, loads, 1.5), reallocate.fm(partition, loads, 1.5)):
        if single is not None:
            assert move is not None
            assert imbalance(move.after) <= 1.5 or move.after.max() <= single.after.max()
