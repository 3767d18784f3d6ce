"""Regions in the flat form of an encoded query, and `contains`, which says what each of them means."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import atan2, cos, degrees, pi, radians, sin, sqrt

from nearcast.common.errors import BadInput
from nearcast.common.geo.distance import EARTH_RADIUS_KM, haversine_km
from nearcast.common.geo.shapes import CIRCLE, EVERYWHERE, POLYGON, RECT, Circle, Polygon, Rect, Region

Bbox = tuple[float, float, float, float]  # min_lon, min_lat, max_lon, max_lat; min_lon > max_lon crosses lon 180
Point = tuple[float, float]

WORLD: Bbox = (-180.0, -90.0, 180.0, 90.0)

_SLACK = 1e-11  # radians (0.06 mm): far above the rounding of a distance, far below any use of one


def encode(region: Region | None) -> tuple[int, Bbox, list[float]]:
    """The kind, bounding box and shape of a region, as `common.op_schema` describes them; None is everywhere."""
    match region:
        case None:
            return EVERYWHERE, WORLD, []
        case Rect(min_lon, min_lat, max_lon, max_lat):
            west, east = on_both_sides(float(min_lon), float(max_lon))
            return RECT, (west, float(min_lat), east, float(max_lat)), []
        case Circle(lon, lat, radius_km):
            return CIRCLE, _bbox_of_circle(region), [float(lon), float(lat), float(radius_km)]
        case Polygon(rings):
            shape: list[float] = []
            for ring in rings:
                shape.append(float(len(ring)))
                shape.extend(float(value) for vertex in ring for value in vertex)
            return POLYGON, _bbox_of_polygon(region), shape


def on_both_sides(west: float, east: float) -> tuple[float, float]:
    """The same meridians, written so that a box that ends at lon 180 has the places at lon -180, which are the same."""
    if (west, east) == (-180.0, 180.0):
        return west, east
    return 180.0 if west == -180.0 else west, -180.0 if east == 180.0 else east


def decode(kind: int, bbox: Sequence[float], shape: Sequence[float]) -> Region | None:
    """The region that `encode` made this of, or another spelling of it."""
    if kind == EVERYWHERE:
        return None
    if kind == RECT:
        min_lon, min_lat, max_lon, max_lat = map(float, bbox)
        return Rect(min_lon, min_lat, max_lon, max_lat)
    if kind == CIRCLE:
        lon, lat, radius_km = map(float, shape)
        return Circle(lon, lat, radius_km)
    if kind == POLYGON:
        return Polygon(tuple(_rings(shape)))
    raise ValueError(f"no region has the kind {kind}")


def contains(region: Region | None, lon: float, lat: float) -> bool:
    """Whether a place is in a region: the definition that every kernel and index is held to."""
    match region:
        case None:
            return True
        case Rect(min_lon, min_lat, max_lon, max_lat):
            at_180 = abs(lon) == 180.0 and 180.0 in (abs(min_lon), abs(max_lon))
            between = min_lon <= lon <= max_lon if min_lon <= max_lon else lon >= min_lon or lon <= max_lon
            return (between or at_180) and min_lat <= lat <= max_lat
        case Circle():
            return haversine_km(region.lon, region.lat, lon, lat) <= region.radius_km
        case Polygon():
            return _in_polygon(region, lon, lat)


def _in_polygon(polygon: Polygon, lon: float, lat: float) -> bool:
    """On an edge, or such that a ray to the east crosses an odd number of edges; in exact arithmetic."""
    crossings = 0
    for (x1, y1), (x2, y2) in _edges(polygon):
        if not min(y1, y2) <= lat <= max(y1, y2) or lon > max(x1, x2):
            continue
        crosses = (y1 > lat) != (y2 > lat)  # an edge has its lower end and not its upper
        if lon >= min(x1, x2):
            side = _side_of_line((x1, y1), (x2, y2), (lon, lat))
            if side == 0:
                return True
            crosses = crosses and (side > 0) == (y2 > y1)
        crossings += crosses
    return crossings % 2 == 1


def _side_of_line(start: Point, end: Point, place: Point) -> Fraction:
    """Above 0 left of the line from start to end, below 0 right of it, 0 on it."""
    (x1, y1), (x2, y2), (x, y) = ([Fraction(value) for value in point] for point in (start, end, place))
    return (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)


def _edges(polygon: Polygon) -> Iterator[tuple[Point, Point]]:
    for ring in polygon.rings:
        yield from zip(ring, ring[1:] + ring[:1], strict=True)


def _rings(shape: Sequence[float]) -> Iterator[tuple[Point, ...]]:
    start = 0
    while start < len(shape):
        end = start + 1 + 2 * int(shape[start])
        values = [float(value) for value in shape[start + 1 : end]]
        yield tuple(zip(values[::2], values[1::2], strict=True))
        start = end


def _bbox_of_polygon(polygon: Polygon) -> Bbox:
    vertices = [vertex for ring in polygon.rings for vertex in ring]
    if not vertices:
        raise BadInput("a polygon needs at least one ring of three points")
    lons, lats = zip(*vertices, strict=True)
    return float(min(lons)), float(min(lats)), float(max(lons)), float(max(lats))


def _bbox_of_circle(circle: Circle) -> Bbox:
    """A box that holds every place within the radius, however its distance is rounded.

    Where the circle reaches a pole the box has all longitudes; where it reaches the antimeridian the box crosses it,
    because lon 180 and -180 are one place.
    """
    angle = circle.radius_km / EARTH_RADIUS_KM + _SLACK
    if angle >= pi / 2:
        return WORLD
    lon, lat, middle = float(circle.lon), float(circle.lat), radians(circle.lat)
    south, north = lat - degrees(angle), lat + degrees(angle)
    if south <= -90.0 or north >= 90.0:
        return -180.0, max(south, -90.0), 180.0, min(north, 90.0)
    # The meridians that touch the circle: sin(half) = sin(angle) / cos(lat), in a form that stays exact near a pole.
    half = degrees(atan2(sin(angle), sqrt(cos(middle + angle) * cos(middle - angle))))
    west, east = lon - half, lon + half
    if west <= -180.0:
        west += 360.0
    if east >= 180.0:
        east -= 360.0
    return west, south, east, north
