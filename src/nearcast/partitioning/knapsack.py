"""Minimum Cost Migration (PS2Stream §V-A, Definition 4): which units to give away, so that their load reaches a target
and their size is small. GR is the paper's, DP its exact measure, SI and RA what it is compared with (§VI-D).

Each takes the load and the size of all units and a target, and returns the units picked.
"""

import numpy as np


def gr(load: np.ndarray, size: np.ndarray, target: float) -> np.ndarray:
    """Units of at least `target` load and small size, at most twice the least possible: in order of size / load, units
    are taken as long as they leave something to do (GS); each that would be enough (GL) ends a candidate solution with
    all taken before it, and the smallest of these wins. All units with load, if they do not make up the target.
    """
    order = _by_relative_cost(load, size)
    taken: list[int] = []
    best: tuple[float, int, int] | None = None  # size, how many taken, and the last one
    so_far, so_big = 0.0, 0.0
    for unit in order.tolist():
        if so_far + load[unit] < target:
            taken.append(unit)
            so_far += float(load[unit])
            so_big += float(size[unit])
        elif best is None or so_big + size[unit] < best[0]:
            best = (so_big + float(size[unit]), len(taken), unit)
    return np.array(taken if best is None else [*taken[: best[1]], best[2]], np.int64)


def dp(load: np.ndarray, size: np.ndarray, target: float) -> np.ndarray:
    """The units of least size with at least `target` load, sizes rounded up to whole numbers: A(i, j), the greatest
    load of the first i units within a size of j, for all j up to the bound P, which is what GR needs. O(n P) time and
    memory, so for comparison only. The recurrence as printed never fills a size exactly (j ≤ S for j < S).
    """
    order = _by_relative_cost(load, size)
    greedy = gr(load, size, target)
    if load[greedy].sum() < target:
        return greedy
    whole = np.ceil(size).astype(np.int64)
    bound = int(whole[greedy].sum())
    best = np.zeros(bound + 1)
    used = np.zeros((len(order), bound + 1), np.bool_)
    for row, unit in enumerate(order.tolist()):
        room = bound + 1 - int(whole[unit])
        if room <= 0:
            continue
        with_it = best[:room] + load[unit]
        better = with_it > best[whole[unit] :]
        used[row, whole[unit] :] = better
        best[whole[unit] :] = np.where(better, with_it, best[whole[unit] :])
    enough = np.flatnonzero(best >= target)
    if not len(enough):  # only where sums of doubles in another order fall short of the target by their last bit
        return greedy
    left, out = int(enough[0]), []
    for row in range(len(order) - 1, -1, -1):
        if used[row, left]:
            out.append(int(order[row]))
            left -= int(whole[order[row]])
    return np.array(out[::-1], np.int64)


def si(load: np.ndarray, size: np.ndarray, target: float) -> np.ndarray:
    """The baseline SI: the largest units first, until they are enough."""
    return _until_enough(np.argsort(-size, kind="stable"), load, target)


def ra(load: np.ndarray, size: np.ndarray, target: float) -> np.ndarray:
    """The baseline RA: units at random (the same ones every time), until they are enough."""
    return _until_enough(np.random.default_rng(0).permutation(len(load)), load, target)


def _by_relative_cost(load: np.ndarray, size: np.ndarray) -> np.ndarray:
    useful = np.flatnonzero(load > 0)
    return useful[np.argsort(size[useful] / load[useful], kind="stable")]


def _until_enough(order: np.ndarray, load: np.ndarray, target: float) -> np.ndarray:
    order = order[load[order] > 0]
    return order[: int(np.searchsorted(np.cumsum(load[order]), target)) + 1]
