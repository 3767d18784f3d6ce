"""Subscriptions a person could have typed: around cities, about topics, in all forms of the language."""

from collections.abc import Callable
from itertools import count as numbers

import numpy as np

from nearcast.sources.world.bursts import Burst
from nearcast.sources.world.cities import CITIES, City

Form = Callable[[City, np.random.Generator], tuple[str, str]]

_ALARMS = {
    "earthquake": "earthquake aftershock terremoto temblor deprem erdbeben séisme gempa 地震 زلزال землетрясение",
    "flood": "flood inundación enchente inondation hochwasser sel banjir 洪水",
    "concert": "concert encore concierto konser konzert",
}


def _select(*conditions: str) -> str:
    return "SELECT * FROM stream WHERE " + " AND ".join(conditions)


def _rect(lon: float, lat: float, half: float) -> str:
    return f"loc INSIDE RECT({lon - half:.2f}, {lat - half:.2f}, {lon + half:.2f}, {lat + half:.2f})"


def _circle(lon: float, lat: float, radius_km: float) -> str:
    return f"loc INSIDE CIRCLE({lon:.2f}, {lat:.2f}, {radius_km:g} km)"


def _diamond(lon: float, lat: float, half: float) -> str:
    corners = [(lon - half, lat), (lon, lat - half), (lon + half, lat), (lon, lat + half), (lon - half, lat)]
    return "loc INSIDE POLYGON('POLYGON((" + ", ".join(f"{x:.2f} {y:.2f}" for x, y in corners) + "))')"


def _flood(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "flood", _select(
        _rect(city.lon, city.lat, 0.4), "text CONTAINS 'flood AND (subway OR tunnel) AND NOT drill'"
    )


def _coffee(city: City, rng: np.random.Generator) -> tuple[str, str]:
    around = _circle(city.lon, city.lat, float(rng.choice([2.5, 5, 10])))
    return "coffee", _select(around, "text OVERLAPS 'coffee cafe espresso'", f"price < {rng.integers(4, 8)}")


def _road(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "road", _select(_rect(city.lon, city.lat, 0.3), "text CONTAINS '\"road closed\" OR (traffic AND accident)'")


def _fire(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "fire", _select(_circle(city.lon, city.lat, 25), "text CONTAINS '(fire OR smoke) AND NOT drill'")


def _pharmacy(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "pharmacy", _select(_circle(city.lon, city.lat, 15), "text CONTAINS 'pharmacy open'") + " FOR 72 HOURS"


def _power(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "power", _select(_diamond(city.lon, city.lat, 0.35), "text CONTAINS '\"power outage\" OR electricity'")


def _jobs(city: City, rng: np.random.Generator) -> tuple[str, str]:
    role = rng.choice(["nurse", "developer", "chef", "driver", "teacher", "engineer"])
    return "jobs", _select(_rect(city.lon, city.lat, 0.5), f"text CONTAINS 'hiring AND {role}'", "topic = 'jobs'")


def _lunch(city: City, rng: np.random.Generator) -> tuple[str, str]:
    dish = rng.choice(["ramen sushi noodles", "pizza pasta", "tacos burger", "curry rice dumplings"])
    return "lunch", _select(_circle(city.lon, city.lat, 8), f"text OVERLAPS '{dish}'", "price BETWEEN 5 AND 15")


def _popular(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "popular", _select(_rect(city.lon, city.lat, 0.3), "likes > 100", "topic IN ('music', 'sports', 'art')")


def _weather(city: City, rng: np.random.Generator) -> tuple[str, str]:
    return "weather", _select(_rect(city.lon, city.lat, 0.5), "text CONTAINS 'storm OR thunder OR (rain AND wind)'")


_FORMS: tuple[Form, ...] = (
    _flood, _coffee, _road, _fire, _pharmacy, _power, _jobs, _lunch, _popular, _weather
)  # fmt: skip


def _watching(burst: Burst) -> list[tuple[str, str]]:
    """Two subscriptions that catch a burst: by its place and what people shout, and by its own tag anywhere."""
    city = CITIES[burst.city]
    near = _circle(burst.lon, burst.lat, max(5.0, 4 * burst.spread_km))
    return [
        (f"{burst.kind}-{city.tag}", _select(near, f"text OVERLAPS '{_ALARMS[burst.kind]}'")),
        (f"tag-{burst.tag}", _select(f"text CONTAINS '{burst.tag}'")),
    ]


def subscriptions(seed: int, bursts: list[Burst], count: int) -> list[tuple[str, str]]:
    """`count` pairs (id, SQL) with distinct ids: two for each burst, then the forms in turn around large cities."""
    rng = np.random.default_rng((seed, 0x5AB))
    found: dict[str, str] = {}
    for burst in bursts[:4]:
        found.update(_watching(burst))
    largest = sorted(CITIES, key=lambda city: -city.activity)
    for number in numbers():
        if len(found) >= count:
            return list(found.items())[:count]
        form = _FORMS[number % len(_FORMS)]
        rank = number if number < 40 else int(len(largest) ** rng.random())
        kind, sql = form(largest[rank % len(largest)], rng)
        id_ = f"{kind}-{largest[rank % len(largest)].tag}"
        found[id_ if id_ not in found else f"{id_}-{number}"] = sql
    raise AssertionError("unreachable")
