"""PS2Stream's kdt-tree (PS2Stream §IV-B, Algorithm 1): a kd-tree some of whose leaves are cut further by the text.

Phase one cuts space as long as the words of posts and those of queries become less alike in a part: where they differ
(N_t) parts are later cut by text only, since most posts have no word that is asked for; where they are alike (N_s) by
text or by space, whichever has the smaller load. Phase two, if there are fewer parts than workers, shares out the cuts
by a dynamic programme. Then parts are merged into workers, and the heaviest is cut in two until L_max / L_min ≤ σ, or
there are θ parts. Where to cut a part of space is left open; it is by load here, so that it seldom comes to that. The
grid of cells on which parts end is the gridt of §IV-C; H1 is the partition's keywords and H2 the textual summary.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.kernels.word_division import count_words, merge_leaves
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import Rectangle
from nearcast.partitioning.text_division import by_metric, partition_of
from nearcast.partitioning.worker_load import MEASURED, MOST, LoadCosts, LoadPart, Traffic

SIGMA = 1.2
DELTA = 0.5
THETA = 64
MINOR = 0.02  # a difference of similarity that is ≈ 0 (line 9)
SMALLEST = 0.01  # of all posts: a part with fewer is not cut in phase one
TRIED = (*range(1, 17), 24, 32, 48, 64, 96, 128)  # numbers of cuts of one part that the dynamic programme weighs


def build(
    sample: RouterSample,
    workers: int,
    sigma: float = SIGMA,
    delta: float = DELTA,
    theta: int = THETA,
    costs: LoadCosts = MEASURED,
    most: int = MOST,
) -> Partition:
    """θ counts for four parts a worker at least. Of two plans the one with the smaller L_max is taken: with phase one
    N_t is cut by text, without it all is cut by whichever is less, which may be less still.
    """
    traffic = Traffic.of(sample, costs, most)
    theta = max(theta, 4 * workers)
    told_apart = alike_or_not(traffic, delta, theta)
    plans = [planned(traffic, told_apart, workers, sigma, theta)]
    if any(part.by_text for part in told_apart):
        plans.append(planned(traffic, [traffic.whole()], workers, sigma, theta))
    _, parts, owner = min(plans, key=lambda plan: plan[0])
    idle = np.array([part.load for part in parts]) <= 0  # nothing is known of these: dealt out in turn
    owner = np.where(idle, np.arange(len(parts)) % workers, owner).astype(np.int32)
    return partition_of("kdt", traffic, parts, owner, workers)


def planned(
    traffic: Traffic, parts: list[LoadPart], workers: int, sigma: float, theta: int
) -> tuple[float, list[LoadPart], np.ndarray]:
    """Phase two and what follows: (L_max, parts, the worker of each)."""
    if len(parts) == 1:
        parts = partition_node(traffic, parts[0], workers)
    elif len(parts) < workers:
        curves = [_curve(traffic, part, workers - len(parts) + 1) for part in parts]
        numbers = numbers_of_parts(curves, workers)
        cut = [partition_node(traffic, part, number) for part, number in zip(parts, numbers, strict=True)]
        parts = [leaf for leaves in cut for leaf in leaves]
    return balanced(traffic, parts, workers, sigma, theta)


def balanced(
    traffic: Traffic, parts: list[LoadPart], workers: int, sigma: float, theta: int
) -> tuple[float, list[LoadPart], np.ndarray]:
    """Lines 18-24: parts merged into workers, and the heaviest cut in two, until L_max / L_min ≤ σ or there are θ. Of
    all that came about on the way, that with the least L_max: to cut and deal out anew copies queries, so that workers
    may all be balanced and all have more to do.
    """
    found: tuple[float, list[LoadPart], np.ndarray] | None = None
    parts, stuck = list(parts), set[int]()
    while True:
        owner, loads = merged(traffic, parts, workers)
        if found is None or loads.max() < found[0]:
            found = float(loads.max()), list(parts), owner
        if loads.max() <= sigma * loads.min() or len(parts) >= theta:
            break
        heaviest = max((n for n in range(len(parts)) if n not in stuck), key=lambda n: parts[n].load, default=-1)
        if heaviest < 0 or parts[heaviest].load == 0:
            break
        pieces = partition_node(traffic, parts[heaviest], 2)
        parts[heaviest : heaviest + 1] = pieces
        more = len(pieces) - 1
        stuck = {n + more if n > heaviest else n for n in stuck} | (set() if more else {heaviest})
    return found


def alike_or_not(traffic: Traffic, delta: float, theta: int) -> list[LoadPart]:
    """Phase one, lines 2-12: N_t, which is marked `by_text`, and N_s."""
    undecided = deque([traffic.whole()])
    done: list[LoadPart] = []
    least = SMALLEST * traffic.everything[0]
    while undecided:
        part = undecided.popleft()
        here = similarity(traffic, part)
        if here >= delta:
            done.append(part)
            continue
        halves: list[LoadPart] = []
        alpha = here
        if len(part.posts) > least and len(undecided) + len(done) + 2 < theta:
            for axis in (0, 1):
                pair = cut_in_two(traffic, part, axis, 0.5)
                lower = min((similarity(traffic, half) for half in pair), default=np.inf)
                if lower < alpha:
                    halves, alpha = pair, lower
        if here - alpha <= MINOR:
            done.append(traffic.part(part.rectangle, part.posts, part.queries, by_text=True))
        else:
            undecided.extend(halves)
    return done


def similarity(traffic: Traffic, part: LoadPart) -> float:
    """sim_t: the cosine of the numbers of each word in posts and of queries filed under it; 0 where either has none.
    (PS2Stream does not say which words of a query count. With all of them the frequent ones drown the rest: even of Q2,
    where text does best, the similarity is 0.99.)
    """
    size = len(traffic.vocabulary)
    posts = count_words(part.posts, traffic.offsets, traffic.words, size)
    queries = count_words(part.queries, traffic.key_offsets, traffic.keys, size)
    norms = float(np.sqrt((posts @ posts) * (queries @ queries)))
    return float(posts @ queries) / norms if norms > 0 else 0.0


def numbers_of_parts(curves: Sequence[np.ndarray], parts: int) -> list[int]:
    """ComputeNumberPartitions: how many parts to make of each node so that there are `parts` in all and the sum of
    loads is least. curves[i][k - 1] is C[i, k], the load of node i in k parts, infinite where that is not possible; if
    no choice makes up `parts`, as many as there can be.

    L[i, j] = min over 1 ≤ k ≤ j - i + 1 of L[i - 1, j - k] + C[i, k], for nodes and parts counted from 1.
    """
    best = np.full((len(curves) + 1, parts + 1), np.inf)
    best[0, 0] = 0.0
    taken = np.zeros((len(curves) + 1, parts + 1), np.int64)
    for i, curve in enumerate(curves, 1):
        for j in range(i, parts + 1):
            for k in range(1, min(j - i + 1, len(curve)) + 1):
                load = best[i - 1, j - k] + curve[k - 1]
                if load < best[i, j]:
                    best[i, j], taken[i, j] = load, k
    j = max(j for j in range(parts + 1) if np.isfinite(best[-1, j]))
    out = []
    for i in range(len(curves), 0, -1):
        out.append(int(taken[i, j]))
        j -= out[-1]
    return out[::-1]


def partition_node(traffic: Traffic, part: LoadPart, parts: int) -> list[LoadPart]:
    """PartitionNode: a part in at most so many, by text in N_t and where it is one of a text already, else by text or
    by space, whichever has the smaller load; of the two halves of space each again. A part without words enough is cut
    by space.
    """
    if parts == 1:
        return [part]
    keys = np.unique(traffic.pairs(part.queries)[1])
    keys = keys if part.words is None else np.intersect1d(keys, part.words)
    textual = by_metric(traffic, part, parts) if len(keys) >= parts else []
    if part.words is not None or (part.by_text and textual):
        return textual or [part]
    less = parts // 2
    halves = [pair for axis in (0, 1) if (pair := cut_in_two(traffic, part, axis, less / parts))]
    if not halves:
        return textual or [part]
    one, other = min(halves, key=total)
    spatial = partition_node(traffic, one, less) + partition_node(traffic, other, parts - less)
    if textual and (len(spatial) < parts or total(textual) < total(spatial)):
        return textual
    return spatial


def cut_in_two(traffic: Traffic, part: LoadPart, axis: int, share: float) -> list[LoadPart]:
    """Two parts side by side, the first to have this share of the parts that are made of both; none where there is one
    column (or row). The line is where the heavier of these will be lightest.
    """
    low, high = part.rectangle[axis], part.rectangle[axis + 2]
    if high - low < 2:
        return []
    line = low + 1 + _lightest(traffic, part, axis, share)
    return [
        traffic.part(half, part.posts, part.queries, part.by_text)
        for half in (_with(part.rectangle, axis + 2, line), _with(part.rectangle, axis, line))
    ]


def _lightest(traffic: Traffic, part: LoadPart, axis: int, share: float) -> int:
    """Of the lines between two columns (or rows) that where the greater load of a part is least. Of k alike parts of
    one side each has c1·|O|·|Q| / k² + (c2·|O| + c3·|Q|) / k. Among equals the line nearest to the share of the space.
    """
    low, high = part.rectangle[axis], part.rectangle[axis + 2]
    width, costs = high - low, traffic.costs
    begin, end = traffic.rectangles[part.queries, axis], traffic.rectangles[part.queries, axis + 2]
    again = (traffic.rectangles[part.queries, axis + 6] > 0) & (axis == 0)  # over the antimeridian: the same rows twice
    begin = np.where(again, low, np.clip(begin, low, high - 1))
    end = np.where(again, high, np.clip(end, low + 1, high))
    at = (traffic.x, traffic.y)[axis][part.posts]
    posts, begun, ended = (
        np.cumsum(np.bincount(where - low, minlength=width + 1))[:width] for where in (at, begin, end)
    )
    # of each line but the outermost: what lies before it, and what after
    before = posts[:-1], begun[:-1]
    after = len(at) - posts[:-1], len(begin) - ended[1:]
    loads = [
        costs.c1 * (o / k) * (q / k) + (costs.c2 * o + costs.query * q) / k
        for (o, q), k in ((before, share), (after, 1 - share))
    ]
    heavier = np.maximum(*loads)
    lines = np.flatnonzero(heavier == heavier.min())
    return int(lines[np.argmin(np.abs(lines + 1 - width * share))])


def total(parts: Sequence[LoadPart]) -> float:
    return sum(part.load for part in parts)


def merged(traffic: Traffic, parts: Sequence[LoadPart], workers: int) -> tuple[np.ndarray, np.ndarray]:
    """MergeNodesIntoPartitions: the worker of each part, and the load of each worker."""
    posts, queries = [part.sent for part in parts], [part.queries for part in parts]
    order = np.argsort([-part.load for part in parts], kind="stable")
    costs = traffic.costs
    return merge_leaves(
        frozen(order),
        *_joined(posts),
        *_joined(queries),
        *traffic.everything,
        workers,
        costs.c1,
        costs.c2,
        costs.query,
    )


def _joined(lists: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return frozen(np.r_[0, np.cumsum([len(each) for each in lists])]), frozen(np.concatenate(lists))


def _curve(traffic: Traffic, part: LoadPart, most: int) -> np.ndarray:
    """C[i, k] for k = 1 to `most`; infinite for those not tried, or not possible."""
    out = np.full(most, np.inf)
    for number in {*TRIED, most}:
        if number <= most:
            leaves = partition_node(traffic, part, number)
            if len(leaves) == number:
                out[number - 1] = total(leaves)
    return out


def _with(rectangle: Rectangle, place: int, value: int) -> Rectangle:
    changed = list(rectangle)
    changed[place] = value
    return changed[0], changed[1], changed[2], changed[3]
