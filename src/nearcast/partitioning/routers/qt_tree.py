"""SSTD's QT-tree (SSTD §4.1.2, Algorithm 1): a quadtree whose nodes are split by space or by text, whichever makes
for less work by the cost model of eq. 2.

A spatial split cuts a square in four; a textual split keeps the square and deals its posts out to four children so that
each grows the workload least. The heaviest node is split next, until there are θ leaves, which are allotted to workers
by Karmarkar and Karp's method.

Algorithm 1 looks one split ahead. Where posts crowd in a few cities it goes wrong at the root: three of its quadrants
are all but empty, so that cutting it gains nothing yet, and text is chosen once and for all. (Measured: five times the
work of spatial splits alone.) So there is a second way to plan, `partitioning.qt_plan`, which has never more work by
the model than spatial splits alone, or textual ones alone. It is the default; Algorithm 1 as printed is
`ways="greedy"`.

A partition has leaves inside nodes inside space, the tree may have space below text too: there the square is cut for
all of the textual children, so a leaf of the tree can become several of the partition, each with its own posts,
keywords and load. Of a leaf's keywords those are kept that queries ask for, since others cost nothing by eq. 1; and a
node's leaves stand in order of their price a post, so that a post with none of their words goes to the cheapest, as the
increment of the workload says it should.
"""

from collections.abc import Iterator

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.partitioning.cost_model import Prices
from nearcast.partitioning.karmarkar_karp import karmarkar_karp
from nearcast.partitioning.kernels.query_counts import PARTS
from nearcast.partitioning.partition import BY_POST, SPACE, Partition
from nearcast.partitioning.qt_plan import best_plan
from nearcast.partitioning.qt_split import BITS, Planter, SplitNode, plant
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import CELLS
from nearcast.storage.subscriptions.rows import take_lists

THETA = 64
WAYS = ("best", "greedy", "space", "text")


def build(
    sample: RouterSample, workers: int, theta: int = THETA, ways: str = "best", statistics: Statistics | None = None
) -> Partition:
    """`ways` is "best", "greedy" (Algorithm 1), or "space" or "text" for the baselines Quadtree and Text of SSTD
    §7.1. J is made from the sample unless given. Where no query is known, queries are taken to be where posts are.
    """
    if ways not in WAYS:
        raise BadInput(f"a QT-tree is split by one of {', '.join(WAYS)}, not by {ways!r}")
    j = statistics or Statistics.of(sample)
    if not j.totals.any():
        j = j.as_if_posts_asked()
    planter = Planter.of(sample, j)
    root = best_plan(planter, theta) if ways == "best" else plant(planter, theta, ways)
    return _partition(planter, root, workers)


def build_space(sample: RouterSample, workers: int, theta: int = THETA) -> Partition:
    """The baseline Quadtree of SSTD §7.1."""
    return build(sample, workers, theta, "space")


def build_text(sample: RouterSample, workers: int, theta: int = THETA) -> Partition:
    """The baseline Text of SSTD §7.1."""
    return build(sample, workers, theta, "text")


def squares(nodes: list[SplitNode], level: int, x: int, y: int) -> Iterator[tuple[int, int, int, list[SplitNode]]]:
    """The squares of a partition and the leaves of the tree that each belongs to: where one of several textual children
    is cut by space, all are.
    """
    here: list[SplitNode] = []
    while nodes:
        node, *nodes = nodes
        if node.cut == BY_POST and node.children:
            nodes = node.children + nodes
        else:
            here.append(node)
    if not any(node.children for node in here):
        yield level, x, y, here
        return
    for part in range(PARTS):
        below = [node.children[part] if node.children else node for node in here]
        yield from squares(below, level + 1, 2 * x + part % 2, 2 * y + part // 2)


def _partition(planter: Planter, root: SplitNode, workers: int) -> Partition:
    node_of = np.zeros((CELLS, CELLS), np.int32)
    kinds: list[int] = []
    loads: list[float] = []
    keywords: list[np.ndarray] = []
    first = [0]
    for level, x, y, leaves in squares([root], 0, 0, 0):
        side = CELLS >> level
        node_of[y * side : (y + 1) * side, x * side : (x + 1) * side] = len(kinds)
        prices = Prices.of(planter.j, level, x, y)
        parts = [_inside(planter, leaf, level, x, y) for leaf in leaves]
        parts = [posts for posts in parts if len(posts)] or parts[:1]
        prices_of = [prices.post(prices.hits(posts, planter.words, planter.offsets)) for posts in parts]
        for at in np.argsort(prices_of, kind="stable"):
            loads.append(prices_of[at] * len(parts[at]))
            keywords.append(_keywords(planter, parts[at]) if len(parts) > 1 else np.empty(0, np.uint64))
        kinds.append(BY_POST if len(parts) > 1 else SPACE)
        first.append(len(loads))
    load = np.array(loads)
    textual = BY_POST in kinds
    starts = np.r_[0, np.cumsum([len(terms) for terms in keywords])] if textual else np.zeros(1)
    return Partition(
        name="qt",
        extent=planter.j.extent,
        cells=CELLS,
        node=node_of.reshape(-1),
        kind=np.array(kinds, np.uint8),
        first=np.array(first, np.int32),
        load=load,
        owner=karmarkar_karp(load, workers),
        workers=workers,
        keywords=np.concatenate(keywords),
        keyword_starts=starts.astype(np.int64),
    )


def _inside(planter: Planter, leaf: SplitNode, level: int, x: int, y: int) -> np.ndarray:
    """Those of a leaf's posts that lie in a square at or below its own."""
    if leaf.level == level:
        return leaf.posts
    shift = BITS - level
    cells = planter.cells[leaf.posts]
    return frozen(leaf.posts[(cells % CELLS >> shift == x) & (cells // CELLS >> shift == y)])


def _keywords(planter: Planter, posts: np.ndarray) -> np.ndarray:
    words, _ = take_lists(planter.words, planter.offsets, posts)
    return planter.j.words.values[np.unique(words)]
