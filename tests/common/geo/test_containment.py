import math
from collections.abc import Iterator

import numpy as np
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.common.geo import shapes as model
from nearcast.common.geo.containment import WORLD, contains, decode, encode
from nearcast.common.geo.distance import EARTH_RADIUS_KM
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.kernels import geometry as kernel

LONS = st.one_of(st.floats(-180, 180), st.integers(-18, 18).map(lambda x: x * 10.0))
LATS = st.one_of(st.floats(-90, 90), st.integers(-9, 9).map(lambda y: y * 10.0))
RADII = st.one_of(st.floats(0, 1e-3), st.floats(0, 10), st.floats(0, 21000), st.sampled_from([0.0, 10007.557, 20015.2]))
GRID = st.integers(0, 6).map(lambda v: v / 2)
RINGS = st.lists(st.tuples(GRID, GRID), min_size=3, max_size=7)


def in_kernel(region: Region | None, lon: float, lat: float) -> bool:
    kind, bbox, shape = encode(region)
    padded = np.array([-1.0, *shape, -1.0])  # the shape need not begin at 0
    return bool(kernel.in_region(kind, *bbox, padded, 1, 1 + len(shape), lon, lat))


def in_box_of(region: Region, lon: float, lat: float) -> bool:
    return bool(kernel.in_bbox(*encode(region)[1], lon, lat))


def towards(lon: float, lat: float, bearing: float, km: float) -> tuple[float, float]:
    """The place at a distance and bearing (degrees) from another."""
    angle, phi, theta = km / EARTH_RADIUS_KM, math.radians(lat), math.radians(bearing)
    sine = math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(theta)
    turn = math.atan2(math.sin(theta) * math.sin(angle) * math.cos(phi), math.cos(angle) - math.sin(phi) * sine)
    end_lon = (lon + math.degrees(turn) + 540) % 360 - 180
    return min(max(end_lon, -180.0), 180.0), math.degrees(math.asin(min(max(sine, -1.0), 1.0)))


def test_kinds_are_the_models() -> None:
    names = ("EVERYWHERE", "RECT", "CIRCLE", "POLYGON")
    assert [getattr(kernel, name) for name in names] == [getattr(model, name) for name in names] == [0, 1, 2, 3]


SQUARE = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0))
HOLE = ((1.0, 1.0), (3.0, 1.0), (3.0, 3.0), (1.0, 3.0))
BOW_TIE = ((0.0, 0.0), (4.0, 4.0), (4.0, 0.0), (0.0, 4.0))
PENTAGRAM = ((0.0, 3.0), (6.0, 3.0), (1.0, 0.0), (3.0, 5.0), (5.0, 0.0))


@pytest.mark.parametrize(
    ("region", "inside", "outside"),
    [
        (None, [(0, 0), (180, 90), (-180, -90)], []),
        (Rect(-1, -2, 3, 4), [(-1, -2), (3, 4), (0, 0)], [(-1.0000001, 0), (0, 4.0000001), (180, 0)]),
        (Rect(5, 5, 5, 5), [(5, 5)], [(5, 5.0000000001), (4.9999999999, 5)]),
        (Rect(170, -10, -170, 10), [(170, 0), (-170, 10), (180, 0), (-180, 0)], [(0, 0), (169, 0), (175, 11)]),
        (Rect(-180, -90, 180, 90), [(-180, 90), (180, -90), (0, 0)], []),
        (Rect(170, -10, 180, 10), [(170, 0), (180, 10), (-180, 0)], [(169, 0), (-179.9, 0), (-180, 11)]),
        (Rect(-180, -10, -170, 10), [(-180, 0), (-170, 0), (180, 0)], [(179.9, 0), (-169, 0), (180, 11)]),
        (Rect(180, 0, 180, 1), [(180, 0), (-180, 1)], [(179.9, 0), (-179.9, 0), (0, 0)]),
        (Rect(180, 0, -180, 1), [(180, 0), (-180, 1)], [(179.9, 0), (-179.9, 0), (0, 0)]),
        (Rect(-180, 0, -180, 1), [(180, 0), (-180, 1)], [(179.9, 0), (-179.9, 0), (0, 0)]),
        (Circle(0, 0, 0), [(0, 0)], [(1e-9, 0), (0, -1e-9)]),
        (Circle(180, 5, 0), [(180, 5), (-180, 5)], [(179.999, 5)]),
        (Circle(30, 90, 0), [(30, 90), (-77, 90)], [(30, 89.9999)]),
        (Circle(0, 89.5, 100), [(0, 90), (180, 89.7), (-90, 89.9)], [(180, 89.5), (0, 88)]),
        (Circle(0, -89.5, 100), [(180, -90), (180, -89.7)], [(180, -89.5), (0, 89.5)]),
        (Circle(179.9, 0, 50), [(179.9, 0), (-179.9, 0), (180, 0), (-180, 0)], [(-179, 0), (179, 0)]),
        (Circle(-179.9, 60, 50), [(179.9, 60), (-179.9, 60)], [(178, 60), (-178, 60)]),
        (Circle(10, 10, 20016), [(-170, -10), (0, 90), (0, -90)], []),
        (Circle(10, 10, 15000), [(-170, 80), (10, -90)], [(-170, -10)]),
        (Polygon((SQUARE,)), [(0, 0), (4, 4), (2, 0), (0, 2), (4, 1), (2, 4), (2, 2)], [(-0.1, 2), (2, 4.1), (5, 4)]),
        (Polygon(((*SQUARE, SQUARE[0]),)), [(0, 0), (0, 2), (2, 2)], [(-0.1, 2), (5, 0), (-1, 0)]),
        (Polygon((SQUARE, HOLE)), [(1, 1), (1, 2), (3, 3), (0.5, 2)], [(2, 2), (1.1, 1.1), (5, 2)]),
        (Polygon((BOW_TIE,)), [(2, 2), (0.5, 2), (3.5, 2), (0, 1), (1, 1)], [(2, 1), (2, 3)]),
        (Polygon((PENTAGRAM,)), [(3, 4), (3, 3), (3, 5)], [(3, 2), (3, 1)]),
        (Polygon((((0.0, 0.0), (1.0, 1.0), (2.0, 2.0)),)), [(0, 0), (1.5, 1.5), (2, 2)], [(1, 0), (1, 1.5), (3, 3)]),
        (Polygon((((0.1, 0.1), (0.7, 0.4), (0.7, 0.1)),)), [(0.7, 0.3), (0.1, 0.1)], [(0.1, 0.4), (0.3, 0.3)]),
    ],
)
def test_what_regions_contain(
    region: Region | None, inside: list[tuple[float, float]], outside: list[tuple[float, float]]
) -> None:
    for expected, places in ((True, inside), (False, outside)):
        for lon, lat in places:
            assert contains(region, lon, lat) is expected, (lon, lat)
            assert in_kernel(region, float(lon), float(lat)) is expected, (lon, lat)


@pytest.mark.parametrize(
    "region",
    [
        None,
        Rect(170.0, -10.0, -170.0, 10.0),
        Circle(179.9, 10.0, 50.0),
        Circle(0.0, 90.0, 0.0),
        Polygon((SQUARE, HOLE)),
        Polygon((PENTAGRAM,)),
    ],
)
def test_a_region_survives_encoding(region: Region | None) -> None:
    assert decode(*encode(region)) == region


def test_encoded_forms() -> None:
    assert encode(None) == (0, WORLD, [])
    assert encode(Rect(1, 2, 3, 4)) == (1, (1.0, 2.0, 3.0, 4.0), [])
    triangle = ((0.0, 1.0), (2.0, 3.0), (4.0, -5.0))
    assert encode(Polygon((triangle,))) == (3, (0.0, -5.0, 4.0, 3.0), [3.0, 0.0, 1.0, 2.0, 3.0, 4.0, -5.0])
    with pytest.raises(BadInput, match="at least one ring"):
        encode(Polygon(()))


@settings(max_examples=200, deadline=None)
@given(LONS, LATS, LONS, LATS, LONS, LATS)
def test_kernel_and_definition_agree_on_rectangles(
    west: float, south: float, east: float, north: float, lon: float, lat: float
) -> None:
    rect = Rect(west, south, east, north)
    for place in ((lon, lat), (west, lat), (east, south), (180.0, north), (-180.0, lat)):
        assert in_kernel(rect, *place) == contains(rect, *place)


@settings(max_examples=400, deadline=None)
@given(LONS, LATS, RADII, st.floats(0, 360), st.floats(0, 1))
@example(0.0, 0.0, math.pi / 2 * EARTH_RADIUS_KM, 90.0, 1.0)
@example(0.0, 0.0, math.pi / 2 * EARTH_RADIUS_KM - 1e-6, 90.0, 1.0)
@example(180.0, 89.999999, 0.1, 45.0, 1.0)
@example(-180.0, -90.0, 1.0, 90.0, 0.5)
@example(12.0, 90.0 - 1.0 / 111.19508023353292, 1.0, 0.0, 1.0)
def test_the_box_of_a_circle_holds_every_place_in_it(
    lon: float, lat: float, radius: float, bearing: float, share: float
) -> None:
    circle = Circle(lon, lat, radius)
    min_lon, min_lat, max_lon, max_lat = encode(circle)[1]
    assert -90 <= min_lat <= max_lat <= 90 and -180 <= min_lon <= 180 and -180 <= max_lon <= 180
    assert in_box_of(circle, lon, lat)
    places = [towards(lon, lat, b, radius * s) for b in (bearing, 0, 90, 180, 270) for s in (share, 1 - 1e-15, 1)]
    places += [(-x, y) for x, y in places if abs(x) == 180.0]
    places += [(0.0, y) for y in (-90.0, 90.0)] + [(-lon, lat), (lon, -lat)]
    # Where meridians touch the circle the box is tightest; steps around that place find rounding trouble.
    angle = radius / EARTH_RADIUS_KM
    if abs(math.radians(lat)) + angle < math.pi / 2:
        touch_lat = math.degrees(math.asin(math.sin(math.radians(lat)) / math.cos(angle)))
        half = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(lat)))))
        for step in (-1e-8, -1e-11, -1e-13, 0.0, 1e-13, 1e-11, 1e-8):
            for edge in (lon - half - step, lon + half + step):
                places.append((edge + 360 if edge < -180 else edge - 360 if edge > 180 else edge, touch_lat))
    for place in places:
        within = contains(circle, *place)
        assert in_kernel(circle, *place) == within
        assert in_box_of(circle, *place) or not within, place


@pytest.mark.parametrize(
    ("circle", "bbox"),
    [
        (Circle(0, 0, 111.19508023353292), (-1, -1, 1, 1)),
        (Circle(0, 60, 111.19508023353292), (-2.0003, 59, 2.0003, 61)),
        (Circle(179.5, 0, 111.19508023353292), (178.5, -1, -179.5, 1)),
        (Circle(-179.5, 0, 111.19508023353292), (179.5, -1, -178.5, 1)),
        (Circle(179, 0, 111.19508023353292), (178, -1, -180, 1)),
        (Circle(77, 89.5, 111.19508023353292), (-180, 88.5, 180, 90)),
        (Circle(77, -89.5, 111.19508023353292), (-180, -90, 180, -88.5)),
        (Circle(5, 5, 0), (5, 5, 5, 5)),
        (Circle(5, 45, 10010), WORLD),
    ],
)
def test_the_box_of_a_circle_is_tight(circle: Circle, bbox: tuple[float, ...]) -> None:
    assert encode(circle)[1] == pytest.approx(bbox, abs=1e-4 if circle.lat == 60 else 1e-8)


@settings(max_examples=150, deadline=None)
@given(st.lists(RINGS, min_size=1, max_size=3), st.lists(st.tuples(GRID, GRID), min_size=1, max_size=8))
def test_kernel_and_definition_agree_on_rings_of_any_kind(
    rings: list[list[tuple[float, float]]], places: list[tuple[float, float]]
) -> None:
    """Crossing, overlapping, degenerate rings; coordinates scaled so that rounding is met as well."""
    for scale, shift in ((1.0, 0.0), (0.1, 0.3), (1 / 7, -11.7)):
        polygon = Polygon(tuple(tuple((x * scale + shift, y * scale - shift) for x, y in ring) for ring in rings))
        for x, y in places:
            lon, lat = x * scale + shift, y * scale - shift
            assert in_kernel(polygon, lon, lat) == contains(polygon, lon, lat)


def test_a_place_a_hair_off_a_slanted_edge_is_told_apart() -> None:
    triangle = Polygon((((0.1, 0.1), (0.7, 0.4), (0.7, 0.1)),))
    x = 0.4
    y = 0.25
    verdicts = []
    for _ in range(8):
        y = math.nextafter(y, 0)
    for _ in range(16):
        verdicts.append(contains(triangle, x, y))
        assert in_kernel(triangle, x, y) == verdicts[-1]
        y = math.nextafter(y, 1)
    assert verdicts == sorted(verdicts, reverse=True) and set(verdicts) == {True, False}


def random_shapes(rng: np.random.Generator, grid: float | None) -> Iterator[shapely.MultiPolygon]:
    """Valid stars, convex shapes with bites and holes, and unions, with coordinates on a grid if one is given."""
    for _ in range(60):
        vertices = rng.uniform(-8, 8, (rng.integers(3, 12), 2))
        hull = shapely.convex_hull(shapely.multipoints(vertices))
        star = shapely.Polygon(sorted(vertices.tolist(), key=lambda v: math.atan2(v[1], v[0]))).buffer(0)
        other = shapely.Polygon(rng.uniform(-8, 8, (3, 2)))
        for shape in (star, shapely.difference(hull, other), shapely.union(star, other)):
            snapped = shape if grid is None else shapely.set_precision(shape, grid)
            if not snapped.is_empty:
                yield shapely.MultiPolygon(shapely.get_parts(snapped).tolist())


@pytest.mark.parametrize("grid", [None, 1.0, 0.25])
def test_polygons_are_shapelys(grid: float | None) -> None:
    rng = np.random.default_rng(7)
    checked_inside = checked_on_edge = 0
    for shape in random_shapes(rng, grid):
        rings = shapely.get_rings(shapely.get_parts(shape))
        polygon = Polygon(tuple(tuple(map(tuple, shapely.get_coordinates(ring).tolist())) for ring in rings))
        places = rng.uniform(-9, 9, (200, 2))
        if grid is not None:
            places = np.round(places / grid) * grid
        places = np.concatenate([places, shapely.get_coordinates(shape)])
        expected = shapely.covers(shape, shapely.points(places))
        kind, bbox, flat = encode(polygon)
        lons, lats = np.ascontiguousarray(places.T)
        assert (kernel.in_region_many(kind, *bbox, np.array(flat), lons, lats) == expected).all()
        assert [contains(polygon, *place) for place in places[-20:].tolist()] == expected[-20:].tolist()
        checked_inside += int(expected.sum())
        checked_on_edge += int(shapely.intersects(shape.boundary, shapely.points(places)).sum())
    assert checked_inside > 1000 and checked_on_edge > 200


@pytest.mark.parametrize("region", [None, Rect(170, -50, -20, 80), Circle(-175, 70, 3000), Polygon((SQUARE, HOLE))])
def test_many_places_at_once_are_each_place_alone(region: Region | None) -> None:
    rng = np.random.default_rng(3)
    lons = np.concatenate([rng.uniform(-180, 180, 300), rng.uniform(-1, 5, 300)])
    lats = np.concatenate([rng.uniform(-90, 90, 300), rng.uniform(-1, 5, 300)])
    kind, bbox, shape = encode(region)
    together = kernel.in_region_many(kind, *bbox, np.array(shape), lons, lats)
    assert together.tolist() == [contains(region, lon, lat) for lon, lat in zip(lons, lats, strict=True)]
    assert together.any()
