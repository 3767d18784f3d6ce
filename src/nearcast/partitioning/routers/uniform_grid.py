"""A uniform grid over the extent of a sample: the papers' simplest spatial partitioning, PS2Stream's *grid*
(PS2Stream §VI-B).
"""

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.kernels.grid import grid_leaves
from nearcast.partitioning.allocation import greedy
from nearcast.partitioning.partition import SPACE, Partition
from nearcast.partitioning.router_sample import RouterSample

CELLS = 64  # a side, as in PS2Stream §VI-B
WORLD = (-180.0, -90.0, 360.0, 180.0)


def build(sample: RouterSample, workers: int, cells: int = CELLS) -> Partition:
    """CELLS by CELLS leaves, a leaf's load being its share of the posts. Over the world, if there are none."""
    return over(sample.posts.lon, sample.posts.lat, workers, cells)


def over(lon: np.ndarray, lat: np.ndarray, workers: int, cells: int = CELLS) -> Partition:
    extent, load = WORLD, np.zeros(cells * cells)
    if len(lon):
        west, south = float(lon.min()), float(lat.min())
        extent = (west, south, max(float(lon.max()) - west, 1e-6), max(float(lat.max()) - south, 1e-6))
        leaves = grid_leaves(frozen(lon), frozen(lat), frozen(np.array(extent)), cells)
        load = np.bincount(leaves, minlength=cells * cells) / len(lon)
    count = cells * cells
    kind = np.full(count, SPACE, np.uint8)
    numbers = np.arange(count + 1, dtype=np.int32)
    return Partition("grid", extent, cells, numbers[:-1], kind, numbers, load, greedy(load, workers), workers)
