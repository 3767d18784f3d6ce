"""Term tables of the cells of a window, from which reports of large regions are summed up.

Posts lie along the Z-order curve, in blocks of BLOCK under a tree of FAN children a node (numbered as in
`storage.posts.kernels.blocks`); their words are numbered by frequency. Every node above the blocks has a table of its
frequent words. Of the other words none can occur more often than in the whole window, and whether that could matter is
known afterwards; if so, the posts of the region are looked at for them.
"""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import EVERYWHERE, RECT, in_region
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.sorting import sort_in_place
from nearcast.storage.posts.kernels.blocks import APART, COVERS, MEETS, relation

BLOCK = 128
FAN = 8
DEPTH = 24
ONE = np.uint64(1)


@kernel
def sorted_codes(picked, starts, codes, ranks):
    """(codes, starts) of some posts: the words of each by their ranks, ascending."""
    begins = np.empty(picked.size + 1, np.int64)
    begins[0] = 0
    for i in range(picked.size):
        begins[i + 1] = begins[i] + starts[picked[i] + 1] - starts[picked[i]]
    out = np.empty(begins[picked.size], np.int32)
    for i in range(picked.size):
        first, size = starts[picked[i]], begins[i + 1] - begins[i]
        own = out[begins[i] : begins[i + 1]]
        for j in range(size):
            own[j] = ranks[codes[first + j]]
        if size > 24:
            sort_in_place(own, size)
            continue
        for j in range(1, size):
            code, at = own[j], j
            while at and own[at - 1] > code:
                own[at] = own[at - 1]
                at -= 1
            own[at] = code
    return out, begins


@kernel
def build_cells(lon, lat, starts, codes, frequent):
    """(boxes, levels, table_starts, table_codes, table_counts); a table of words below `frequent` for each node above
    the blocks, the first of which has number 0 among tables.
    """
    posts = lon.size
    levels = np.zeros(DEPTH, np.int64)
    count = (posts + BLOCK - 1) // BLOCK
    top, total = 0, count
    while count > 1:
        top += 1
        levels[top] = total
        count = (count + FAN - 1) // FAN
        total += count
    levels[top + 1] = total
    levels = levels[: top + 2].copy()
    boxes = np.empty((total, 4), np.float64)
    for node in range(levels[1]):
        boxes[node, 0], boxes[node, 1], boxes[node, 2], boxes[node, 3] = np.inf, np.inf, -np.inf, -np.inf
        for i in range(node * BLOCK, min(posts, (node + 1) * BLOCK)):
            boxes[node, 0], boxes[node, 2] = min(boxes[node, 0], lon[i]), max(boxes[node, 2], lon[i])
            boxes[node, 1], boxes[node, 3] = min(boxes[node, 1], lat[i]), max(boxes[node, 3], lat[i])
    base = levels[1]
    table_starts = np.zeros(total - base + 1, np.int64)
    table_codes, table_counts = np.empty(1024, np.int32), np.empty(1024, np.int32)
    counts = np.zeros(frequent, np.int32)
    touched = np.empty(frequent, np.int32)
    used = np.int64(0)
    for level in range(1, levels.size - 1):
        below = levels[level - 1]
        for node in range(levels[level], levels[level + 1]):
            first = below + (node - levels[level]) * FAN
            last = min(levels[level], first + FAN)
            boxes[node] = boxes[first]
            for child in range(first + 1, last):
                for j in range(2):
                    boxes[node, j] = min(boxes[node, j], boxes[child, j])
                    boxes[node, 2 + j] = max(boxes[node, 2 + j], boxes[child, 2 + j])
            n = 0
            if level == 1:
                for i in range(first * BLOCK, min(posts, last * BLOCK)):
                    for j in range(starts[i], starts[i + 1]):
                        code = codes[j]
                        if code >= frequent:
                            break
                        if not counts[code]:
                            touched[n] = code
                            n += 1
                        counts[code] += 1
            else:
                for j in range(table_starts[first - base], table_starts[last - base]):
                    code = table_codes[j]
                    if not counts[code]:
                        touched[n] = code
                        n += 1
                    counts[code] += table_counts[j]
            if used + n > table_codes.size:
                table_codes, table_counts = grown(table_codes, 2 * (used + n)), grown(table_counts, 2 * (used + n))
            for j in range(n):
                table_codes[used], table_counts[used] = touched[j], counts[touched[j]]
                counts[touched[j]] = 0
                used += 1
            table_starts[node - base + 1] = used
    return boxes, levels, table_starts, table_codes[:used].copy(), table_counts[:used].copy()


@kernel
def meets(kind, box, shape, begin, end, node):
    """How a region lies to the box of a node: `blocks.relation`, with the common case at hand."""
    if kind == EVERYWHERE:
        return COVERS
    if kind == RECT and box[0] <= box[2]:
        if node[3] < box[1] or node[1] > box[3] or node[2] < box[0] or node[0] > box[2]:
            return APART
        covered = box[0] <= node[0] and node[2] <= box[2] and box[1] <= node[1] and node[3] <= box[3]
        return COVERS if covered else MEETS
    return relation(kind, box[0], box[1], box[2], box[3], shape[begin:end], node)


@kernel
def count_cells(placed, tables, asked, first, last, frequent, common, own):
    """Count the words below `frequent` of the posts in the regions of a group, the members `first` to `last`: what lies
    in all of them in `common`, the rest in a row of `own` for each.
    """
    lon, lat, starts, codes = placed
    boxes, levels, table_starts, table_codes, table_counts = tables
    kinds, regions, shape, shape_offsets = asked
    posts, base = lon.size, levels[1]
    width = last - first
    full = np.uint64(0xFFFFFFFFFFFFFFFF) if width == 64 else (ONE << np.uint64(width)) - ONE
    nodes, heights = np.empty(FAN * DEPTH, np.int64), np.empty(FAN * DEPTH, np.int64)
    insides, maybes = np.empty(FAN * DEPTH, np.uint64), np.empty(FAN * DEPTH, np.uint64)
    depth = 0
    if posts:
        nodes[0], heights[0], insides[0], maybes[0] = levels[levels.size - 2], levels.size - 2, np.uint64(0), full
        depth = 1
    while depth:
        depth -= 1
        node, level, inside, maybe = nodes[depth], heights[depth], insides[depth], maybes[depth]
        for m in range(width):
            bit = ONE << np.uint64(m)
            if maybe & bit:
                row = first + m
                found = meets(kinds[row], regions[row], shape, shape_offsets[row], shape_offsets[row + 1], boxes[node])
                if found != MEETS:
                    maybe &= ~bit
                    if found == COVERS:
                        inside |= bit
        if not (inside | maybe):
            continue
        if level and not maybe:
            low, high = table_starts[node - base], table_starts[node - base + 1]
            if inside == full:
                for j in range(low, high):
                    common[table_codes[j]] += table_counts[j]
            else:
                for m in range(width):
                    if inside & (ONE << np.uint64(m)):
                        for j in range(low, high):
                            own[m, table_codes[j]] += table_counts[j]
            continue
        if level:
            below = levels[level - 1]
            child = below + (node - levels[level]) * FAN
            for each in range(child, min(levels[level], child + FAN)):
                nodes[depth], heights[depth], insides[depth], maybes[depth] = each, level - 1, inside, maybe
                depth += 1
            continue
        for i in range(node * BLOCK, min(posts, (node + 1) * BLOCK)):
            mask = inside
            for m in range(width):
                bit = ONE << np.uint64(m)
                if maybe & bit:
                    row = first + m
                    west, south, east, north = regions[row, 0], regions[row, 1], regions[row, 2], regions[row, 3]
                    if kinds[row] == RECT and west <= east:
                        if west <= lon[i] <= east and south <= lat[i] <= north:
                            mask |= bit
                    elif in_region(
                        kinds[row], west, south, east, north, shape,
                        shape_offsets[row], shape_offsets[row + 1], lon[i], lat[i],
                    ):  # fmt: skip
                        mask |= bit
            if mask == full:
                for j in range(starts[i], starts[i + 1]):
                    if codes[j] >= frequent:
                        break
                    common[codes[j]] += 1
                continue
            for m in range(width):
                if mask & (ONE << np.uint64(m)):
                    for j in range(starts[i], starts[i + 1]):
                        if codes[j] >= frequent:
                            break
                        own[m, codes[j]] += 1


@kernel
def count_rare(placed, tables, asked, row, frequent, counts, touched):
    """How many words from `frequent` on the posts in one region have; they are put into `touched`, and counted."""
    lon, lat, starts, codes = placed
    boxes, levels = tables.boxes, tables.levels
    kinds, regions, shape, shape_offsets = asked
    posts = lon.size
    nodes, heights = np.empty(FAN * DEPTH, np.int64), np.empty(FAN * DEPTH, np.int64)
    certain = np.empty(FAN * DEPTH, np.bool_)
    box, begin, end = regions[row], shape_offsets[row], shape_offsets[row + 1]
    depth, n = 0, 0
    if posts:
        nodes[0], heights[0], certain[0] = levels[levels.size - 2], levels.size - 2, False
        depth = 1
    while depth:
        depth -= 1
        node, level, sure = nodes[depth], heights[depth], certain[depth]
        if not sure:
            found = meets(kinds[row], box, shape, begin, end, boxes[node])
            if found == APART:
                continue
            sure = found == COVERS
        if level:
            below = levels[level - 1]
            child = below + (node - levels[level]) * FAN
            for each in range(child, min(levels[level], child + FAN)):
                nodes[depth], heights[depth], certain[depth] = each, level - 1, sure
                depth += 1
            continue
        for i in range(node * BLOCK, min(posts, (node + 1) * BLOCK)):
            if codes.size and starts[i] < starts[i + 1] and codes[starts[i + 1] - 1] >= frequent:
                if not sure and not in_region(
                    kinds[row], box[0], box[1], box[2], box[3], shape, begin, end, lon[i], lat[i]
                ):
                    continue
                for j in range(starts[i + 1] - 1, starts[i] - 1, -1):
                    code = codes[j] - frequent
                    if code < 0:
                        break
                    if not counts[code]:
                        touched[n] = code
                        n += 1
                    counts[code] += 1
    return n
