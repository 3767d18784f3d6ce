"""Whatever is done to a partition, in whatever order, no query misses a post."""

from collections.abc import Callable

import numpy as np
import pytest

from nearcast.partitioning.balancers import migration as migrate
from nearcast.partitioning.balancers import reallocation as reallocate
from nearcast.partitioning.balancers import reshaping as reshape
from nearcast.partitioning.balancers import sstd as escalate
from nearcast.partitioning.balancers import star as borders
from nearcast.partitioning.balancers import text_cuts as retext
from nearcast.partitioning.balancers import tornado as shift
from nearcast.partitioning.moves import Loads, Move
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers import a_grid, kdt_tree, qt_tree, quad_tree
from tests.marks import slow
from tests.partitioning.routers import twin

Strategy = Callable[[Partition, Loads, RouterSample, Statistics], Move | None]
STRATEGIES: dict[str, Strategy] = {
    "pm": lambda partition, loads, sample, j: reallocate.pm(partition, loads, 1.1),
    "fm": lambda partition, loads, sample, j: reallocate.fm(partition, loads, 1.1),
    "fg": lambda partition, loads, sample, j: reshape.adjust(partition, loads, j, 1.1, 0.3),
    "escalate": lambda partition, loads, sample, j: escalate.adjust(partition, loads, j, 1.1),
    "migrate": lambda partition, loads, sample, j: migrate.adjust(partition, loads, 1.1),
    "local": lambda partition, loads, sample, j: retext.local(
        partition, loads, sample, 1.1, costs=retext.CutCosts(1, 1, 1)
    ),
    "shift": lambda partition, loads, sample, j: shift.adjust(partition, loads, 0.0),
    "borders": lambda partition, loads, sample, j: borders.adjust(partition, loads, 1.05),
}
BUILDERS: dict[str, Callable[..., Partition]] = {
    "agrid": lambda sample, workers: a_grid.build(sample, workers, evaluators=3 * workers, cells=32),
    "quad": lambda sample, workers: quad_tree.build(sample, workers, cells=32),
    "qt": qt_tree.build,
    "kdt": kdt_tree.build,
}


@pytest.mark.parametrize("router", BUILDERS)
@pytest.mark.parametrize("shape", [*slow("spread"), "crowded"])
def test_no_post_misses_a_query_after_any_adjustments(router: str, shape: str) -> None:
    rng = np.random.default_rng(len(router) + len(shape))
    sample = twin.random_sample(rng, 40, 30, shape)
    partition = BUILDERS[router](sample, 4)
    statistics = Statistics.of(sample, partition.extent, depth=5, word_depth=3)
    done = set()
    for name in [*STRATEGIES, *rng.permutation(list(STRATEGIES))]:
        size = len(partition.node)
        load = rng.integers(0, 9, partition.leaves) * rng.choice([0.0, 1.0, 20.0], partition.leaves)
        loads = Loads(rng.integers(0, 4, size).astype(np.float64), rng.integers(0, 4, size).astype(np.float64), load)
        move = STRATEGIES[name](partition, loads, sample, statistics)
        if move is not None:
            done.add(name)
            partition = move.partition
            assert move.cause and move.strategy
            assert move.queries >= 0 and move.posts >= 0
            twin.check_partition(partition, sample, 4)
    assert len(done) >= 5
