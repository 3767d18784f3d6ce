"""A batch of posts through one CH-tree (STAR §5.1).

Each level of the tree looks at one predicate. What it looks at gives a post *labels*: the number of its value, the leaf
of the quadtree it lies in, the nodes of the interval tree on its way, the numbers of those of its words that are keys.
A node passes the post on to its children of these labels and to its child "none". Posts come in waves along the Z-order
curve: labels of all posts, then their ways down the tree, then what is left to check in the leaves. A tree of 1,000
queries lies in the nearest caches all the time.
"""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.growing import grown
from nearcast.kinds.aggregates.kernels.conditions import MISSING, STRING, TIME, check

EQUAL, WITHIN, PLACE, WORDS = range(4)  # kinds of predicates
NUMBERS, TIMES = 0, 1  # axes of intervals
NONE = np.int32(-(2**31))  # no child
STRINGS = 1  # the label of a string among intervals of times
SIGNS = 8  # the filter of keys has 2^SIGNS words of 64 bits
WAVE = 64  # posts
DEEP = 66  # labels that an interval tree may give
SPREAD = np.uint64(0x9E3779B97F4A7C15)
OWNERS = np.uint64(0xD6E8FEB86659FD93)


class Tree(NamedTuple):
    """`levels`: kind, attribute, axis, and where its centres begin and end. Labels of values and words are in one open
    hash table of (key, level and kind). `leaves` are the Z-order codes at which the leaves of the quadtree begin. A
    child is a node, or the complement of a leaf.
    """

    levels: np.ndarray
    keys: np.ndarray
    key_owners: np.ndarray
    key_labels: np.ndarray
    signs: np.ndarray
    leaves: np.ndarray
    centres: np.ndarray
    node_levels: np.ndarray
    nones: np.ndarray
    child_keys: np.ndarray
    children: np.ndarray
    leaf_starts: np.ndarray
    entries: np.ndarray
    entry_terms: np.ndarray


@inlined
def shift_of(slots):
    """By how much a 64-bit hash is shifted to be one of so many slots, a power of two from 2 on."""
    bits = 0
    while (1 << bits) < slots:
        bits += 1
    return np.uint64(64 - bits)


@kernel
def find_labels(level, begin, end, tree, posts, values, labels, filled, starts):
    """The labels that a level gives to some posts, written from `filled` on: those of the i-th lie from `starts[level,
    i]` to `starts[level, i + 1]`. Returns where they end.
    """
    kind, attribute, axis, first, last = tree.levels[level]
    keys, key_owners, key_labels = tree.keys, tree.key_owners, tree.key_labels
    shift, around = shift_of(keys.size), keys.size - 1
    if kind == PLACE:
        leaves, z = tree.leaves, posts.z
        low = np.int64(0)
        for post in range(begin, end):
            starts[level, post - begin] = filled
            if z[post] < leaves[low] or (low + 1 < leaves.size and z[post] >= leaves[low + 1]):
                low, size = np.int64(0), np.int64(leaves.size)
                while size > 1:
                    half = size >> 1
                    low += half if leaves[low + half] <= z[post] else 0
                    size -= half
            labels[filled] = 1 + low
            filled += 1
    elif kind == WORDS:
        words, firsts, signs = posts.words, posts.firsts, tree.signs
        owner = np.int32(level << 3)
        for post in range(begin, end):
            starts[level, post - begin] = filled
            for i in range(firsts[post], firsts[post + 1] - 1):
                term = words[i]
                sign = np.int64(term >> np.uint64(58 - SIGNS))
                if signs[sign >> 6] >> np.uint64(sign & 63) & np.uint64(1):
                    slot = np.int64((term * SPREAD + np.uint64(owner) * OWNERS) >> shift)
                    while key_labels[slot]:
                        if keys[slot] == term and key_owners[slot] == owner:
                            labels[filled] = key_labels[slot]
                            filled += 1
                            break
                        slot = (slot + 1) & around
    else:
        column, kinds, codes, centres = values.columns[attribute], values.kinds, values.codes, tree.centres
        for post in range(begin, end):
            starts[level, post - begin] = filled
            found, code = np.int64(kinds[post, column]), codes[post, column]
            if found == MISSING:
                continue
            if kind == EQUAL:
                owner = np.int32(level << 3 | (found if found >= TIME else 0))
                slot = np.int64((np.uint64(code) * SPREAD + np.uint64(owner) * OWNERS) >> shift)
                while key_labels[slot]:
                    if keys[slot] == np.uint64(code) and key_owners[slot] == owner:
                        labels[filled] = key_labels[slot]
                        filled += 1
                        break
                    slot = (slot + 1) & around
            elif found == STRING and axis == TIMES:
                labels[filled] = STRINGS
                filled += 1
            elif (found == TIME) if axis == TIMES else (found < TIME):
                low, high = first, last  # down a balanced tree over the sorted centres, or to a gap between them
                while low < high:
                    middle = (low + high) >> 1
                    labels[filled] = 2 + middle - first
                    filled += 1
                    if code == centres[middle]:
                        break
                    low, high = (low, middle) if code < centres[middle] else (middle + 1, high)
                if low >= high:
                    labels[filled] = 2 + last - first + low - first
                    filled += 1
    starts[level, end - begin] = filled
    return filled


@kernel
def descend(begin, end, tree, labels, starts, stack, near):
    """(post, entry) of each query in the leaves that posts reach. Returns their number and the array, a larger one if
    need be.
    """
    node_levels, nones, child_keys, children = tree.node_levels, tree.nones, tree.child_keys, tree.children
    leaf_starts, shift, around = tree.leaf_starts, shift_of(tree.child_keys.size), tree.child_keys.size - 1
    root = np.int32(0) if node_levels.size else ~np.int32(0)
    found = 0
    for post in range(begin, end):
        stack[0] = root
        top = 1
        while top:
            top -= 1
            at = stack[top]
            if at < 0:
                first, last = leaf_starts[~at], leaf_starts[~at + 1]
                if 2 * (found + last - first) > near.size:
                    near = grown(near, 2 * near.size + 2 * (last - first))
                for e in range(first, last):
                    near[2 * found], near[2 * found + 1] = post, e
                    found += 1
                continue
            if nones[at] != NONE:
                stack[top] = nones[at]
                top += 1
            level = np.int64(node_levels[at])
            for i in range(starts[level, post - begin], starts[level, post - begin + 1]):
                key = np.uint64(at) << np.uint64(32) | np.uint64(labels[i])
                slot = np.int64((key * SPREAD) >> shift)
                while children[slot] != NONE:
                    if child_keys[slot] == key:
                        stack[top] = children[slot]
                        top += 1
                        break
                    slot = (slot + 1) & around
    return found, near


@kernel
def walk(tree, conditions, posts, values, inactive, begin, out_posts, out_rows):
    """Posts from the `begin`th on, until done or until the output is full. Returns (number of pairs, next post to do,
    queries looked at in leaves).
    """
    levels, count = tree.levels.shape[0], posts.lon.size
    starts, labels = np.empty((levels, WAVE + 1), np.int64), np.empty(WAVE * (DEEP * levels + 64), np.int32)
    stack = np.empty(tree.node_levels.size + tree.leaf_starts.size + 1, np.int32)
    near = np.empty(64 * WAVE, np.int64)
    found = looked = np.int64(0)
    while begin < count:
        end = min(begin + WAVE, count)
        words = posts.firsts[end] - posts.firsts[begin]
        if labels.size < WAVE * DEEP * levels + words:
            labels = np.empty(2 * (WAVE * DEEP * levels + words), np.int32)
        filled = np.int64(0)
        for level in range(levels):
            filled = find_labels(level, begin, end, tree, posts, values, labels, filled, starts)
        candidates, near = descend(begin, end, tree, labels, starts, stack, near)
        upto = check(
            candidates, near, tree.entries, tree.entry_terms, conditions, posts, values, inactive,
            found, out_posts, out_rows,
        )  # fmt: skip
        if upto < 0:  # the wave will be matched again
            return found, begin, looked
        found, begin, looked = upto, end, looked + candidates
    return found, count, looked


@kernel
def label_visits(tree, posts, values, level, sizes):
    """Over all posts, the sum of `sizes[label]` over the labels that a level gives them."""
    count = posts.lon.size
    labels = np.empty(DEEP * count + posts.words.size, np.int32)
    starts, nothing = np.empty((level + 1, count + 1), np.int64), np.int64(0)
    filled = find_labels(level, nothing, count, tree, posts, values, labels, nothing, starts)
    total = 0.0
    for i in range(filled):
        total += sizes[labels[i]]
    return total
