"""No index at all: every query goes to every worker, posts are dealt out at random (Tornado §6.1, *native Storm*)."""

import numpy as np

from nearcast.partitioning.partition import BY_POST, Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers.uniform_grid import WORLD

LEAVES = 64  # so that they can be dealt out anew to another number of workers


def build(sample: RouterSample, workers: int) -> Partition:
    """One node of leaves without keywords: a post goes to the leaf of its fingerprint, so duplicates meet."""
    leaves = max(LEAVES, workers)
    first = np.array([0, leaves], np.int32)
    owner = (np.arange(leaves) % workers).astype(np.int32)
    load = np.full(leaves, 1.0 / leaves)
    node, kind = np.zeros(1, np.int32), np.array([BY_POST], np.uint8)
    return Partition("everyone", WORLD, 1, node, kind, first, load, owner, workers)
