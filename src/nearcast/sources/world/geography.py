"""The map: every city as a handful of districts, small towns scattered between them, and their day and night.

A *spot* is what posts gather around: a district or a town. A *place* is a city or a town. Both are the same in every
world. A town speaks the language, and uses the local words, of the city it belongs to.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from nearcast.sources.world.cities import CITIES

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

KM_PER_DEGREE = 6371.0088 * np.pi / 180
TOWNS = 4000
TOWN_SHARE = 0.22  # of all posts

_ACTIVITY_BY_HOUR = np.array(
    [35, 20, 13, 10, 10, 15, 30, 50, 65, 70, 72, 75, 85, 85, 80, 78, 80, 88, 95, 100, 100, 95, 80, 55, 35]
) / 100  # fmt: skip


@dataclass(frozen=True, eq=False)
class Geography:
    """Spots first by city (the most important district first), then one for each town, in the order of the places."""

    lon: Floats
    lat: Floats
    spread: Floats  # km
    weight: Floats  # share of the posts, over a whole day
    place: Integers  # of each spot; places are the cities, then the towns
    district: Integers  # number of the spot within its place
    city: Integers  # of each place; a town's is the one it belongs to

    def spots_of(self, city: int) -> Integers:
        """The districts of a city, the most important first."""
        return np.flatnonzero(self.place == city)


@cache
def geography() -> Geography:
    rng = np.random.default_rng(20260101)
    lon, lat, spread, weight, place, district = [], [], [], [], [], []
    for index, city in enumerate(CITIES):
        count = district_count(index)
        share = 1 / (1 + np.arange(count)) ** 0.75
        reach = 2.2 * (city.people / 1000) ** 0.38
        east, north = scatter(rng, np.full(count, reach), farthest=6.0)
        east[0] = north[0] = 0.0
        moved_lon, moved_lat = move(np.full(count, city.lon), np.full(count, city.lat), east, north)
        lon.append(moved_lon)
        lat.append(moved_lat)
        spread.append(rng.uniform(0.7, 2.0, count))
        weight.append(city.activity * share / share.sum())
        place.append(np.full(count, index))
        district.append(np.arange(count))
    towns = _towns(rng)
    city_weight = np.concatenate(weight)
    return Geography(
        lon=np.concatenate([*lon, towns[0]]),
        lat=np.concatenate([*lat, towns[1]]),
        spread=np.concatenate([*spread, rng.uniform(0.8, 2.5, TOWNS)]),
        weight=np.concatenate([city_weight / city_weight.sum() * (1 - TOWN_SHARE), towns[2] * TOWN_SHARE]),
        place=np.concatenate([*place, len(CITIES) + np.arange(TOWNS)]),
        district=np.concatenate([*district, np.zeros(TOWNS, np.int64)]),
        city=np.concatenate([np.arange(len(CITIES)), towns[3]]),
    )


def district_count(city: int) -> int:
    return int(4 + 6 * (CITIES[city].people / 1000) ** 0.5)


def _towns(rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Integers]:
    """(lon, lat, share, city) of the towns: most of them within 100 km of a city, some far out."""
    activity = np.array([city.activity for city in CITIES]) ** 0.6
    parent = rng.choice(len(CITIES), TOWNS, p=activity / activity.sum())
    distance = np.minimum(18 * rng.random(TOWNS) ** -0.8, 450.0)
    angle = rng.uniform(0, 2 * np.pi, TOWNS)
    lon, lat = move(
        np.array([city.lon for city in CITIES])[parent],
        np.array([city.lat for city in CITIES])[parent],
        distance * np.cos(angle),
        distance * np.sin(angle),
    )
    share = 1 / (10 + rng.permutation(TOWNS)) ** 0.7
    return lon, lat, share / share.sum(), parent


def scatter(rng: np.random.Generator, spread: Floats, farthest: float = 7.0) -> tuple[Floats, Floats]:
    """Offsets (km east, km north) with a heavy tail: P(distance > r) = 1 / (1 + (r / spread)²), cut at `farthest`
    times the spread."""
    nearness = rng.uniform(1 / (1 + farthest**2), 1, len(spread))
    distance = spread * np.sqrt(1 / nearness - 1)
    angle = rng.uniform(0, 2 * np.pi, len(spread))
    return distance * np.cos(angle), distance * np.sin(angle)


def move(lon: Floats, lat: Floats, east: Floats, north: Floats) -> tuple[Floats, Floats]:
    """The places so many km east and north, kept on the globe."""
    moved_lat = np.clip(lat + north / KM_PER_DEGREE, -89.0, 89.0)
    moved_lon = lon + east / (KM_PER_DEGREE * np.cos(np.radians(moved_lat)))
    return (moved_lon + 180.0) % 360.0 - 180.0, moved_lat


def wakefulness(lon: Floats, time: int) -> Floats:
    """How much people post at a longitude at a time (microseconds), by solar hour: 1 in the evening, 0.1 before
    dawn."""
    hour = (time / 3_600_000_000 + lon / 15.0) % 24
    return np.interp(hour, np.arange(25), _ACTIVITY_BY_HOUR)
