from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.kernels.geometry import in_bbox
from nearcast.kinds.relevance.kernels import pyramid_cells as cells

LONS = st.one_of(st.floats(-180, 180), st.integers(-16, 16).map(lambda x: x * 11.25))
LATS = st.one_of(st.floats(-90, 90), st.integers(-16, 16).map(lambda y: y * 5.625))
LEVELS = st.integers(0, 31)


def cells_of(bbox: tuple[float, float, float, float], level: int) -> list[tuple[int, int]]:
    x, y, columns, rows = cells.cover(*bbox, level)
    return [((x + i) % 2**level, y + j) for i in range(columns) for j in range(rows)]


def covered(bbox: tuple[float, float, float, float], level: int, cell: tuple[int, int]) -> bool:
    x, y, columns, rows = cells.cover(*bbox, level)
    return (cell[0] - x) % 2**level < columns and y <= cell[1] < y + rows


@pytest.mark.parametrize(
    ("lon", "lat", "level", "cell"),
    [
        (-180, -90, 0, (0, 0)),
        (180, 90, 0, (0, 0)),
        (180, 90, 5, (31, 31)),
        (0, 0, 1, (1, 1)),
        (-1e-9, -1e-9, 1, (0, 0)),
        (-1e-20, -1e-20, 1, (1, 1)),
        (181, -91, 4, (15, 0)),
        (1e300, -1e300, 31, (2**31 - 1, 0)),
        (90, 45, 31, (3 * 2**29, 3 * 2**29)),
    ],
)
def test_the_cell_of_a_place(lon: float, lat: float, level: int, cell: tuple[int, int]) -> None:
    assert cells.cell_xy(float(lon), float(lat), level) == cell


@settings(max_examples=200, deadline=None)
@given(LONS, LATS, st.integers(1, 31))
def test_a_cell_lies_in_the_cell_of_half_its_coordinates(lon: float, lat: float, level: int) -> None:
    x, y = cells.cell_xy(lon, lat, level)
    assert cells.cell_xy(lon, lat, level - 1) == (x // 2, y // 2)


@settings(max_examples=500, deadline=None)
@given(LONS, LATS, LONS, LATS, LONS, LATS, LEVELS)
def test_every_place_in_a_box_has_its_cell_in_the_cover(
    west: float, south: float, east: float, north: float, lon: float, lat: float, level: int
) -> None:
    south, lat, north = sorted((south, lat, north))
    bbox = (west, south, east, north)
    inward = float(np.nextafter(west, 180))
    for x, y in ((lon, lat), (west, north), (east, south), (inward, lat), (180.0, lat), (-180.0, lat)):
        if in_bbox(*bbox, x, y):
            assert covered(bbox, level, cells.cell_xy(x, y, level))


@settings(max_examples=200, deadline=None)
@given(LONS, LATS, LONS, LATS, st.integers(0, 4))
def test_a_cover_is_the_cells_that_the_box_meets_each_once(
    west: float, south: float, east: float, north: float, level: int
) -> None:
    bbox = (west, south, east, north)
    size = 2**level
    first, last = cells.cell_xy(west, south, level), cells.cell_xy(east, north, level)
    columns = list(range(first[0], last[0] + 1))
    if west > east:
        columns = sorted({*range(first[0], size), *range(last[0] + 1)})
    rows = range(first[1], last[1] + 1) if south <= north else ()
    found = cells_of(bbox, level)
    assert sorted(found) == [(x, y) for x in columns for y in rows]
    assert cells.cover_count(*bbox, level) == len(found)


@pytest.mark.parametrize(
    ("bbox", "level", "count"),
    [
        ((-180, -90, 180, 90), 0, 1),
        ((-180, -90, 180, 90), 3, 64),
        ((-180, -90, 180, 90), 31, 2**62),
        ((170, 0, -170, 0), 3, 2),
        ((170, 0, 169, 0), 3, 8),  # all the way round, and the first column is the last
        ((5, 5, 5, 5), 20, 1),
        ((0, 0, 45, 22.5), 3, 4),  # the far edges belong to the next cells
        ((0, 10, 45, 5), 3, 0),
    ],
)
def test_how_many_cells_a_box_touches(bbox: tuple[float, float, float, float], level: int, count: int) -> None:
    min_lon, min_lat, max_lon, max_lat = bbox
    assert cells.cover_count(float(min_lon), float(min_lat), float(max_lon), float(max_lat), level) == count


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_morton_interleaves_the_bits(x: int, y: int) -> None:
    expected = sum(((x >> i & 1) << 2 * i) | ((y >> i & 1) << (2 * i + 1)) for i in range(32))
    assert int(cells.morton(x, y)) == expected


def test_sorting_by_z_order_visits_quadrant_after_quadrant() -> None:
    rng = np.random.default_rng(5)
    lons, lats = rng.uniform(-180, 180, 2000), rng.uniform(-90, 90, 2000)
    keys = cells.z_order(lons, lats)
    assert keys.dtype == np.uint64
    order = np.argsort(keys)
    for level in (1, 2, 4):
        visited = [cells.cell_xy(lons[i], lats[i], level) for i in order]
        changes = sum(a != b for a, b in pairwise(visited))
        assert changes == len(set(visited)) - 1
