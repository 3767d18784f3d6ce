"""A batch of posts through RP-trees: an R-tree for each pivot attribute (STAR §8.3)."""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.growing import grown
from nearcast.kinds.aggregates.kernels.conditions import MISSING, check
from nearcast_papers.compiled_apart import kernel

WAVE = 64  # posts


class Trees(NamedTuple):
    """`lists`: the pivot (-1: none), the root of its R-tree (-1: none), and the run of its queries without a range. A
    node has a box and the run of its children, which are nodes or, where `is_leaf`, queries.
    """

    lists: np.ndarray
    boxes: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    is_leaf: np.ndarray
    item_boxes: np.ndarray
    items: np.ndarray
    free: np.ndarray
    entries: np.ndarray
    terms: np.ndarray


@kernel
def stab(begin, end, trees, posts, values, stack, near):
    """(post, query) of those whose range, if any, has the post."""
    lists, boxes, firsts, lasts, is_leaf = trees.lists, trees.boxes, trees.firsts, trees.lasts, trees.is_leaf
    item_boxes, items, free = trees.item_boxes, trees.items, trees.free
    kinds, columns, lon, lat = values.kinds, values.columns, posts.lon, posts.lat
    found = 0
    for post in range(begin, end):
        x, y = lon[post], lat[post]
        for at in range(lists.shape[0]):
            pivot, root, first, last = lists[at]
            if pivot >= 0 and kinds[post, columns[pivot]] == MISSING:
                continue
            if 2 * (found + last - first) > near.size:
                near = grown(near, 2 * near.size + 2 * (last - first))
            for i in range(first, last):
                near[2 * found], near[2 * found + 1] = post, free[i]
                found += 1
            top = 0
            if root >= 0:
                stack[0] = root
                top = 1
            while top:
                top -= 1
                node = stack[top]
                if is_leaf[node]:
                    for i in range(firsts[node], lasts[node]):
                        inside = item_boxes[i, 0] <= x <= item_boxes[i, 2] and item_boxes[i, 1] <= y <= item_boxes[i, 3]
                        if inside:
                            if 2 * found + 2 > near.size:
                                near = grown(near, 2 * near.size)
                            near[2 * found], near[2 * found + 1] = post, items[i]
                            found += 1
                else:
                    for i in range(firsts[node], lasts[node]):
                        if boxes[i, 0] <= x <= boxes[i, 2] and boxes[i, 1] <= y <= boxes[i, 3]:
                            stack[top] = i
                            top += 1
    return found, near


@kernel
def stab_posts(trees, conditions, posts, values, inactive, begin, out_posts, out_rows):
    """As `ch_tree.walk`."""
    count = posts.lon.size
    near, stack = np.empty(64 * WAVE, np.int64), np.empty(trees.is_leaf.size + 1, np.int64)
    found = looked = np.int64(0)
    while begin < count:
        end = min(begin + WAVE, count)
        candidates, near = stab(begin, end, trees, posts, values, stack, near)
        upto = check(
            candidates, near, trees.entries, trees.terms, conditions, posts, values, inactive,
            found, out_posts, out_rows,
        )  # fmt: skip
        if upto < 0:
            return found, begin, looked
        found, begin, looked = upto, end, looked + candidates
    return found, count, looked
