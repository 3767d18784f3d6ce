"""Regions of the sphere: closed sets of places, given in degrees."""

from dataclasses import dataclass

EVERYWHERE, RECT, CIRCLE, POLYGON = range(4)  # the `region_kind` column of an encoded query


@dataclass(frozen=True)
class Rect:
    """All places between two meridians and two parallels; `min_lon > max_lon` crosses the antimeridian."""

    min_lon: float
    min_lat: float
    max_lon: float
    max_lat: float


@dataclass(frozen=True)
class Circle:
    """All places within a great-circle distance of a point."""

    lon: float
    lat: float
    radius_km: float


@dataclass(frozen=True)
class Polygon:
    """Rings of (lon, lat) whose edges are straight in lon/lat; inside by the even-odd rule, so later rings are holes or
    further parts. The boundary belongs to it."""

    rings: tuple[tuple[tuple[float, float], ...], ...]


Region = Rect | Circle | Polygon
