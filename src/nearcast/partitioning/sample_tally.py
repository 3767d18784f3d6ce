"""How many posts and queries of a sample a rectangle of cells has: what spatial partitions are weighed by."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.kernels.grid import grid_leaves
from nearcast.partitioning.kernels.cell_sums import box_rectangles
from nearcast.partitioning.router_sample import Queries, RouterSample, SampledPosts

CELLS = 1024  # a side of the fine grid; a power of two, so that quadtrees end on its lines
WORLD = (-180.0, -90.0, 360.0, 180.0)

Extent = tuple[float, float, float, float]
Rectangle = tuple[int, int, int, int]  # x0, y0, x1, y1: the cells with x0 <= x < x1 and y0 <= y < y1


def extent_of(sample: RouterSample) -> Extent:
    """(west, south, width, height) of the posts; the world, if there are none."""
    lon, lat = sample.posts.lon, sample.posts.lat
    if not len(lon):
        return WORLD
    west, south = float(lon.min()), float(lat.min())
    return west, south, max(float(lon.max()) - west, 1e-6), max(float(lat.max()) - south, 1e-6)


def cells_of(posts: SampledPosts, extent: Extent, cells: int) -> np.ndarray:
    """The cell of each post."""
    return grid_leaves(frozen(posts.lon), frozen(posts.lat), frozen(np.array(extent)), cells)


def rectangles_of(queries: Queries, extent: Extent, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, rectangle) of the cells that each query's box touches: two rectangles where it crosses the antimeridian."""
    return box_rectangles(frozen(np.ascontiguousarray(queries.boxes, np.float64)), frozen(np.array(extent)), cells)


def prefix_sums(values: np.ndarray) -> np.ndarray:
    """Of a square matrix: entry (y, x) is the sum of all before row y and before column x."""
    out = np.zeros((len(values) + 1, len(values) + 1), values.dtype)
    np.cumsum(np.cumsum(values, axis=0), axis=1, out=out[1:, 1:])
    return out


def touch_sums(rectangles: np.ndarray, cells: int) -> np.ndarray:
    """Prefix sums from which the number of rectangles that touch a given one comes by four look-ups.

    Cells, the lines between them and the points where lines cross are the places of a lattice of 2 cells - 1 a side.
    Each rectangle adds 1 to its cells and points and -1 to its inner lines: what two rectangles have in common is a
    rectangle, and its places always add up to 1 (Euler's characteristic).
    """
    side = 2 * cells
    x0, y0, x1, y1 = 2 * rectangles.astype(np.int64).T
    edges = np.zeros((side, side), np.int64)
    for y, x, sign in ((y0, x0, 1), (y0, x1 - 1, -1), (y1 - 1, x0, -1), (y1 - 1, x1 - 1, 1)):
        np.add.at(edges.reshape(-1), y * side + x, sign)
    places = np.cumsum(np.cumsum(edges, axis=0, out=edges), axis=1, out=edges)
    places[1::2, 0::2] *= -1
    places[0::2, 1::2] *= -1
    return prefix_sums(places[: side - 1, : side - 1])


@dataclass(frozen=True)
class Tally:
    """Counts over `cells` by `cells` cells of an extent, in O(1) for any rectangle, or arrays of rectangles."""

    extent: Extent
    cells: int
    cell_of_post: np.ndarray
    rectangles: np.ndarray

    @classmethod
    def of(cls, sample: RouterSample, cells: int = CELLS) -> "Tally":
        extent = extent_of(sample)
        _, rectangles = rectangles_of(sample.queries, extent, cells)
        return cls(extent, cells, cells_of(sample.posts, extent, cells), rectangles)

    def only(self, queries: np.ndarray) -> "Tally":
        """The same posts, and the queries of these rectangles."""
        return Tally(self.extent, self.cells, self.cell_of_post, queries)

    @cached_property
    def _post_sums(self) -> np.ndarray:
        counts = np.bincount(self.cell_of_post, minlength=self.cells**2)
        return prefix_sums(counts.reshape(self.cells, self.cells))

    @cached_property
    def _touch_sums(self) -> np.ndarray:
        return touch_sums(self.rectangles, self.cells)

    def posts(self, x0: np.ndarray, y0: np.ndarray, x1: np.ndarray, y1: np.ndarray) -> np.ndarray:
        """The number of posts in a rectangle of cells."""
        sums = self._post_sums
        return sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]

    def queries(self, x0: np.ndarray, y0: np.ndarray, x1: np.ndarray, y1: np.ndarray) -> np.ndarray:
        """The number of queries that touch a rectangle of at least one cell; one that crosses the antimeridian counts
        for each of its sides.
        """
        sums = self._touch_sums
        x0, y0, x1, y1 = 2 * x0, 2 * y0, 2 * x1 - 1, 2 * y1 - 1
        return sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]
