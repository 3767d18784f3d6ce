"""A uniform grid over an extent, and the textual summary that tells in which of its cells a post is wanted."""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel
from nearcast.common.kernels.growing import grown
from nearcast.common.kernels.mix import mix, pair_hash

SUMMARY_BITS = 26
RECENT = 1 << 13
WIDE = 64  # a query over more cells than this is summarised once for all of them


@inlined
def grid_cell(value, origin, span, cells):
    at = np.int64((value - origin) / span * cells) if value > origin else np.int64(0)
    return at if at < cells else cells - 1


@kernel
def grid_leaves(lon, lat, extent, cells):
    """The cell of each place; what lies outside the extent belongs to the border cells."""
    out = np.empty(lon.size, np.int32)
    for i in range(lon.size):
        x = grid_cell(lon[i], extent[0], extent[2], cells)
        out[i] = grid_cell(lat[i], extent[1], extent[3], cells) * cells + x
    return out


@inlined
def summary_bit(cell, term):
    """The bit of a summary for (cell, term); cell -1 stands for all cells."""
    return bit_of(mix(np.uint64(cell + 1)), term)


@inlined
def bit_of(here, term):
    """The same for a cell that is mixed already."""
    return np.int64(pair_hash(here, term) >> np.uint64(64 - SUMMARY_BITS))


@inlined
def has_bit(bitmap, position):
    return (bitmap[position >> 6] >> np.uint64(position & 63)) & np.uint64(1) != 0


@kernel
def summary_positions(rows, terms, boxes, extent, cells):
    """The bits that the subscriptions filed as (row, term) set; of those that come again soon, most come once."""
    recent = np.full(RECENT, -1, np.int64)
    out = np.empty(2 * rows.size + 64, np.uint32)
    n = 0
    for i in range(rows.size):
        row = rows[i]
        y0 = grid_cell(boxes[row, 1], extent[1], extent[3], cells)
        y1 = grid_cell(boxes[row, 3], extent[1], extent[3], cells)
        x0 = grid_cell(boxes[row, 0], extent[0], extent[2], cells)
        x1 = grid_cell(boxes[row, 2], extent[0], extent[2], cells)
        wide = boxes[row, 0] > boxes[row, 2] or (x1 - x0 + 1) * (y1 - y0 + 1) > WIDE
        if wide:
            x0, x1, y0, y1 = 0, 0, 0, 0
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                bit = summary_bit(np.int64(-1) if wide else y * cells + x, terms[i])
                if recent[bit % RECENT] == bit:
                    continue
                recent[bit % RECENT] = bit
                if n == out.size:
                    out = grown(out, 2 * n)
                out[n] = bit
                n += 1
    return out[:n]


@kernel
def set_bits(bitmap, positions):
    for i in range(positions.size):
        bitmap[positions[i] >> 6] |= np.uint64(1) << np.uint64(positions[i] & 63)


@kernel
def may_match(cells, terms, offsets, bitmap):
    """Which posts have a term that some subscription of their cell is filed under: no false negatives."""
    out = np.zeros(cells.size, np.bool_)
    everywhere = has_bit(bitmap, summary_bit(np.int64(-1), np.uint64(0)))
    for i in range(cells.size):
        cell = np.int64(cells[i])
        hit = everywhere or has_bit(bitmap, summary_bit(cell, np.uint64(0)))
        j = offsets[i]
        while not hit and j < offsets[i + 1]:
            if terms[j] != 0:
                hit = has_bit(bitmap, summary_bit(cell, terms[j])) or has_bit(
                    bitmap, summary_bit(np.int64(-1), terms[j])
                )
            j += 1
        out[i] = hit
    return out
