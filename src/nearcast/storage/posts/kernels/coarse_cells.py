"""Cells of one degree and a region: which it may meet, which it covers, and which have their middle in it."""

import numpy as np

from nearcast.common.kernels.compiled import kernel
from nearcast.common.kernels.geometry import in_region
from nearcast.storage.posts.kernels.blocks import APART, COVERS, relation

COLUMNS = 360


@kernel
def cells_and_region(cells, kind, west, south, east, north, shape):
    """(may meet, certainly covered, middle inside) of each cell, numbered row by row from the south-west."""
    out = np.zeros((3, cells.size), np.bool_)
    box = np.empty(4, np.float64)
    for i in range(cells.size):
        box[0], box[1] = cells[i] % COLUMNS - 180.0, cells[i] // COLUMNS - 90.0
        box[2], box[3] = box[0] + 1.0, box[1] + 1.0
        how = relation(kind, west, south, east, north, shape, box)
        out[0, i] = how != APART
        out[1, i] = how == COVERS
        middle = box[0] + 0.5, box[1] + 0.5
        out[2, i] = how == COVERS or (
            how != APART and in_region(kind, west, south, east, north, shape, 0, shape.size, middle[0], middle[1])
        )
    return out
