"""Is a place in a region? Exact for rectangles and polygons, to the last bits of a double for circles.

A region is a kind, a bounding box (`min_lon > max_lon` crosses the antimeridian) and a run of a flat array, its shape:
nothing for a rectangle, `lon, lat, radius_km` for a circle, and for a polygon, ring after ring, the number of vertices
and `lon, lat` of each. Regions are closed. `nearcast.common.geo.containment` makes this form, and says the same in
plain Python.
"""

import math

import numpy as np
from numpy.typing import NDArray

from nearcast.common.kernels.compiled import kernel

EVERYWHERE, RECT, CIRCLE, POLYGON = 0, 1, 2, 3  # as in common.geo.shapes

EARTH_RADIUS_KM = 6371.0088
RADIANS = math.pi / 180.0

# Shewchuk 1997, "Adaptive precision floating-point arithmetic": a determinant beyond this bound has the right sign.
_SIGN_IS_SURE = 3.3306690738754716e-16
_SPLITTER = 134217729.0  # 2**27 + 1


@kernel
def haversine_km(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The great-circle distance; exactly 0 between two names of one place (lon ±180, or any two lons at a pole)."""
    turn = abs(lon2 - lon1)
    if turn > 180.0:
        turn = 360.0 - turn
    across = math.sin((lat2 - lat1) * RADIANS / 2.0)
    along = math.sin(turn * RADIANS / 2.0)
    # The cosine of a latitude as the sine of the distance to its pole, which is 0 there and not 6e-17.
    shrink = math.sin((90.0 - abs(lat1)) * RADIANS) * math.sin((90.0 - abs(lat2)) * RADIANS)
    chord = math.sqrt(across * across + shrink * (along * along))
    return 2.0 * EARTH_RADIUS_KM * math.asin(min(1.0, chord))


@kernel
def in_bbox(min_lon: float, min_lat: float, max_lon: float, max_lat: float, lon: float, lat: float) -> bool:
    """Whether a place is in a closed box, which crosses the antimeridian where `min_lon > max_lon`."""
    if not (min_lat <= lat <= max_lat):
        return False
    if min_lon <= max_lon:
        return min_lon <= lon <= max_lon
    return lon >= min_lon or lon <= max_lon


@kernel
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b without loss: the rounded sum and what the rounding dropped."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


@kernel
def _two_product(a: float, b: float) -> tuple[float, float]:
    """a * b without loss: the rounded product and what the rounding dropped."""
    product = a * b
    spread = _SPLITTER * a
    a_high = spread - (spread - a)
    a_low = a - a_high
    spread = _SPLITTER * b
    b_high = spread - (spread - b)
    b_low = b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel
def _grow(expansion: NDArray[np.float64], size: int, term: float) -> int:
    """Add a term to a sum held as parts that do not overlap, smallest first; returns the new number of parts."""
    for i in range(size):
        term, expansion[i] = _two_sum(term, expansion[i])
    expansion[size] = term
    return size + 1


@kernel
def _exact_side(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> int:
    """The sign of (x2-x1)(y-y1) - (x-x1)(y2-y1) with no rounding at all."""
    expansion = np.empty(16, np.float64)
    size = 0
    for a, b in ((_two_sum(x2, -x1), _two_sum(y, -y1)), (_two_sum(x1, -x), _two_sum(y2, -y1))):
        for u in a:
            for v in b:
                high, low = _two_product(u, v)
                size = _grow(expansion, size, low)
                size = _grow(expansion, size, high)
    for i in range(size - 1, -1, -1):
        if expansion[i] != 0.0:
            return 1 if expansion[i] > 0.0 else -1
    return 0


@kernel
def side_of_line(x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> int:
    """1 left of the line from point 1 to point 2, -1 right of it, 0 on it: exact (down to products of 1e-290)."""
    first = (x2 - x1) * (y - y1)
    second = (x - x1) * (y2 - y1)
    determinant = first - second
    doubt = _SIGN_IS_SURE * (abs(first) + abs(second))
    if determinant > doubt:
        return 1
    if determinant < -doubt:
        return -1
    return _exact_side(x1, y1, x2, y2, x, y)


@kernel
def in_polygon(shape: NDArray[np.float64], shape_start: int, shape_end: int, lon: float, lat: float) -> bool:
    """Even-odd over all rings, the boundary included; a ring may repeat its first vertex or not."""
    inside = False
    start = shape_start
    while start < shape_end:
        end = start + 1 + 2 * int(shape[start])
        x1, y1 = shape[end - 2], shape[end - 1]
        for i in range(start + 1, end, 2):
            x2, y2 = shape[i], shape[i + 1]
            if min(y1, y2) <= lat <= max(y1, y2) and lon <= max(x1, x2):
                crosses = (y1 > lat) != (y2 > lat)
                if lon < min(x1, x2):
                    inside ^= crosses
                else:
                    side = side_of_line(x1, y1, x2, y2, lon, lat)
                    if side == 0:
                        return True
                    inside ^= crosses and (side > 0) == (y2 > y1)
            x1, y1 = x2, y2
        start = end
    return inside


@kernel
def in_region(
    kind: int,
    min_lon: float,
    min_lat: float,
    max_lon: float,
    max_lat: float,
    shape: NDArray[np.float64],
    shape_start: int,
    shape_end: int,
    lon: float,
    lat: float,
) -> bool:
    """Whether a place is in the region of this kind, box and shape[shape_start:shape_end]."""
    if kind == EVERYWHERE:
        return True
    if not in_bbox(min_lon, min_lat, max_lon, max_lat, lon, lat):
        return False
    if kind == CIRCLE:
        return bool(haversine_km(shape[shape_start], shape[shape_start + 1], lon, lat) <= shape[shape_start + 2])
    if kind == POLYGON:
        return in_polygon(shape, shape_start, shape_end, lon, lat)
    return True


@kernel
def in_region_many(
    kind: int,
    min_lon: float,
    min_lat: float,
    max_lon: float,
    max_lat: float,
    shape: NDArray[np.float64],
    lons: NDArray[np.float64],
    lats: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which of many places are in one region."""
    inside = np.empty(len(lons), np.bool_)
    for i in range(len(lons)):
        inside[i] = in_region(kind, min_lon, min_lat, max_lon, max_lat, shape, 0, len(shape), lons[i], lats[i])
    return inside
