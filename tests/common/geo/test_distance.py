import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.common.geo import distance
from nearcast.common.kernels import geometry as kernel

LONS = st.one_of(st.floats(-180, 180), st.integers(-180, 180).map(float))
LATS = st.one_of(st.floats(-90, 90), st.integers(-90, 90).map(float))
HALF_WAY_ROUND = math.pi * distance.EARTH_RADIUS_KM


def by_vectors(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The angle between two vectors, by its sine and cosine: another road to the same distance, good everywhere."""

    def vector(lon: float, lat: float) -> tuple[float, float, float]:
        lam, phi = math.radians(lon), math.radians(lat)
        return math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)

    (a, b, c), (d, e, f) = vector(lon1, lat1), vector(lon2, lat2)
    cross = math.hypot(b * f - c * e, c * d - a * f, a * e - b * d)
    return distance.EARTH_RADIUS_KM * math.atan2(cross, a * d + b * e + c * f)


@pytest.mark.parametrize(
    ("lon1", "lat1", "lon2", "lat2", "km"),
    [
        (0, 0, 0, 0, 0),
        (180, 10, -180, 10, 0),
        (0, 90, 123, 90, 0),
        (-7, -90, 60, -90, 0),
        (0, 0, 1, 0, 111.19508023353292),
        (0, -90, 0, 90, HALF_WAY_ROUND),
        (0, 0, 180, 0, HALF_WAY_ROUND),
        (12.5, 41.9, -167.5, -41.9, HALF_WAY_ROUND),
        (179.5, 0, -179.5, 0, 111.19508023353292),
        (-0.1278, 51.5074, 2.3522, 48.8566, 343.55653488090906),
    ],
)
def test_known_distances(lon1: float, lat1: float, lon2: float, lat2: float, km: float) -> None:
    assert kernel.haversine_km(float(lon1), float(lat1), float(lon2), float(lat2)) == pytest.approx(km, rel=1e-12)


@settings(max_examples=300, deadline=None)
@given(LONS, LATS, LONS, LATS)
@example(0.0, 0.0, 180.0, 1e-9)
@example(10.0, 20.0, -170.0, -20.0)
def test_the_distance_is_that_of_vectors_and_the_kernel_agrees_to_the_last_bit(
    lon1: float, lat1: float, lon2: float, lat2: float
) -> None:
    km = distance.haversine_km(lon1, lat1, lon2, lat2)
    assert km == kernel.haversine_km(lon1, lat1, lon2, lat2)
    assert km == kernel.haversine_km(lon2, lat2, lon1, lat1)
    assert km <= HALF_WAY_ROUND
    near_antipodes = km > 0.999 * HALF_WAY_ROUND  # there a haversine is good to a few decimetres
    assert km == pytest.approx(by_vectors(lon1, lat1, lon2, lat2), rel=1e-12, abs=5e-4 if near_antipodes else 1e-10)


def test_kernel_and_definition_use_the_same_earth() -> None:
    assert distance.EARTH_RADIUS_KM == kernel.EARTH_RADIUS_KM == 6371.0088
