"""Windows of time as few runs of rows, in layers of intervals (STAR's MT-index §5.2).

Rows of a layer are in order of series and block; block b of a layer of shift s are the intervals from b·2^s + 1 to
(b + 1)·2^s. Layer 0 has the shift 0.
"""

import numpy as np

from nearcast.common.kernels.compiled import inlined, kernel


@inlined
def _first(blocks, begin, end, block):
    """The first of the rows [begin, end) whose block is not below `block`."""
    while begin < end:
        middle = (begin + end) >> 1
        if blocks[middle] < block:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def window_runs(known, begins, blocks, series, low, high):
    """Of each window, blocks [low, high) of a series, its rows of layer 0: (begin, end), equal where it has none."""
    out = np.zeros((series.size, 2), np.int64)
    for i in range(series.size):
        at = _first(known, 0, known.size, series[i])
        if at < known.size and known[at] == series[i]:
            begin, end = begins[0, at], begins[0, at + 1]
            begin = _first(blocks, begin, end, low[i])
            end = _first(blocks, begin, end, high[i])
            if begin < end:
                out[i, 0], out[i, 1] = begin, end
    return out


@kernel
def cover_runs(known, begins, blocks, shifts, series, runs, few):
    """What makes up the windows whose rows of layer 0 are `runs`: (window, begin, end) of few rows of any layer; up to
    `few` rows are taken as they are.

    `begins` has a row a layer, with where each of the series `known` begins there, and where the last ends.
    """
    top = begins.shape[0] - 1
    out = np.empty((series.size * (2 * top + 1), 3), np.int64)
    size = 0
    for i in range(series.size):
        begin, end = runs[i, 0], runs[i, 1]
        if begin == end:
            continue
        if top == 0 or end - begin <= few:
            out[size, 0], out[size, 1], out[size, 2] = i, begin, end
            size += 1
            continue
        at = _first(known, 0, known.size, series[i])
        low, high = blocks[begin], blocks[end - 1] + 1
        for layer in range(top + 1):
            step = shifts[layer + 1] - shifts[layer] if layer < top else np.int64(62)
            up, down = -(-low >> step), high >> step  # whole blocks of the next layer
            begin, end = begins[layer, at], begins[layer, at + 1]
            if layer == top or up >= down:
                begin = _first(blocks, begin, end, low)
                out[size, 0], out[size, 1], out[size, 2] = i, begin, _first(blocks, begin, end, high)
                size += 1
                break
            if low < up << step:
                begin = _first(blocks, begin, end, low)
                out[size, 0], out[size, 1], out[size, 2] = i, begin, _first(blocks, begin, end, up << step)
                size += 1
            if down << step < high:
                begin = _first(blocks, begin, end, down << step)
                out[size, 0], out[size, 1], out[size, 2] = i, begin, _first(blocks, begin, end, high)
                size += 1
            low, high = up, down
    return out[:size]
