"""Routing over a partition: cells of a fine grid belong to nodes, nodes are cut into leaves (`partitioning.partition`).

A node's kind says how its posts find their leaf. The keywords of all leaves lie in one open-addressing table, two words
a slot: a hash of node and term, and what is known of it. That is the leaf of the term, where queries decide; where the
posts do, the set of the leaves that have it, as bits. Should two terms ever share a hash, posts and queries still agree
on the leaf, which is all that matters.

The grid is also kept as bands: rows of cells that are alike lie in one, as runs of cells of one node. So the nodes that
a box touches are found in time proportional to the nodes, not to the cells.
"""

from typing import NamedTuple

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.grid import bit_of, grid_cell, has_bit
from nearcast.common.kernels.mix import mix, pair_hash, slot_of
from nearcast.common.kernels.prefetch import prefetch
from nearcast.storage.subscriptions.kernels.register import LAST, LENGTH, NEGATIVE, SIXTEEN

SPACE, BY_QUERY, BY_POST, DEALT = range(4)  # DEALT: BY_POST without keywords, by a hash of the post
MOST_LEAVES = 64  # of a node that is cut by the posts' words: a bit each
AHEAD, SOON = 2, 4  # posts whose words are fetched before they are needed, to store and to match
KEY, KNOWN = 0, 1  # of a slot


class GridBands(NamedTuple):
    """The grid of `cells` x `cells` over an extent, as bands of equal rows."""

    extent: np.ndarray
    cells: int
    band_of: np.ndarray  # of each row of cells
    nodes: np.ndarray  # of each cell of a band
    run_ends: np.ndarray  # of each cell of a band, where the run of cells of that node ends


# -- keywords ----------------------------------------------------------------------------------------------------------


@kernel
def lay_keywords(keywords, leaf_of_keyword, node_of_leaf, kinds, first):
    """The table of all keywords; where a term is in several leaves, the lowest has it if queries decide."""
    size = np.int64(4)
    while size < 2 * keywords.size:
        size *= 2
    slots = np.zeros((size, 2), np.uint64)
    for i in range(keywords.size):
        leaf = np.int64(leaf_of_keyword[i])
        node = np.int64(node_of_leaf[leaf])
        key = key_of(mix(np.uint64(node)), keywords[i])
        at = slot_for(key, slots)
        slots[at, KEY] = key
        if kinds[node] == BY_POST:
            slots[at, KNOWN] |= np.uint64(1) << np.uint64((leaf - first[node]) & 63)
        elif slots[at, KNOWN] == 0:
            slots[at, KNOWN] = np.uint64(leaf + 1)
    return slots


@inlined
def key_of(salt, term):
    """The key of a term in the node whose mixed number is `salt`; never 0."""
    return pair_hash(salt, term) | np.uint64(1)


@inlined
def first_slot(key, slots):
    return np.int64(key >> np.uint64(1)) & (slots.shape[0] - 1)


@inlined
def slot_for(key, slots):
    """The slot of a key, or the empty one where it would be."""
    at = first_slot(key, slots)
    while slots[at, KEY] != 0 and slots[at, KEY] != key:
        at = (at + 1) & (slots.shape[0] - 1)
    return at


@kernel
def leaf_of(node, term, first, slots):
    """The leaf of a term in a node that is cut by the queries' words: the lowest that has it, or the one of its hash.
    The first leaf keeps what has no word, under the term 0.
    """
    if term == 0:
        return np.int64(first[node])
    known = slots[slot_for(key_of(mix(np.uint64(node)), term), slots), KNOWN]
    if known != 0:
        return np.int64(known) - 1
    return np.int64(first[node]) + slot_of(mix(term), first[node + 1] - first[node])


# -- posts -------------------------------------------------------------------------------------------------------------


@kernel
def nodes_at(lon, lat, extent, cells, node):
    """The node of each place; what lies outside the extent belongs to the border cells."""
    out = np.empty(lon.size, np.int32)
    for i in range(lon.size):
        x = grid_cell(lon[i], extent[0], extent[2], cells)
        out[i] = node[grid_cell(lat[i], extent[1], extent[3], cells) * cells + x]
    return out


@kernel
def store_leaves(nodes, kinds, first, prints, terms, offsets, slots):
    """The leaf that stores each post: its node's only one; the one of its fingerprint; or the one that knows most of
    its distinct words, of equals the lowest.
    """
    out = np.empty(nodes.size, np.int32)
    counts = np.zeros(MOST_LEAVES, np.int64)
    for i in range(nodes.size):
        if i + AHEAD < nodes.size and kinds[nodes[i + AHEAD]] == BY_POST:
            salt = mix(np.uint64(nodes[i + AHEAD]))
            for j in range(offsets[i + AHEAD], offsets[i + AHEAD + 1]):
                prefetch(slots, first_slot(key_of(salt, terms[j]), slots))
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
                known = slots[slot_for(key_of(salt, terms[j]), slots), KNOWN]
                leaf = 0
                while known != 0:
                    counts[leaf] += np.int64(known & np.uint64(1))
                    known >>= np.uint64(1)
                    leaf += 1
            best = np.int64(0)
            for leaf in range(count):
                if counts[leaf] > counts[best]:
                    best = leaf
            counts[:] = 0
            out[i] = begin + best
    return out


@kernel
def unknown_words(stored, nodes, kinds, first, terms, offsets, slots, asked):
    """(leaf, term): the words of each post that the leaf which stores it does not know, once a post, where posts decide
    by their words. Only words that are `asked` for: a table like `slots`, of one node 0.
    """
    leaves, words = np.empty(terms.size, np.int32), np.empty(terms.size, np.uint64)
    n = np.int64(0)
    everywhere = mix(np.uint64(0))
    for i in range(nodes.size):
        node = np.int64(nodes[i])
        if kinds[node] != BY_POST:
            continue
        salt = mix(np.uint64(node))
        bit = np.uint64(1) << np.uint64((stored[i] - first[node]) & 63)
        for j in range(offsets[i], offsets[i + 1]):
            term = terms[j]
            if term == 0 or asked[slot_for(key_of(everywhere, term), asked), KEY] == 0:
                continue
            known = slots[slot_for(key_of(salt, term), slots), KNOWN] & bit != 0
            if not known and not is_repeated(terms, offsets[i], j):
                leaves[n] = stored[i]
                words[n] = term
                n += 1
    return leaves[:n].copy(), words[:n].copy()


@kernel
def is_repeated(terms, begin, at):
    """Whether a post has had the term at `at` before."""
    for j in range(begin, at):  # noqa: SIM110 (compiles sooner than a generator)
        if terms[j] == terms[at]:
            return True
    return False


@kernel
def match_leaves(stored, nodes, kinds, first, terms, offsets, slots, cells, bitmap):
    """(where each post's leaves begin, leaves): the distinct leaves that must match each post.

    The one that stores it; or, in a node cut by the queries' words, those of its words and of the term 0. Where a
    summary `bitmap` is given (by `cells`), only those that a subscription of its place is filed under, and none for a
    post that nobody there can want: such posts are just those that `may_match` rules out.
    """
    begins = np.zeros(nodes.size + 1, np.int64)
    out = np.empty(2 * nodes.size + terms.size, np.int32)
    n = np.int64(0)
    asked = bitmap.size > 0
    everywhere = mix(np.uint64(0))
    for i in range(nodes.size):
        soon = i + SOON
        if soon < nodes.size and (asked or kinds[nodes[soon]] == BY_QUERY):
            salt, here = mix(np.uint64(nodes[soon])), mix(np.uint64(cells[soon] + 1)) if asked else everywhere
            for j in range(offsets[soon], offsets[soon + 1]):
                if asked:
                    prefetch(bitmap, bit_of(here, terms[j]) >> 6)
                    prefetch(bitmap, bit_of(everywhere, terms[j]) >> 6)
                prefetch(slots, first_slot(key_of(salt, terms[j]), slots))
        node = np.int64(nodes[i])
        here = mix(np.uint64(cells[i] + 1)) if asked else everywhere
        wanted = not asked or is_asked(bitmap, here, everywhere, np.uint64(0))
        if kinds[node] != BY_QUERY:
            j = offsets[i]
            while not wanted and j < offsets[i + 1]:
                wanted = terms[j] != 0 and is_asked(bitmap, here, everywhere, terms[j])
                j += 1
            out[n] = stored[i]
            n += np.int64(wanted)
        else:
            salt, begin, size = mix(np.uint64(node)), np.int64(first[node]), np.int64(first[node + 1] - first[node])
            out[n] = begin
            n += np.int64(wanted)
            for j in range(offsets[i], offsets[i + 1]):
                term = terms[j]
                if term == 0 or (asked and not is_asked(bitmap, here, everywhere, term)):
                    continue
                known = slots[slot_for(key_of(salt, term), slots), KNOWN]
                leaf = np.int64(known) - 1 if known != 0 else begin + slot_of(mix(term), size)
                met = False
                for k in range(begins[i], n):
                    met |= out[k] == leaf
                out[n] = leaf
                n += np.int64(not met)
        begins[i + 1] = n
    return begins, out[:n].copy()


@inlined
def is_asked(bitmap, here, everywhere, term):
    """Whether a subscription of this cell, or of all cells, is filed under a term; the cells are mixed already."""
    return has_bit(bitmap, bit_of(here, term)) or has_bit(bitmap, bit_of(everywhere, term))


@kernel
def reporters(posts, rows, nodes, kinds, first, owners, terms, offsets, code, code_offsets, slots):
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
        lowest = np.int64(owners.size)
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
                lowest = min(lowest, leaf_of(node, term, first, slots))
            while True:
                header = code[at]
                at += 1 + np.int64(header & LENGTH)
                if header & LAST:
                    break
        if lowest < owners.size:
            out[i] = owners[lowest]
    return out


# -- queries -----------------------------------------------------------------------------------------------------------


@kernel
def touched_nodes(boxes, row, bands, met, out):
    """Fill `out` with the distinct nodes that a box touches; how many. `met` notes the row that met a node last."""
    extent, cells, band_of, band_nodes, run_ends = bands
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
            at, last = band * cells + x0, band * cells + x1
            while at <= last:
                node = band_nodes[at]
                if met[node] != row:
                    met[node] = row
                    out[n] = node
                    n += 1
                at = run_ends[at]
    return n


@kernel
def keepers(boxes, term_starts, terms, bands, kinds, first, crew_starts, crews, owners, workers, slots, by_place):
    """(a matrix of rows by workers: who keeps a row; the first of them). With `by_place` a row is kept by all who own a
    leaf of a node that its box touches, whatever its words.
    """
    out = np.zeros((boxes.shape[0], workers), np.bool_)
    home = np.full(boxes.shape[0], np.int32(-1), np.int32)
    met, found = np.full(kinds.size, np.int64(-1), np.int64), np.empty(kinds.size, np.int32)
    for row in range(boxes.shape[0]):
        count = touched_nodes(boxes, row, bands, met, found)
        left = workers
        for i in range(count):
            node = np.int64(found[i])
            if kinds[node] == BY_QUERY and not by_place:
                for j in range(term_starts[row], term_starts[row + 1]):
                    owner = owners[leaf_of(node, terms[j], first, slots)]
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


@kernel
def keep_leaves(boxes, term_starts, terms, bands, kinds, first, slots, by_place):
    """(where each row's leaves begin, leaves): the distinct leaves that keep a row, or with `by_place` all of its
    place.
    """
    begins = np.zeros(boxes.shape[0] + 1, np.int64)
    out = np.empty(4 * boxes.shape[0] + 16, np.int32)
    n = np.int64(0)
    met, found = np.full(kinds.size, np.int64(-1), np.int64), np.empty(kinds.size, np.int32)
    for row in range(boxes.shape[0]):
        count = touched_nodes(boxes, row, bands, met, found)
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
                leaf = leaf_of(node, terms[j], first, slots)
                known = False
                for k in range(begin, n):
                    known = known or out[k] == leaf
                if not known:
                    out[n] = leaf
                    n += 1
        begins[row + 1] = n
    return begins, out[:n].copy()
