"""The load that a sample means for the leaves of a partition (PS2Stream §IV-A, Definition 1)."""

from dataclasses import replace

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import Queries, RouterSample
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.partitioning.worker_load import MEASURED, LoadCosts


def predicted(partition: Partition, sample: RouterSample, costs: LoadCosts = MEASURED) -> np.ndarray:
    """By leaf: c1 · |O| · |Q| + c2 · |O| + c3 · |Q| of what it matches and keeps."""
    router, posts = RoutingTable(partition), sample.posts
    prints = frozen(np.random.default_rng(0).integers(0, 1 << 63, len(posts)).astype(np.uint64))
    stored = router.store(posts.lon, posts.lat, posts.terms, posts.offsets, prints)
    _, matched = router.match(posts.lon, posts.lat, posts.terms, posts.offsets, stored)
    carried = np.bincount(matched, minlength=router.leaves)
    kept = np.bincount(router.leaves_of(_asked(sample.queries))[1], minlength=router.leaves)
    return costs.c1 * carried * kept + costs.c2 * carried + costs.query * kept


def _asked(queries: Queries) -> Queries:
    """With arrays of the kind that rows of segments have, so that nothing is compiled twice."""
    offsets = np.ascontiguousarray(queries.code_offsets, np.uint32)
    boxes = np.ascontiguousarray(queries.boxes, np.float64)
    return replace(queries, boxes=frozen(boxes), code=frozen(queries.code), code_offsets=frozen(offsets))
