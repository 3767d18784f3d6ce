"""A batch of posts through one CH-tree (seed 003 §5.1).

Each level of the tree looks at one predicate. What it looks at gives a post *labels*: the number of its value, the leaf
of the quadtree it lies in, the nodes of the interval tree on its way, the numbers of those of its words that are keys.
They are found once a post and level, when a first node asks; a node passes the post on to its children of these labels
and to its child "none". A tree of 1,000 queries lies in the nearest caches, so posts come one after the other.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from nearcast.kernels.mix import mix
from nearcast.kernels.regions import in_bbox
from nearcast.kernels.standing import DOUBT, MISSING, NO, STRING, TIME, UNSURE, YES, in_place, passes, true_key

EQUAL, WITHIN, PLACE, WORDS = range(4)  # kinds of predicates
NUMBERS, TIMES = 0, 1  # axes of intervals
NONE = np.int32(-(2**31))  # no child
OUTSIDE = 1  # the label of all places beyond the quadtree; of a string among intervals
CHECK_PLACE, CHECK_WORDS, CHECK_TESTS = 1 << 32, 1 << 33, 1 << 34  # flags of an entry, whose low bits are its row
ROW = np.int64(0xFFFFFFFF)
SIGNS = 6  # bits of the number of words of the filter of keys


class Tree(NamedTuple):
    """`levels`: kind, attribute, axis, and where its centres begin and end. Labels of values and words are in one
    hash table of (key, level and kind). A child is a node, or the complement of a leaf.
    """

    levels: np.ndarray
    keys: np.ndarray
    key_owners: np.ndarray
    key_labels: np.ndarray
    signs: np.ndarray
    root: np.ndarray
    quarters: np.ndarray
    centres: np.ndarray
    node_levels: np.ndarray
    nones: np.ndarray
    child_keys: np.ndarray
    children: np.ndarray
    leaf_starts: np.ndarray
    entries: np.ndarray
    entry_terms: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def first_slot(key, slots):
    return np.int64(mix(key) & np.uint64(slots - 1))


@njit(cache=True, nogil=True)
def label_of(key, owner, tree):
    """The label of a value or word, 0 if no query has it."""
    slot = first_slot(key, tree.keys.size)
    while tree.key_labels[slot]:
        if tree.keys[slot] == key and tree.key_owners[slot] == owner:
            return tree.key_labels[slot]
        slot = (slot + 1) & (tree.keys.size - 1)
    return np.int32(0)


@njit(cache=True, nogil=True)
def leaf_of_quadtree(lon, lat, root, quarters):
    """The label of the leaf of a place, OUTSIDE beyond the root."""
    if not in_bbox(root[0], root[1], root[2], root[3], lon, lat):
        return np.int32(OUTSIDE)
    west, south, east, north = root[0], root[1], root[2], root[3]
    at = np.int32(0)
    while at >= 0:
        middle, centre = (west + east) / 2.0, (south + north) / 2.0
        quarter = 0
        if lon >= middle:
            quarter, west = 1, middle
        else:
            east = middle
        if lat >= centre:
            quarter, south = quarter + 2, centre
        else:
            north = centre
        at = quarters[at, quarter]
    return ~at


@njit(cache=True, nogil=True)
def labels_within(code, centres, begin, end, labels):
    """The interval tree is a balanced one over sorted centres. Labels: 2 + i of the centre i, if an interval is filed
    there, and after those one for each gap between centres, of the intervals that have no centre. Returns how many.
    """
    count, low, high = 0, begin, end
    while low < high:
        middle = (low + high) >> 1
        labels[count] = 2 + middle - begin
        count += 1
        if code == centres[middle]:
            return count
        if code < centres[middle]:
            high = middle
        else:
            low = middle + 1
    labels[count] = 2 + (end - begin) + low - begin
    return count + 1


@njit(cache=True, nogil=True)
def find_labels(level, post, tree, posts, values, labels):
    """The labels that a level gives to a post; their number."""
    kind = tree.levels[level, 0]
    if kind == PLACE:
        labels[0] = leaf_of_quadtree(posts.lon[post], posts.lat[post], tree.root, tree.quarters)
        return 1
    if kind == WORDS:
        count = 0
        for i in range(posts.firsts[post], posts.firsts[post + 1] - 1):
            term = posts.words[i]
            sign = np.int64(term >> np.uint64(58 - SIGNS))
            if tree.signs[sign >> 6] >> np.uint64(sign & 63) & np.uint64(1):
                label = label_of(term, np.int32(level << 3), tree)
                if label:
                    labels[count] = label
                    count += 1
        return count
    column = values.columns[tree.levels[level, 1]]
    found = np.int64(values.kinds[post, column])
    if found == MISSING:
        return 0
    code = values.codes[post, column]
    if kind == EQUAL:
        label = label_of(np.uint64(code), np.int32(level << 3 | (found if found >= TIME else 0)), tree)
        labels[0] = label
        return 1 if label else 0
    if found == STRING and tree.levels[level, 2] == TIMES:
        labels[0] = OUTSIDE
        return 1
    if (found == TIME) if tree.levels[level, 2] == TIMES else (found < TIME):
        return labels_within(code, tree.centres, tree.levels[level, 3], tree.levels[level, 4], labels)
    return 0


@njit(cache=True, nogil=True)
def child_of(node, label, tree):
    key = np.uint64(node) << np.uint64(32) | np.uint64(label)
    slot = first_slot(key, tree.child_keys.size)
    while tree.children[slot] != NONE:
        if tree.child_keys[slot] == key:
            return tree.children[slot]
        slot = (slot + 1) & (tree.child_keys.size - 1)
    return NONE


@njit(cache=True, nogil=True)
def entry_holds(entry, term, post, conditions, posts, values):
    """What is left to check of a query in a leaf: NO, YES or UNSURE."""
    row = entry & ROW
    if entry & CHECK_PLACE and not in_place(row, post, conditions, posts):
        return NO
    answer = YES
    if entry & CHECK_TESTS:
        answer = passes(row, post, conditions, values)
        if answer == NO:
            return NO
    if entry & CHECK_WORDS:
        ok, key = true_key(row, post, conditions, posts)
        if not ok or (term != 0 and key != term):
            return NO
    return answer


@njit(cache=True, nogil=True)
def walk(tree, conditions, posts, values, inactive, begin, out_posts, out_rows):
    """Posts from the `begin`th on, until done or until the output is full. Returns (number of pairs, next post to do,
    queries looked at in leaves).
    """
    levels, count = tree.levels.shape[0], posts.lon.size
    most = np.int64(64)
    for post in range(begin, count):
        most = max(most, posts.firsts[post + 1] - posts.firsts[post])
    labels, known = np.empty((levels, most), np.int32), np.empty(levels, np.int64)
    stack = np.empty(tree.node_levels.size + tree.leaf_starts.size + 1, np.int32)
    found = looked = 0
    for post in range(begin, count):
        before, looked_before = found, looked
        known[:] = -1
        stack[0] = 0 if tree.node_levels.size else ~0
        top = 1
        while top:
            top -= 1
            at = stack[top]
            if at >= 0:
                level = tree.node_levels[at]
                if known[level] < 0:
                    known[level] = find_labels(level, post, tree, posts, values, labels[level])
                if tree.nones[at] != NONE:
                    stack[top] = tree.nones[at]
                    top += 1
                for i in range(known[level]):
                    child = child_of(at, labels[level, i], tree)
                    if child != NONE:
                        stack[top] = child
                        top += 1
                continue
            leaf = ~at
            for e in range(tree.leaf_starts[leaf], tree.leaf_starts[leaf + 1]):
                entry = tree.entries[e]
                looked += 1
                if inactive[entry & ROW]:
                    continue
                answer = entry_holds(entry, tree.entry_terms[e], post, conditions, posts, values)
                if answer == NO:
                    continue
                if found == out_posts.size:
                    return before, post, looked_before
                out_posts[found] = post
                out_rows[found] = entry & ROW | (DOUBT if answer == UNSURE else 0)
                found += 1
    return found, count, looked


@njit(cache=True, nogil=True)
def label_visits(tree, posts, values, level, sizes):
    """Over all posts, the sum of `sizes[label]` over the labels that a level gives them."""
    most = np.int64(64)
    for post in range(posts.lon.size):
        most = max(most, posts.firsts[post + 1] - posts.firsts[post])
    labels = np.empty(most, np.int32)
    total = 0
    for post in range(posts.lon.size):
        for i in range(find_labels(level, post, tree, posts, values, labels)):
            total += sizes[labels[i]]
    return total
