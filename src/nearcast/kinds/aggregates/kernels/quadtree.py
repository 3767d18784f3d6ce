"""The quadtree of the caches (STAR §4.1): cells of lon and lat halved again and again, down to DEPTH.

A node is one number: a 1, then two bits a level, lat before lon; so the root is 1 and the children of n are 4n … 4n+3.
A cell holds its western and southern edge and not its eastern and northern, but at 180 and 90 it is closed. Every edge
is a double without rounding, so each place lies in one cell of a level. Nothing is stored of the tree but the sorted
codes (cells of the last level) of a sample of posts: a node's posts are a run of them.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import CIRCLE, RECT, in_region
from nearcast.common.kernels.packing import place_at
from nearcast.common.kernels.sorting import lower_bound
from nearcast.storage.posts.kernels.blocks import APART, COVERS, relation, runs_touched
from nearcast.storage.posts.kernels.check import check_runs

DEPTH = 16
SIDE = 1 << DEPTH


@kernel
def _cell(value, low, step):
    """Which step above `low` a value lies in: exact."""
    at = int((value - low) / step)
    at = max(0, min(SIDE - 1, at))
    while at > 0 and value < low + at * step:
        at -= 1
    while at < SIDE - 1 and value >= low + (at + 1) * step:
        at += 1
    return at


@kernel
def _with_gaps(bits):
    """16 bits, each followed by a gap."""
    value = np.uint32(bits)
    value = (value | (value << np.uint32(8))) & np.uint32(0x00FF00FF)
    value = (value | (value << np.uint32(4))) & np.uint32(0x0F0F0F0F)
    value = (value | (value << np.uint32(2))) & np.uint32(0x33333333)
    return (value | (value << np.uint32(1))) & np.uint32(0x55555555)


@kernel
def cell_codes(fixed, exact, rows):
    """The cell of the last level that each post lies in."""
    out = np.empty(rows.size, np.uint32)
    for i in range(rows.size):
        lon, lat = place_at(fixed, exact, rows[i])
        x, y = _cell(lon, -180.0, 360.0 / SIDE), _cell(lat, -90.0, 180.0 / SIDE)
        out[i] = _with_gaps(x) | (_with_gaps(y) << np.uint32(1))
    return out


@kernel
def node_depth(node):
    depth = 0
    while node > 3:
        node >>= 2
        depth += 1
    return depth


@kernel
def node_span(node):
    """(first, past the last) code of a node."""
    depth = node_depth(node)
    shift = 2 * (DEPTH - depth)
    first = (node - (np.int64(1) << (2 * depth))) << shift
    return first, first + (np.int64(1) << shift)


@kernel
def node_box(node, box):
    """west, south, east, north: as a closed rectangle it holds just the places of the node."""
    depth = node_depth(node)
    x, y = np.int64(0), np.int64(0)
    for level in range(depth):
        x |= ((node >> (2 * level)) & 1) << level
        y |= ((node >> (2 * level + 1)) & 1) << level
    cells = np.int64(1) << depth
    wide, high = 360.0 / cells, 180.0 / cells
    box[0], box[1] = -180.0 + x * wide, -90.0 + y * high
    box[2] = 180.0 if x == cells - 1 else np.nextafter(-180.0 + (x + 1) * wide, -np.inf)
    box[3] = 90.0 if y == cells - 1 else np.nextafter(-90.0 + (y + 1) * high, -np.inf)


@kernel
def posts_in(codes, node):
    """How many of the sorted codes lie in a node."""
    first, end = node_span(node)
    return lower_bound(codes, end) - lower_bound(codes, first)


@kernel
def _push(values, n, value):
    if n == values.size:
        more = np.empty(2 * n, values.dtype)
        more[:n] = values
        values = more
    values[n] = value
    return values


@kernel
def cover(codes, leaf, kind, west, south, east, north, shape):
    """A region as nodes: (the largest that it covers, the leaves that it may overlap in part, the sampled posts of the
    previous, of the latter), nodes in the order of codes. A node of at most `leaf` posts of the sample is a leaf.
    """
    inside, meeting = np.empty(16, np.int64), np.empty(16, np.int64)
    n, m = 0, 0
    covered, overlapped = np.int64(0), np.int64(0)
    stack = np.empty(4 * DEPTH + 4, np.int64)
    stack[0] = 1
    height = 1
    box = np.empty(4, np.float64)
    while height:
        height -= 1
        node = stack[height]
        node_box(node, box)
        meets = relation(kind, west, south, east, north, shape, box)
        if meets == APART:
            continue
        posts = posts_in(codes, node)
        if meets == COVERS:
            inside = _push(inside, n, node)
            n += 1
            covered += posts
        elif node >= np.int64(1) << (2 * DEPTH) or posts <= leaf:
            meeting = _push(meeting, m, node)
            m += 1
            overlapped += posts
        else:
            for child in range(3, -1, -1):
                stack[height] = 4 * node + child
                height += 1
    return inside[:n], meeting[:m], covered, overlapped


@kernel
def choose(codes, weight, inside, views, costs):
    """What answers the covered nodes best (STAR §4.1.3): a node's view, or those of its children and the posts
    beside them. (indices of the views to use, nodes left to posts, the posts in the nodes answered).

    `views` are nodes in the order of (first code, depth), `costs` theirs, in posts that would take as long.
    """
    used, left = np.empty(16, np.int64), np.empty(16, np.int64)
    n, m = 0, 0
    saved = 0.0
    firsts, ends = np.empty(views.size, np.int64), np.empty(views.size, np.int64)
    posts, best = np.empty(views.size, np.float64), np.empty(views.size, np.float64)
    for i in range(views.size):
        firsts[i], ends[i] = node_span(views[i])
    stack = np.empty(views.size + 4 * DEPTH + 4, np.int64)
    for at in range(inside.size):
        first, end = node_span(inside[at])
        low, high = lower_bound(firsts, first), lower_bound(firsts, end)
        while low < high and ends[low] > end:  # a larger node that begins at the same code
            low += 1
        height = 0
        for i in range(high - 1, low - 1, -1):  # children come before their parents
            posts[i] = posts_in(codes, views[i]) * weight
            below = posts[i]
            while height and firsts[stack[height - 1]] < ends[i]:
                height -= 1
                below += best[stack[height]] - posts[stack[height]]
            best[i] = min(costs[i], below)
            stack[height] = i
            height += 1
        begin = n
        i = low
        while i < high:
            if costs[i] <= best[i]:
                used = _push(used, n, i)
                n += 1
                saved += posts[i]
                past = ends[i]
                while i < high and firsts[i] < past:
                    i += 1
            else:
                i += 1
        stack[0] = inside[at]
        height = 1
        i = begin
        while height:  # the rest of the node, as the largest nodes without a used view, in the order of codes
            height -= 1
            node = stack[height]
            first, end = node_span(node)
            while i < n and firsts[used[i]] < first:
                i += 1
            if i == n or firsts[used[i]] >= end:
                left = _push(left, m, node)
                m += 1
            elif ends[used[i]] < end or firsts[used[i]] > first:
                for child in range(3, -1, -1):
                    stack[height] = 4 * node + child
                    height += 1
    return used[:n], left[:m], saved


@kernel
def rows_in_nodes(nodes, covered, size, tree, posts, gone, asked, code):
    """The rows of a segment of this `size` in some nodes that do not overlap, of which the first `covered` lie in the
    region, that satisfy everything; and how many were looked at.
    """
    kind, west, south, east, north, shape, since, until = asked
    fixed, exact, _, _, _, _, _ = posts
    out = np.empty(256, np.int64)
    found, looked = 0, 0
    nothing, any_shape = np.empty(0, np.int64), np.empty(0, np.float64)
    box = np.empty(4, np.float64)
    for i in range(nodes.size):
        node_box(nodes[i], box)
        if i >= covered and west <= east:
            box[0], box[1] = max(box[0], west), max(box[1], south)
            box[2], box[3] = min(box[2], east), min(box[3], north)
            if box[0] > box[2] or box[1] > box[3]:
                continue
        inside = (RECT, box[0], box[1], box[2], box[3], any_shape, since, until)  # a kind that is known saves a tenth
        begins, ends, _ = runs_touched(size, tree, inside)
        rows, some = check_runs(begins, ends, nothing, False, posts, gone, inside, code)
        looked += some
        while found + rows.size > out.size:
            more = np.empty(2 * out.size, np.int64)
            more[:found] = out[:found]
            out = more
        for j in range(rows.size):
            if i >= covered and (kind >= CIRCLE or west > east):
                lon, lat = place_at(fixed, exact, rows[j])
                if not in_region(kind, west, south, east, north, shape, 0, shape.size, lon, lat):
                    continue
            out[found] = rows[j]
            found += 1
    return out[:found], looked


@kernel
def rows_outside(codes, rows, firsts, ends):
    """Those of the rows, of these codes, that lie in none of the spans, which are sorted and do not overlap."""
    out = np.empty(rows.size, np.int64)
    found = 0
    for i in range(rows.size):
        at = lower_bound(ends, np.int64(codes[i]) + 1)
        if at == ends.size or firsts[at] > codes[i]:
            out[found] = rows[i]
            found += 1
    return out[:found]
