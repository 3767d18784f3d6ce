import warnings

import pytest

from nearcast.common.errors import BadInput
from nearcast.common.geo.containment import contains
from nearcast.common.geo.wkt import parse_polygon

TRIANGLE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("wkt", "rings"),
    [
        ("POLYGON((0 0, 1 0, 1 1, 0 0))", (TRIANGLE,)),
        (" polygon ( ( 0 0 , 1 0,\n1 1, 0 0 ) ) ", (TRIANGLE,)),
        ("POLYGON Z((0 0 5, 1 0 5, 1 1 5, 0 0 5))", (TRIANGLE,)),
        ("POLYGON((0 0 5, 1 0 5, 1 1 nan, 0 0 5))", (TRIANGLE,)),
        ("POLYGON((0 0, 1e0 0, 1 1, 0 0, 0 0))", ((*TRIANGLE, (0.0, 0.0)),)),
        ("POLYGON((-180 -90, 180 -90, 180 90, -180 -90))", (((-180.0, -90.0), (180.0, -90.0), (180.0, 90.0)),)),
        ("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)))", (TRIANGLE,)),
        ("MULTIPOLYGON(EMPTY, ((0 0, 1 0, 1 1, 0 0)))", (TRIANGLE,)),
        (
            "POLYGON((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))",
            (((0.0, 0.0), (9.0, 0.0), (9.0, 9.0)), ((5.0, 1.0), (6.0, 1.0), (6.0, 2.0))),
        ),
        (
            "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
            (TRIANGLE, ((5.0, 5.0), (6.0, 5.0), (6.0, 6.0))),
        ),
        ("POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))", (((0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)),)),
        ("POLYGON((0 0, 1 1, 2 2, 0 0))", (((0.0, 0.0), (1.0, 1.0), (2.0, 2.0)),)),
    ],
)
def test_polygons_that_can_be_read(wkt: str, rings: tuple[tuple[tuple[float, float], ...], ...]) -> None:
    assert parse_polygon(wkt).rings == rings


@pytest.mark.parametrize(
    ("wkt", "message"),
    [
        ("", "not a WKT polygon"),
        ("nonsense", "not a WKT polygon: Unknown type"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0)", "not a WKT polygon"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0)) tail", "not a WKT polygon"),
        ("POLYGON((0 0, 1 0, 1 1))", "end each ring with its first point"),
        ("POINT(1 1)", "must be a POLYGON or MULTIPOLYGON, not POINT"),
        ("LINESTRING(0 0, 1 1)", "not LINESTRING"),
        ("GEOMETRYCOLLECTION(POLYGON((0 0, 1 0, 1 1, 0 0)))", "not GEOMETRYCOLLECTION"),
        ("POLYGON EMPTY", "is empty"),
        ("MULTIPOLYGON EMPTY", "is empty"),
        ("POLYGON((0 0, 1 0, 0 0))", "at least three different points"),
        ("POLYGON((0 0, 1 0, 0 0, 1 0, 0 0))", "at least three different points"),
        ("POLYGON((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 5 1, 5 1))", "at least three different points"),
        ("POLYGON((0 0, 1 0, nan 1, 0 0))", r"\(nan 1\) is no place"),
        ("POLYGON((0 0, 1 0, 1e999 1, 0 0))", r"\(inf 1\) is no place"),
        ("POLYGON((0 0, 1 0, 1 90.5, 0 0))", r"\(1 90.5\) is no place"),
        ("POLYGON((0 0, -181 0, 1 1, 0 0))", r"\(-181 0\) is no place"),
        ("MULTIPOLYGON(((0 0, 2 2, 2 0, 0 2, 0 0)), ((0 0, 3 0, 3 3, 0 0)))", "overlap, and one is not simple"),
    ],
)
def test_what_is_no_polygon_is_refused_in_one_line(wkt: str, message: str) -> None:
    with warnings.catch_warnings(), pytest.raises(BadInput, match=message) as refusal:
        warnings.simplefilter("error")
        parse_polygon(wkt)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("shift", [0, 1, 2, 4])  # one on the other, overlapping, sharing an edge, apart
def test_a_multipolygon_is_the_union_of_its_parts(shift: int) -> None:
    a, b = (f"(({x} 0, {x + 2} 0, {x + 2} 2, {x} 2, {x} 0))" for x in (0, shift))
    both = parse_polygon(f"MULTIPOLYGON({a}, {b})")
    parts = [parse_polygon(f"POLYGON{part}") for part in (a, b)]
    for lon in range(-1, 15):
        for lat in range(-1, 6):
            place = (lon / 2, lat / 2)
            assert contains(both, *place) == any(contains(part, *place) for part in parts)
