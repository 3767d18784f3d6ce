"""Phase I of PS2Stream's local load adjustment (PS2Stream §V-A): cells of the most loaded worker w_o are cut by words
or merged with what the least loaded worker w_l has of the same place, where that lowers the total load.
"""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.balancers.migration import RATIO, SIDE, Units, adjust, block_of, cells_of_block
from nearcast.partitioning.moves import Loads, Move, imbalance, leaf_nodes, worker_loads
from nearcast.partitioning.partition import BY_QUERY, SPACE, Partition
from nearcast.partitioning.redrawn import DrawnNode, Leaf, Redrawn, move_of, plain
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import cells_of, rectangles_of
from nearcast.storage.subscriptions.kernels.register import key_terms

CELLS = 8  # p: how many of the most loaded cells are looked at; "a small parameter"


@dataclass(frozen=True)
class CutCosts:
    """Of Definition 1: a check of an object against a query, an object, an insertion. In proportion only."""

    check: float = 0.01  # c1
    post: float = 1.0  # c2
    query: float = 1.0  # c3

    def load(self, posts: int, queries: int) -> float:
        return self.check * posts * queries + self.post * posts + self.query * queries


COSTS = CutCosts()


def local(
    partition: Partition,
    loads: Loads,
    sample: RouterSample,
    ratio: float = RATIO,
    cells: int = CELLS,
    costs: CutCosts = COSTS,
    side: int = SIDE,
) -> Move | None:
    """Local load adjustment as a whole: phase I with the words of a recent sample and then, if L_max / L_min is still
    more than σ (`ratio`), phase II.
    """
    first = phase_one(partition, loads, sample, ratio, cells, costs, side)
    second = adjust(*((first.partition, first.loads) if first else (partition, loads)), ratio, side=side)
    if not first or not second:
        return first or second
    cause = f"{first.cause}; {second.cause}"
    return move_of(partition, loads, second.partition, second.loads.leaf_load, "migrate", cause)


def phase_one(
    partition: Partition,
    loads: Loads,
    sample: RouterSample,
    ratio: float = RATIO,
    cells: int = CELLS,
    costs: CutCosts = COSTS,
    side: int = SIDE,
) -> Move | None:
    """The `cells` (p) most loaded cells of w_o, each weighed by Definition 1 on the sample: one of space is cut in two
    by the key words of its queries and the smaller part (in queries) given to w_l; one cut by words already goes to
    w_l and is merged with w_l's part of the same place. Either where the total falls. None if that is nowhere.
    """
    load = worker_loads(partition, loads.leaf_load)
    if imbalance(load) <= ratio:
        return None
    most, least = int(load.argmax()), int(load.argmin())
    units = Units.of(partition, loads, most, side)
    places = _Places(partition, sample, units.side)
    redrawn = Redrawn(partition, loads)
    cut = merged = 0
    seen: set[tuple[int, int]] = set()
    for unit in np.argsort(-units.load, kind="stable")[:cells].tolist():
        if units.load[unit] <= 0:
            break
        leaf, block = int(units.leaf[unit]), int(units.block[unit])
        node = int(leaf_nodes(partition)[leaf])
        if (node, block) in seen:  # two leaves of one place: one change at a time
            continue
        seen.add((node, block))
        here = places.at(node, block)
        kind, old, change = partition.kind[node], redrawn.nodes[node], None
        if kind == SPACE:
            change = by_words(here, costs, most, least)
        elif kind == BY_QUERY:
            change = together(here, costs, old, leaf - int(partition.first[node]), least)
        if change:
            new, factor = change
            there = float(redrawn.cell_load[here.cells].sum())
            arriving = there * (factor * new.share_of(least) - old.share_of(least))
            if load[least] + arriving < load[most]:  # or the trouble would only have moved
                load[least] += arriving
                redrawn.cell_load[here.cells] *= factor
                redrawn.add(here.cells, new)
                cut += kind == SPACE
                merged += kind == BY_QUERY
    if not cut and not merged:
        return None
    was = imbalance(worker_loads(partition, loads.leaf_load))
    cause = f"L_max / L_min is {was:.3g}, more than {ratio:g}: {cut} cells cut by words, {merged} merged"
    return redrawn.move("migrate", cause)


@dataclass(frozen=True)
class Here:
    """A place: its cells, its posts as (post, word) pairs and their number, its queries as (query, key word) pairs, 0
    standing for none.
    """

    cells: np.ndarray
    posts: int
    post: np.ndarray
    post_word: np.ndarray
    query: np.ndarray
    query_word: np.ndarray

    def counts(self, words: np.ndarray, anyway: bool = False) -> tuple[int, int]:
        """How many posts have one of these words, or are sent `anyway`; and how many queries are filed under one."""
        posts = self.posts if anyway else len(np.unique(self.post[np.isin(self.post_word, words[words > 0])]))
        return posts, len(np.unique(self.query[np.isin(self.query_word, words)]))


def by_words(here: Here, costs: CutCosts, stays: int, to: int) -> tuple[DrawnNode, float] | None:
    """A place of space in two leaves by words, and by what factor its load falls; None if it does not.

    Words are dealt out from the one with most queries on, each to the part with fewer. Queries without a word belong to
    the first leaf, to which all posts go then.
    """
    words, filed = np.unique(here.query_word, return_counts=True)
    anyway = bool(len(words) and words[0] == 0)
    sums, parts = [float(filed[0]) if anyway else 0.0, 0.0], [[0] if anyway else [], []]
    words, filed = words[int(anyway) :], filed[int(anyway) :]
    for at in np.lexsort((words, -filed)).tolist():
        lighter = int(sums[1] < sums[0])
        parts[lighter].append(int(words[at]))
        sums[lighter] += float(filed[at])
    if not parts[1]:
        return None
    lists = [np.sort(np.array(part, np.uint64)) for part in parts]
    counts = [here.counts(lists[0], anyway), here.counts(lists[1])]
    after = [costs.load(*each) for each in counts]
    before = costs.load(here.posts, len(np.unique(here.query)))
    if sum(after) >= before:
        return None
    smaller = int(counts[1][1] <= counts[0][1])
    owners = [stays, to] if smaller else [to, stays]
    leaves = [Leaf(owners[i], lists[i][lists[i] > 0], after[i] / sum(after)) for i in range(2)]
    return DrawnNode(BY_QUERY, tuple(leaves)), sum(after) / before


def together(here: Here, costs: CutCosts, node: DrawnNode, which: int, to: int) -> tuple[DrawnNode, float] | None:
    """A place whose leaf `which` has become one with that of worker `to`, if it has one there and the load falls."""
    theirs = [i for i, leaf in enumerate(node.leaves) if leaf.owner == to]
    if not theirs:
        return None
    pair = (which, theirs[0])
    lists = [np.append(node.leaves[i].words, np.zeros(int(i == 0), np.uint64)) for i in pair]  # the first has word 0
    anyway = [i == 0 and bool((here.query_word == 0).any()) for i in pair]
    before = sum(costs.load(*here.counts(words, each)) for words, each in zip(lists, anyway, strict=True))
    after = costs.load(*here.counts(np.concatenate(lists), any(anyway)))
    if after >= before:
        return None
    share = node.leaves[pair[0]].share + node.leaves[pair[1]].share
    factor = 1.0 - share * (1.0 - after / before)
    if len(node.leaves) == 2:
        return plain(to), factor
    leaves = []
    for i, leaf in enumerate(node.leaves):
        if i == pair[1]:
            words = np.union1d(*(node.leaves[each].words for each in pair))
            leaves.append(Leaf(to, words, share * after / before / factor))
        elif i != which:
            leaves.append(Leaf(leaf.owner, leaf.words, leaf.share / factor))
    return DrawnNode(BY_QUERY, tuple(leaves)), factor


class _Places:
    """The sample by place: what of it is in a block of a node."""

    def __init__(self, partition: Partition, sample: RouterSample, side: int) -> None:
        self.partition, self.posts, self.queries = partition, sample.posts, len(sample.queries)
        self.side = side
        at = cells_of(sample.posts, partition.extent, partition.cells).astype(np.int64)
        self.post_key = block_of(at, partition.cells, side) * partition.nodes + partition.node[at]
        self.rows, self.rectangles = rectangles_of(sample.queries, partition.extent, partition.cells)
        self.filed, self.terms = key_terms(
            frozen(sample.queries.code), frozen(sample.queries.code_offsets.astype(np.uint32))
        )

    def at(self, node: int, block: int) -> Here:
        side = self.partition.cells
        cells = cells_of_block(self.partition, self.side, block, node)
        x, y = cells % side, cells // side
        r = self.rectangles
        touching = (r[:, 0] <= x.max()) & (r[:, 2] > x.min()) & (r[:, 1] <= y.max()) & (r[:, 3] > y.min())
        wanted = np.zeros(self.queries, np.bool_)
        wanted[self.rows[touching]] = True
        asked = wanted[self.filed]
        posts = np.flatnonzero(self.post_key == block * self.partition.nodes + node)
        offsets = self.posts.offsets.astype(np.int64)
        sizes = offsets[posts + 1] - offsets[posts]
        words = np.repeat(offsets[posts] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        return Here(
            cells, len(posts), np.repeat(posts, sizes), self.posts.terms[words], self.filed[asked], self.terms[asked]
        )


def repartition(current: np.ndarray, fresh: np.ndarray, ratio: float = RATIO, gain: float = 0.1) -> bool:
    """Global load adjustment (§V-B), the decision: whether to change to a partition made anew, from the loads of the
    workers on a recent sample under both. The paper leaves the rule open; here it is its objective (§IV-A): the fresh
    one balances what is out of balance, or lowers the total by at least `gain` of it.
    """
    if imbalance(fresh) > ratio >= imbalance(current):
        return False
    return imbalance(current) > ratio >= imbalance(fresh) or float(fresh.sum()) <= (1 - gain) * float(current.sum())
