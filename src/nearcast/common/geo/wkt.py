"""Polygons from well-known text (OGC WKT): POLYGON and MULTIPOLYGON, in lon lat degrees."""

import re

import numpy as np
import shapely

from nearcast.common.errors import BadInput
from nearcast.common.geo.shapes import Polygon

TINY = 1e-100  # degrees


def parse_polygon(wkt: str) -> Polygon:
    """The polygon that a WKT text describes; a third coordinate is dropped, and so is a ring's repeated first point.

    A POLYGON may cross itself: inside is by the even-odd rule. A MULTIPOLYGON is the union of its parts; parts that
    overlap or share an edge are united first, and then none may cross itself.
    """
    try:
        with np.errstate(all="ignore"):  # nan and 1e999 are refused below, in a sentence
            geometry = shapely.from_wkt(wkt)
    except (shapely.errors.ShapelyError, TypeError, ValueError) as error:
        raise BadInput(f"not a WKT polygon: {_one_line(error)}") from None
    if not isinstance(geometry, shapely.Polygon | shapely.MultiPolygon):
        found = geometry.geom_type.upper() if geometry is not None else "nothing"
        raise BadInput(f"a region must be a POLYGON or MULTIPOLYGON, not {found}")
    if geometry.is_empty:
        raise BadInput("the polygon is empty; give it at least three points, as in POLYGON((0 0, 1 0, 1 1, 0 0))")
    rings = _rings(geometry)
    if isinstance(geometry, shapely.MultiPolygon) and not geometry.is_valid:
        rings = _rings(_unite(geometry))
    return Polygon(rings)


def _rings(geometry: shapely.Geometry) -> tuple[tuple[tuple[float, float], ...], ...]:
    """The rings of a polygon or multipolygon, checked, each without its repeated first point."""
    rings = []
    for part in shapely.get_parts(geometry):
        for ring in shapely.get_rings(part):
            vertices = tuple((_rounded(lon), _rounded(lat)) for lon, lat in shapely.get_coordinates(ring)[:-1])
            _check(vertices)
            rings.append(vertices)
    return tuple(rings)


def _rounded(degrees: float) -> float:
    """0 for what is all but 0: on which side of an edge a place lies is told exactly by products, which must not
    underflow.
    """
    return 0.0 if abs(degrees) <= TINY else float(degrees)


def _check(vertices: tuple[tuple[float, float], ...]) -> None:
    for lon, lat in vertices:
        if not (-180.0 <= lon <= 180.0 and -90.0 <= lat <= 90.0):
            raise BadInput(f"({lon:g} {lat:g}) is no place: write lon lat, lon from -180 to 180 and lat from -90 to 90")
    if len(set(vertices)) < 3:
        raise BadInput("a ring of a polygon needs at least three different points")


def _unite(geometry: shapely.MultiPolygon) -> shapely.Geometry:
    parts = [part for part in geometry.geoms if not part.is_empty]
    for part in parts:
        if not part.is_valid:
            reason = shapely.is_valid_reason(part)
            raise BadInput(f"parts of the MULTIPOLYGON overlap, and one is not simple by itself: {reason}")
    return shapely.union_all(parts)


def _one_line(error: Exception) -> str:
    """GEOS's message without the name of its exception, and what to do about the commonest mistake."""
    message = re.sub(r"^\w+Exception: ", "", " ".join(str(error).split()))
    if "closed" in message:
        return f"{message}; end each ring with its first point"
    return message
