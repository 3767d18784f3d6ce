"""Planning a QT-tree as a whole: where to stop cutting space and go on with text.

The quadtree of spatial splits alone is grown first, by Algorithm 1. Each of its nodes could instead be a leaf, or be
split by text: once, twice and so on, the heaviest child next. A dynamic programme over the quadtree then shares out the
splits that θ leaves allow so that the sum of W over the leaves is least. Both baselines of SSTD §7.1 are among the
trees that it chooses from, the quadtree itself and its root split by text, so its plan has at most the work of either.

The plan is made with at most PLANNED posts, spread evenly over the sample, and then carried out with all of them.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from nearcast.partitioning.cost_model import Prices
from nearcast.partitioning.kernels.query_counts import PARTS
from nearcast.partitioning.partition import BY_POST
from nearcast.partitioning.qt_split import GAIN, Planter, SplitNode, grow, leaves, plant

SMALL = 1e-3  # of the root's work: a node below is not split by text
STEP = 1e-3  # of its own work, that the next textual split of a node must gain
PLANNED = 100_000  # posts that a plan is made with


@dataclass
class _Choices:
    """best[b]: the least work of a node's subtree with at most b splits; `spatial[b]` and `textual[b]` say how it is
    had: the splits of each child, and how many textual ones (0 for a leaf).
    """

    best: np.ndarray
    textual: np.ndarray
    spatial: list[tuple[int, ...] | None]
    order: list[
        SplitNode
    ]  # of textual splits: the nodes split, one after the other; the first stands for the node itself


def best_plan(planter: Planter, theta: int, planned: int = PLANNED) -> SplitNode:
    """The root of the tree with at most θ leaves, four from each split, and the least work. Splits that gain nothing
    are spent on the heaviest squares all the same: more leaves are easier to balance.
    """
    few = planter.thinned(planned)
    root = plant(few, theta, "space")
    splits = max(theta - 1, 0) // (PARTS - 1)
    choices: dict[int, _Choices] = {}
    _weigh(few, root, splits, root.work * SMALL, choices)
    _realise(root, splits, choices)
    spare = theta - len(leaves(root))
    grow(few, cells := spatial_leaves(root), len(cells) + spare, "space")
    return root if few is planter else regrown(planter, planter.root(), root)


def spatial_leaves(root: SplitNode) -> list[SplitNode]:
    """The leaves that are not of a textual split."""
    if not root.children:
        return [root]
    return [] if root.cut == BY_POST else [leaf for child in root.children for leaf in spatial_leaves(child)]


def regrown(planter: Planter, node: SplitNode, plan: SplitNode) -> SplitNode:
    """A node with all of the posts, split as the plan's was: space alike, text as often."""
    if plan.children and plan.cut == BY_POST:
        _, order = text_sequence(planter, node, planter.prices(node), _splits(plan), step=0.0)
        node.cut, node.children = BY_POST, order[0].children if order else []
    elif plan.children:
        node.children = [regrown(planter, *pair) for pair in zip(planter.by_space(node), plan.children, strict=True)]
    return node


def _splits(node: SplitNode) -> int:
    return (1 if node.children else 0) + sum(_splits(child) for child in node.children)


def _weigh(planter: Planter, node: SplitNode, splits: int, small: float, choices: dict[int, _Choices]) -> None:
    for child in node.children:
        _weigh(planter, child, splits, small, choices)
    shared = np.full(splits, np.inf)
    parts: list[tuple[int, ...]] = [()] * splits
    if node.children:
        shared, parts = share_out([choices[id(child)].best for child in node.children], splits - 1)
    works: list[float] = [node.work]
    order: list[SplitNode] = []
    if node.work > small and splits:
        prices = planter.prices(node)
        floor = len(node.posts) * prices.post(np.zeros(len(prices.coefficients)))  # that no textual split goes below
        works, order = text_sequence(planter, node, prices, int((shared > floor).sum()))
    best = np.r_[works, np.full(splits + 1 - len(works), works[-1])]
    textual = np.minimum(np.arange(splits + 1), len(works) - 1)
    spatial: list[tuple[int, ...] | None] = [None] * (splits + 1)
    for budget in range(1, splits + 1):
        if shared[budget - 1] <= best[budget]:
            best[budget], spatial[budget] = shared[budget - 1], parts[budget - 1]
    choices[id(node)] = _Choices(best, textual, spatial, order)


def text_sequence(
    planter: Planter, node: SplitNode, prices: Prices, splits: int, step: float = STEP
) -> tuple[list[float], list[SplitNode]]:
    """The work of a node after 0, 1, ... textual splits, as far as they gain, and the nodes that were split. The first
    of them stands for the node itself, which is left as it is.
    """
    top = SplitNode(node.level, node.x, node.y, node.posts, node.work, BY_POST)
    heap, number = [(-top.work, 0, top)], 1
    works: list[float] = [node.work]
    order: list[SplitNode] = []
    while heap and len(order) < splits:
        split = heapq.heappop(heap)[-1]
        children = planter.by_text(split, prices)
        gain = split.work - sum(child.work for child in children)
        if not children or gain <= split.work * GAIN:
            continue
        split.cut, split.children = BY_POST, children
        order.append(split)
        works.append(works[-1] - gain)
        for child in children:
            heapq.heappush(heap, (-child.work, number, child))
            number += 1
        if gain < node.work * step:
            break
    return works, order


def share_out(curves: list[np.ndarray], splits: int) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """For every budget from 0 to `splits`: the least sum of one value of each curve whose indices add up to at most the
    budget, and those indices.
    """
    best = np.zeros(splits + 1)
    parts: list[tuple[int, ...]] = [()] * (splits + 1)
    for curve in curves:
        sums = np.empty(splits + 1)
        chosen = list(parts)
        for budget in range(splits + 1):
            options = best[budget::-1] + curve[: budget + 1]
            take = int(np.argmin(options))
            sums[budget], chosen[budget] = options[take], (*parts[budget - take], take)
        best, parts = sums, chosen
    return best, parts


def _realise(node: SplitNode, splits: int, choices: dict[int, _Choices]) -> None:
    """Give a node the children that its budget is best spent on."""
    chosen = choices[id(node)]
    budgets = chosen.spatial[splits]
    if budgets is not None:
        for child, budget in zip(node.children, budgets, strict=True):
            _realise(child, budget, choices)
        return
    node.children = []
    kept = int(chosen.textual[splits])
    for late in chosen.order[kept:]:
        late.children = []
    if kept:
        node.cut, node.children = BY_POST, chosen.order[0].children
