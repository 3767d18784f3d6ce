"""Partitions and loads to balance, of all shapes."""

import numpy as np
from hypothesis import strategies as st

from nearcast.partitioning.moves import Loads
from nearcast.partitioning.partition import BY_POST, BY_QUERY, SPACE, Partition
from nearcast.partitioning.routers import a_grid
from nearcast.partitioning.sample_tally import WORLD, prefix_sums
from nearcast.partitioning.tiles import paint, space_partition

CELLS = 8


def random_loads(rng: np.random.Generator, partition: Partition) -> Loads:
    """Zeros among the cells and leaves, and small numbers, so that there are ties."""
    size = len(partition.node)
    posts = rng.integers(0, 6, size) * (rng.random(size) < rng.choice([0.1, 0.5, 1.0]))
    queries = rng.integers(0, 4, size) * (rng.random(size) < 0.7)
    leaf = rng.integers(0, 9, partition.leaves) * rng.choice([0.0, 1.0, 1.0, 10.0], partition.leaves)
    return Loads(posts.astype(np.float64), queries.astype(np.float64), leaf)


def random_tiles(seed: int, leaves: int, workers: int) -> tuple[Partition, Loads]:
    """Rectangles from random cuts, and random owners."""
    rng = np.random.default_rng(seed)
    parts = a_grid.split(prefix_sums(rng.integers(0, 9, (CELLS, CELLS))), leaves)
    owner = rng.integers(0, workers, leaves)
    partition = space_partition("agrid", WORLD, CELLS, paint(parts, CELLS), np.zeros(leaves), owner, workers)
    return partition, random_loads(rng, partition)


def random_mix(seed: int, nodes: int, workers: int) -> tuple[Partition, Loads]:
    """Nodes of all three kinds, with up to four leaves."""
    rng = np.random.default_rng(seed)
    kind = rng.choice([SPACE, BY_QUERY, BY_POST], nodes).astype(np.uint8)
    sizes = np.where(kind == SPACE, 1, rng.integers(1, 5, nodes))
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    leaves = int(first[-1])
    words = [
        np.unique(rng.integers(1, 40, 3) * (kind[n] != SPACE)).astype(np.uint64)
        for n in range(nodes)
        for _ in range(sizes[n])
    ]
    words = [each[each > 0] for each in words]
    partition = Partition(
        "mix",
        WORLD,
        CELLS,
        rng.permutation(np.arange(CELLS * CELLS) % nodes).astype(np.int32),
        kind,
        first,
        np.zeros(leaves),
        rng.integers(0, workers, leaves).astype(np.int32),
        workers,
        np.concatenate(words),
        np.concatenate(([0], np.cumsum([len(each) for each in words]))).astype(np.int64),
    )
    return partition, random_loads(rng, partition)


tiles = st.builds(random_tiles, st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
mixes = st.builds(random_mix, st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 5))


def check_partition(partition: Partition) -> None:
    """What every partition must be: each cell in a node, each node with leaves, each leaf with a worker."""
    assert set(np.unique(partition.node)) == set(range(partition.nodes))
    assert partition.first[0] == 0 and partition.first[-1] == partition.leaves
    assert (np.diff(partition.first) > 0).all()
    assert (np.diff(partition.first)[partition.kind == SPACE] == 1).all()
    assert len(partition.owner) == len(partition.load) == partition.leaves
    assert ((partition.owner >= 0) & (partition.owner < partition.workers)).all()
    assert partition.node.dtype == partition.first.dtype == partition.owner.dtype == np.int32
    if (partition.kind != SPACE).any():
        assert len(partition.keyword_starts) == partition.leaves + 1
    assert partition.keyword_starts[-1] == len(partition.keywords)
