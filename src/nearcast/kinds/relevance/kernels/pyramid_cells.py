"""A pyramid of grids over the world: level l has 2**l by 2**l cells, the whole world is the one cell of level 0.

Cells never decrease with lon or lat, so the cells of a box's corners bound the cells of every place in it; and the cell
of a place at level l - 1 is its cell at level l, both coordinates halved. Levels go from 0 to 31.
"""

import numpy as np
from numpy.typing import NDArray

from nearcast.common.kernels.compiled import kernel

Z_LEVEL = 24  # cells of about 2 m


@kernel
def _column(share: float, level: int) -> int:
    """The column (or row) at `share` of the way across, clipped into the grid."""
    count = int(np.int64(1) << np.int64(level))
    place = share * count
    if not place > 0.0:
        return 0
    if place >= count:
        return count - 1
    return int(place)


@kernel
def cell_xy(lon: float, lat: float, level: int) -> tuple[int, int]:
    """The cell that a place is in, counted from lon -180 eastwards and from lat -90 northwards."""
    return _column((lon + 180.0) / 360.0, level), _column((lat + 90.0) / 180.0, level)


@kernel
def cover(min_lon: float, min_lat: float, max_lon: float, max_lat: float, level: int) -> tuple[int, int, int, int]:
    """The cells of a level that a box touches, as (x, y, columns, rows), each cell once.

    They are ((x + i) mod 2**level, y + j) for i < columns and j < rows. A box with `min_lon > max_lon` crosses the
    antimeridian; one with `min_lat > max_lat` is empty and has 0 columns and rows.
    """
    x, y = cell_xy(min_lon, min_lat, level)
    if not min_lat <= max_lat:
        return x, y, 0, 0
    last_x, last_y = cell_xy(max_lon, max_lat, level)
    columns = last_x - x + 1
    if min_lon > max_lon:
        count = int(np.int64(1) << np.int64(level))
        columns = min(columns + count, count)
    return x, y, columns, last_y - y + 1


@kernel
def cover_count(min_lon: float, min_lat: float, max_lon: float, max_lat: float, level: int) -> int:
    """The number of cells of a level that a box touches."""
    _, _, columns, rows = cover(min_lon, min_lat, max_lon, max_lat, level)
    return columns * rows


@kernel
def _with_gaps(value: int) -> np.uint64:
    """The low 32 bits, each followed by a 0."""
    bits = np.uint64(value) & np.uint64(0x00000000FFFFFFFF)
    bits = (bits | (bits << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    bits = (bits | (bits << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    bits = (bits | (bits << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    bits = (bits | (bits << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (bits | (bits << np.uint64(1))) & np.uint64(0x5555555555555555)


@kernel
def morton(x: int, y: int) -> np.uint64:
    """The place of a cell on the Z-curve: x and y (32 bits each) interleaved, x in the even bits."""
    return _with_gaps(x) | (_with_gaps(y) << np.uint64(1))


@kernel
def z_order(lons: NDArray[np.float64], lats: NDArray[np.float64]) -> NDArray[np.uint64]:
    """The Z-curve position of each place at level 24: sorting by it keeps neighbours together."""
    keys = np.empty(len(lons), np.uint64)
    for i in range(len(lons)):
        x, y = cell_xy(lons[i], lats[i], Z_LEVEL)
        keys[i] = morton(x, y)
    return keys
