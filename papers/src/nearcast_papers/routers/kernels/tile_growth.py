"""Cells of the fine grid to tiles, as an R-tree takes in what lies outside its nodes."""

import numpy as np

from nearcast_papers.compiled_apart import kernel


@kernel
def least_enlargement(tiles, cells):
    """The tile of each cell: the one whose rectangle grows least in area when it takes the cell in; among equals the
    smallest, then the first.
    """
    out = np.empty(cells * cells, np.int32)
    for y in range(cells):
        for x in range(cells):
            best, best_growth, best_area = 0, np.int64(-1), np.int64(0)
            for tile in range(tiles.shape[0]):
                area = np.int64(tiles[tile, 2] - tiles[tile, 0]) * np.int64(tiles[tile, 3] - tiles[tile, 1])
                width = np.int64(max(tiles[tile, 2], x + 1) - min(tiles[tile, 0], x))
                growth = width * np.int64(max(tiles[tile, 3], y + 1) - min(tiles[tile, 1], y)) - area
                if best_growth < 0 or growth < best_growth or (growth == best_growth and area < best_area):
                    best, best_growth, best_area = tile, growth, area
            out[y * cells + x] = best
    return out
