"""Routing over a partition: cells of a fine grid belong to nodes, nodes are cut into leaves (`routing.partition`).

A node's kind says how its posts find their leaf. The keywords of all leaves lie in one open-addressing table: slot →
run → leaves, keyed by a hash of node and term. Should two keys ever share a hash, posts and queries still agree on the
leaf, which is all that matters.

The grid is also kept as bands: rows of cells that are alike lie in one, as runs of cells of one node. So the nodes that
a box touches are found in time proportional to the nodes, not to the cells.
"""

import numpy as np
from numba import njit

from nearcast.kernels.grid import grid_cell, has_bit, summary_bit
from nearcast.kernels.mix import mix, pair_hash, slot_of
from nearcast.kernels.register import LAST, LENGTH, NEGATIVE, SIXTEEN

SPACE, BY_QUERY, BY_POST, DEALT = range(4)  # DEALT: BY_POST without keywords, by a hash of the post
NO_RUN = np.int32(-1)


# -- keywords ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def keyword_keys(nodes, terms):
    """The key of each (node, term)."""
    out = np.empty(terms.size, np.uint64)
    for i in range(terms.size):
        out[i] = pair_hash(mix(np.uint64(nodes[i])), terms[i])
    return out


@njit(cache=True, nogil=True)
def lay_keys(keys):
    """A table of distinct keys: (the key in each slot, its place among `keys` or NO_RUN)."""
    size = np.int64(4)
    while size < 2 * keys.size:
        size *= 2
    slots, runs = np.zeros(size, np.uint64), np.full(size, NO_RUN, np.int32)
    for i in range(keys.size):
        at = np.int64(keys[i] & np.uint64(size - 1))
        while runs[at] != NO_RUN:
            at = (at + 1) & (size - 1)
        slots[at], runs[at] = keys[i], i
    return slots, runs


@njit(cache=True, nogil=True, inline="always")
def run_of(key, slots, runs):
    """The place of a key, or NO_RUN."""
    at = np.int64(key & np.uint64(slots.size - 1))
    while runs[at] != NO_RUN and slots[at] != key:
        at = (at + 1) & (slots.size - 1)
    return runs[at]


@njit(cache=True, nogil=True)
def leaf_of(node, term, first, slots, runs, starts, leaves):
    """The leaf of a term in a node that is cut by the queries' words: the lowest that has it, or the one of its hash.
    The first leaf keeps what has no word, under the term 0.
    """
    if term == 0:
        return np.int64(first[node])
    run = run_of(pair_hash(mix(np.uint64(node)), term), slots, runs)
    if run != NO_RUN:
        return np.int64(leaves[starts[run]])
    return np.int64(first[node]) + slot_of(mix(term), first[node + 1] - first[node])


# -- posts -------------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def nodes_at(lon, lat, extent, cells, node):
    """The node of each place; what lies outside the extent belongs to the border cells."""
    out = np.empty(lon.size, np.int32)
    for i in range(lon.size):
        x = grid_cell(lon[i], extent[0], extent[2], cells)
        out[i] = node[grid_cell(lat[i], extent[1], extent[3], cells) * cells + x]
    return out


@njit(cache=True, nogil=True)
def store_leaves(nodes, kinds, first, prints, terms, offsets, slots, runs, starts, leaves):
    """The leaf that stores each post: its node's only one; the one of its fingerprint; or the one that knows most of
    its distinct words, of equals the lowest.
    """
    out = np.empty(nodes.size, np.int32)
    widest = np.int64(1)
    for n in range(kinds.size):
        widest = max(widest, np.int64(first[n + 1] - first[n]))
    known = np.zeros(widest, np.int64)
    for i in range(nodes.size):
        node = np.int64(nodes[i])
        begin, count = np.int64(first[node]), np.int64(first[node + 1] - first[node])
        if kinds[node] == SPACE:
            out[i] = begin
        elif kinds[node] != BY_POST:
            out[i] = begin + slot_of(prints[i], count)
        else:
            salt = mix(np.uint64(node))
            for j in range(offsets[i], offsets[i + 1]):
                if terms[j] == 0 or is_repeated(terms, offsets[i], j):
                    continue
                run = run_of(pair_hash(salt, terms[j]), slots, runs)
                if run != NO_RUN:
                    for at in range(starts[run], starts[run + 1]):
                        local = np.int64(leaves[at]) - begin
                        if 0 <= local < count:
                            known[local] += 1
            best = np.int64(0)
            for leaf in range(count):
                if known[leaf] > known[best]:
                    best = leaf
            known[:count] = 0
            out[i] = begin + best
    return out


@njit(cache=True, nogil=True)
def is_repeated(terms, begin, at):
    """Whether a post has had the term at `at` before."""
    for j in range(begin, at):  # noqa: SIM110 (compiles sooner than a generator)
        if terms[j] == terms[at]:
            return True
    return False


@njit(cache=True, nogil=True)
def match_leaves(stored, nodes, kinds, first, terms, offsets, slots, runs, starts, leaves, cells, bitmap):
    """(where each post's leaves begin, leaves): the distinct leaves that must match each post.

    The one that stores it; or, in a node cut by the queries' words, those of its words and of the term 0, of which
    only those that a subscription of its place is filed under, where a summary `bitmap` is given (by `cells`).
    """
    begins = np.zeros(nodes.size + 1, np.int64)
    out = np.empty(2 * nodes.size + terms.size, np.int32)
    n = np.int64(0)
    asked = bitmap.size > 0
    for i in range(nodes.size):
        node = np.int64(nodes[i])
        if kinds[node] != BY_QUERY:
            out[n] = stored[i]
            n += 1
        else:
            cell = np.int64(cells[i]) if asked else np.int64(-1)
            for j in range(offsets[i] - 1, offsets[i + 1]):
                term = terms[j] if j >= offsets[i] else np.uint64(0)
                if term == 0 and j >= offsets[i]:
                    continue
                here, anywhere = summary_bit(cell, term), summary_bit(np.int64(-1), term)
                if asked and not has_bit(bitmap, here) and not has_bit(bitmap, anywhere):
                    continue
                leaf = leaf_of(node, term, first, slots, runs, starts, leaves)
                met = False
                for k in range(begins[i], n):
                    met = met or out[k] == leaf
                if not met:
                    out[n] = leaf
                    n += 1
        begins[i + 1] = n
    return begins, out[:n].copy()


@njit(cache=True, nogil=True)
def reporters(
    posts, rows, nodes, kinds, first, owners, terms, offsets, code, code_offsets, slots, runs, starts, leaves
):
    """The worker that reports each pair (post, row) that may have been found by several; -1: whoever finds it.

    A conjunction's key that is among the post's words leads both the post and the subscription to one leaf; of all
    such leaves the lowest decides. So every worker decides alike, and the one chosen has both.
    """
    out = np.full(posts.size, np.int32(-1), np.int32)
    for i in range(posts.size):
        post, row = np.int64(posts[i]), np.int64(rows[i])
        node = np.int64(nodes[post])
        if kinds[node] != BY_QUERY:
            continue
        lowest = np.int64(first[node + 1])
        at = np.int64(code_offsets[row])
        if at == code_offsets[row + 1]:
            lowest = np.int64(first[node])
        while at < code_offsets[row + 1]:
            header = code[at]
            term = np.uint64(0)
            if not header & NEGATIVE:
                term = code[at + 1 + np.int64((header >> SIXTEEN) & LENGTH)]
            met = term == 0
            for j in range(offsets[post], offsets[post + 1]):
                met = met or terms[j] == term
            if met:
                lowest = min(lowest, leaf_of(node, term, first, slots, runs, starts, leaves))
            while True:
                header = code[at]
                at += 1 + np.int64(header & LENGTH)
                if header & LAST:
                    break
        if lowest < first[node + 1]:
            out[i] = owners[lowest]
    return out


# -- queries -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def touched_nodes(boxes, row, extent, cells, band_of, band_runs, run_begins, run_nodes, met, out):
    """Fill `out` with the distinct nodes that a box touches; how many. `met` notes the row that met a node last."""
    n = np.int64(0)
    wraps = boxes[row, 0] > boxes[row, 2]
    first_band = band_of[grid_cell(boxes[row, 1], extent[1], extent[3], cells)]
    last_band = band_of[grid_cell(boxes[row, 3], extent[1], extent[3], cells)]
    for part in range(2 if wraps else 1):
        west = -180.0 if wraps and part == 1 else boxes[row, 0]
        east = 180.0 if wraps and part == 0 else boxes[row, 2]
        x0 = grid_cell(west, extent[0], extent[2], cells)
        x1 = grid_cell(east, extent[0], extent[2], cells)
        for band in range(first_band, last_band + 1):
            low, high = np.int64(band_runs[band]), np.int64(band_runs[band + 1])
            end = high
            while high - low > 1:  # the run that x0 is in
                middle = (low + high) >> 1
                if run_begins[middle] <= x0:
                    low = middle
                else:
                    high = middle
            while low < end and run_begins[low] <= x1:
                node = run_nodes[low]
                if met[node] != row:
                    met[node] = row
                    out[n] = node
                    n += 1
                low += 1
    return n


@njit(cache=True, nogil=True)
def keepers(
    boxes, term_starts, terms, extent, cells, band_of, band_runs, run_begins, run_nodes,
    kinds, first, crew_starts, crews, owners, workers, slots, runs, starts, leaves, by_place,
):  # fmt: skip
    """(a matrix of rows by workers: who keeps a row; the first of them). With `by_place` a row is kept by all who own a
    leaf of a node that its box touches, whatever its words.
    """
    out = np.zeros((boxes.shape[0], workers), np.bool_)
    home = np.full(boxes.shape[0], np.int32(-1), np.int32)
    met, found = np.full(kinds.size, np.int64(-1), np.int64), np.empty(kinds.size, np.int32)
    for row in range(boxes.shape[0]):
        count = touched_nodes(boxes, row, extent, cells, band_of, band_runs, run_begins, run_nodes, met, found)
        left = workers
        for i in range(count):
            node = np.int64(found[i])
            if kinds[node] == BY_QUERY and not by_place:
                for j in range(term_starts[row], term_starts[row + 1]):
                    owner = owners[leaf_of(node, terms[j], first, slots, runs, starts, leaves)]
                    left -= np.int64(not out[row, owner])
                    out[row, owner] = True
                    if home[row] < 0:
                        home[row] = owner
            else:
                for j in range(crew_starts[node], crew_starts[node + 1]):
                    left -= np.int64(not out[row, crews[j]])
                    out[row, crews[j]] = True
                    if home[row] < 0:
                        home[row] = crews[j]
            if left == 0:
                break
    return out, home


@njit(cache=True, nogil=True)
def keep_leaves(
    boxes, term_starts, terms, extent, cells, band_of, band_runs, run_begins, run_nodes,
    kinds, first, slots, runs, starts, leaves, by_place,
):  # fmt: skip
    """(where each row's leaves begin, leaves): the distinct leaves that keep a row, or with `by_place` all of its
    place.
    """
    begins = np.zeros(boxes.shape[0] + 1, np.int64)
    out = np.empty(4 * boxes.shape[0] + 16, np.int32)
    n = np.int64(0)
    met, found = np.full(kinds.size, np.int64(-1), np.int64), np.empty(kinds.size, np.int32)
    for row in range(boxes.shape[0]):
        count = touched_nodes(boxes, row, extent, cells, band_of, band_runs, run_begins, run_nodes, met, found)
        for i in range(count):
            node = np.int64(found[i])
            begin, size = n, np.int64(first[node + 1] - first[node])
            if n + size > out.size:
                more = np.empty(2 * (n + size), np.int32)
                more[:n] = out[:n]
                out = more
            if kinds[node] != BY_QUERY or by_place:
                for leaf in range(first[node], first[node + 1]):
                    out[n] = leaf
                    n += 1
                continue
            for j in range(term_starts[row], term_starts[row + 1]):
                leaf = leaf_of(node, terms[j], first, slots, runs, starts, leaves)
                known = False
                for k in range(begin, n):
                    known = known or out[k] == leaf
                if not known:
                    out[n] = leaf
                    n += 1
        begins[row + 1] = n
    return begins, out[:n].copy()
