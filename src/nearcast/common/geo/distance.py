"""The great-circle distance in plain Python: the definition that the kernel is held to, bit for bit."""

from math import asin, pi, sin, sqrt

EARTH_RADIUS_KM = 6371.0088
RADIANS = pi / 180.0


def haversine_km(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The distance on the sphere between two places in degrees.

    It is 0 between (180, y) and (-180, y), and between any two longitudes at a pole: each is one place.
    """
    turn = abs(lon2 - lon1)
    if turn > 180.0:
        turn = 360.0 - turn
    across = sin((lat2 - lat1) * RADIANS / 2.0)
    along = sin(turn * RADIANS / 2.0)
    shrink = sin((90.0 - abs(lat1)) * RADIANS) * sin((90.0 - abs(lat2)) * RADIANS)  # cos lat1 * cos lat2
    chord = sqrt(across * across + shrink * (along * along))
    return 2.0 * EARTH_RADIUS_KM * asin(min(1.0, chord))
