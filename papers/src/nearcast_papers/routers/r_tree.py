"""Partitions by the leaves of an R-tree, packed by sort-tile-recursive (STR): PS2Stream's R-tree baseline (PS2Stream
§VI-B) and STAR's STR baseline (STAR §8.5, its reference 38).

The leaves of an R-tree leave gaps and may overlap. Each cell of the grid goes to the leaf of least enlargement, as an
insertion would choose, so that posts outside the sample have one leaf too and a query finds it.
"""

import numpy as np

from nearcast.partitioning.allocation import greedy
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import CELLS, Tally
from nearcast.partitioning.tiles import space_partition
from nearcast_papers.routers.kernels.tile_growth import least_enlargement

LEAVES = 64


def build(sample: RouterSample, workers: int, leaves: int = LEAVES, cells: int = CELLS) -> Partition:
    """PS2Stream's: an R-tree with more leaves than workers, which are then divided among the workers by the posts in
    them, heaviest first. Cost: O(posts log posts + leaves · cells²).
    """
    return _partition("rtree", sample, workers, max(leaves, workers), cells)


def build_str(sample: RouterSample, workers: int, cells: int = CELLS) -> Partition:
    """STR as STAR compares with it: one tile a worker, of equally many posts."""
    return _partition("str", sample, workers, workers, cells)


def _partition(name: str, sample: RouterSample, workers: int, tiles: int, cells: int) -> Partition:
    tally = Tally.of(sample, cells)
    boxes = sort_tile(tally.cell_of_post % cells, tally.cell_of_post // cells, tiles)
    if not len(boxes):
        boxes = even_tiles(cells, min(tiles, cells * cells))
    taken, node = np.unique(least_enlargement(boxes, cells), return_inverse=True)  # tiles that share their cells
    load = np.bincount(node[tally.cell_of_post], minlength=len(taken)).astype(np.float64)
    return space_partition(name, tally.extent, cells, node, load, greedy(load, workers), workers)


def sort_tile(x: np.ndarray, y: np.ndarray, tiles: int) -> np.ndarray:
    """Bounding rectangles (x0, y0, x1, y1) of `tiles` runs of points, of equal length as nearly as may be: sorted by x,
    cut into about √tiles slices, each sorted by y and cut into runs. Fewer where there are fewer points.
    """
    tiles = min(tiles, len(x))
    if not tiles:
        return np.empty((0, 4), np.int32)
    slices = int(np.ceil(np.sqrt(tiles)))
    runs = _shares(tiles, slices)  # of each slice
    ends = np.concatenate(([0], np.cumsum(runs))) * len(x) // tiles
    by_x = np.lexsort((y, x))
    out = []
    for number, run in enumerate(runs):
        points = by_x[ends[number] : ends[number + 1]]
        points = points[np.lexsort((x[points], y[points]))]
        for tile in np.array_split(points, run):
            out.append((x[tile].min(), y[tile].min(), x[tile].max() + 1, y[tile].max() + 1))
    return np.array(out, np.int32)


def even_tiles(cells: int, tiles: int) -> np.ndarray:
    """The grid in even tiles: what there is to do without a sample."""
    slices = int(np.ceil(np.sqrt(tiles)))
    out = []
    edges = np.arange(slices + 1) * cells // slices
    for number, run in enumerate(_shares(tiles, slices)):
        rows = np.arange(run + 1) * cells // run
        out += [(edges[number], rows[i], edges[number + 1], rows[i + 1]) for i in range(run)]
    return np.array(out, np.int32)


def _shares(total: int, parts: int) -> list[int]:
    """`total` as a sum of `parts` whole numbers that differ by at most 1, the larger ones first."""
    return [total // parts + (i < total % parts) for i in range(parts)]
