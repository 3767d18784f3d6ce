"""Places as a query writes them: RECT(…), CIRCLE(…), POLYGON('…'), the name of a region, or a POINT(…)."""

from collections.abc import Mapping
from math import isfinite

from nearcast.common.errors import BadInput
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.geo.wkt import parse_polygon
from nearcast.language.messages import Span, nearest, pointed, shown
from nearcast.language.syntax import Argument, Call, Name, Number, Operand, Quantity, String, read_region, span_of

_SHAPES = {
    "RECT": "RECT(min_lon, min_lat, max_lon, max_lat)",
    "CIRCLE": "CIRCLE(lon, lat, radius km) or with m",
    "POLYGON": "POLYGON('POLYGON((lon lat, …))')",
}
_POINT = "POINT(lon, lat)"
_ADDS = 'nearcast region add NAME "RECT(…)" gives a region a name'
_KM = {"km": 1.0, "m": 0.001}


def parse_region(text: str, regions: Mapping[str, Region] | None = None) -> Region:
    """The region that `text` is; QueryError, pointing at the word, where it is none."""
    return region_of(text, read_region(text), regions or {})


def named(name: str) -> None:
    """Raises BadInput where `name` cannot be the name of a region."""
    if not name.strip() or "`" in name or not name.isprintable():
        raise BadInput(f"{shown(name)!r} is no name for a region: give it letters, such as downtown")
    if name.upper() in _SHAPES:
        raise BadInput(f"{name} is a shape, and cannot be a region's name as well")


def region_of(sql: str, node: Operand, regions: Mapping[str, Region]) -> Region:
    """What a region's node means, with the names of `regions`."""
    if isinstance(node, Name):
        if node.text in regions:
            return regions[node.text]
        raise _unknown(sql, node, regions, f" ({_ADDS})")
    shape, arguments = node.name.text.upper(), node.arguments
    if shape not in _SHAPES:
        raise _unknown(sql, node.name, regions)
    if len(arguments) != {"RECT": 4, "CIRCLE": 3, "POLYGON": 1}[shape]:
        raise pointed(sql, node.name.span, f"{shape} has {len(arguments)} of its values", _SHAPES[shape])
    match shape:
        case "RECT":
            return _rect(sql, arguments)
        case "CIRCLE":
            lon, lat = _degrees(sql, arguments[0], "longitude"), _degrees(sql, arguments[1], "latitude")
            return Circle(lon, lat, kilometres(sql, arguments[2], "radius"))
        case _:
            return _polygon(sql, arguments[0])


def point_of(sql: str, node: Argument) -> tuple[float, float]:
    """The lon and lat of `POINT(lon, lat)`."""
    if not isinstance(node, Call) or node.name.text.upper() != "POINT":
        word = node.name.text if isinstance(node, Call) else node.text if isinstance(node, Name) else ""
        raise pointed(sql, span_of(node), "this is no point", _POINT, nearest(word, ["POINT"]) if word else "")
    if len(node.arguments) != 2:
        raise pointed(sql, node.name.span, f"POINT has {len(node.arguments)} of its values", _POINT)
    return _degrees(sql, node.arguments[0], "longitude"), _degrees(sql, node.arguments[1], "latitude")


def _unknown(sql: str, name: Name, regions: Mapping[str, Region], hint: str = "") -> BadInput:
    message, expected = f"there is no region {shown(name.text)}", "RECT, CIRCLE, POLYGON or a region's name"
    return pointed(sql, name.span, message, expected + hint, nearest(name.text, [*_SHAPES, *regions]))


def _rect(sql: str, arguments: tuple[Argument, ...]) -> Rect:
    min_lon, min_lat, max_lon, max_lat = (
        _degrees(sql, argument, kind) for argument, kind in zip(arguments, ("longitude", "latitude") * 2, strict=True)
    )
    if min_lat > max_lat:
        message = "RECT's second latitude is below its first"
        raise pointed(sql, span_of(arguments[3]), message, f"{_SHAPES['RECT']} with min_lat <= max_lat")
    return Rect(min_lon, min_lat, max_lon, max_lat)


def _degrees(sql: str, argument: Argument, kind: str) -> float:
    if not isinstance(argument, Number):
        raise pointed(sql, span_of(argument), f"a {kind} is a plain number of degrees", "a number")
    bound = 180 if kind == "longitude" else 90
    if not -bound <= argument.value <= bound:
        swapped = " (longitude comes first)" if kind == "latitude" and abs(argument.value) <= 180 else ""
        raise pointed(sql, argument.span, f"no such {kind}", f"a number from -{bound} to {bound}{swapped}")
    return argument.value


def kilometres(sql: str, argument: Argument, what: str) -> float:
    """A length on the ground in km, not negative: `what` says whose."""
    if isinstance(argument, Number):
        end = argument.span.end
        raise pointed(sql, Span(end, end + 1), f"the {what} has no unit", "km or m")
    if not isinstance(argument, Quantity):
        raise pointed(sql, span_of(argument), f"this is no {what}", "a number and km or m")
    number, unit = argument.number, argument.unit
    if unit.text.lower() not in _KM:
        message = f"a {what} is in km or m, not in {shown(unit.text)}"
        raise pointed(sql, unit.span, message, "km or m", nearest(unit.text, _KM))
    if number.value < 0 or not isfinite(number.value):
        raise pointed(sql, number.span, f"no such {what}", "a number from 0 up")
    return number.value * _KM[unit.text.lower()]


def _polygon(sql: str, argument: Argument) -> Polygon:
    if not isinstance(argument, String):
        raise pointed(sql, span_of(argument), "a polygon is given as WKT in quotes", _SHAPES["POLYGON"])
    try:
        return parse_polygon(argument.text)
    except BadInput as problem:
        raise pointed(sql, argument.span, str(problem)) from None
