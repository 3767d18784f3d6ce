"""Bursts: something happens at one place, and within two minutes hundreds of posts a minute are about it.

Every `PERIOD` of stream time one begins, where and when decided by the seed; the first within the first two minutes, so
that a demo shows one.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nearcast.sources.world.cities import CITIES
from nearcast.sources.world.english import EVENTS

SECOND = 1_000_000  # microseconds
MINUTE = 60 * SECOND
PERIOD = 15 * MINUTE
LONGEST = 120 * MINUTE
LARGEST_SHARE = 0.5  # of a stream, however slow, that bursts may take over

EVENT_SUFFIX = {"earthquake": "quake", "flood": "flood", "concert": "live"}
_SPREAD_KM = {"earthquake": 12.0, "flood": 4.0, "concert": 0.5}


@dataclass(frozen=True)
class Burst:
    """An event: nothing before `begin`, `peak` posts a minute after `rise`, then fewer by half every `half_life`.

    Times in microseconds. `city` is an index into CITIES; `tag` is a word that only its posts have.
    """

    kind: str
    city: int
    lon: float
    lat: float
    spread_km: float
    begin: int
    rise: int
    peak: float
    half_life: int
    star: int  # the name of whoever is on stage, an index into the vocabulary's names

    @property
    def end(self) -> int:
        return self.begin + LONGEST

    @property
    def tag(self) -> str:
        return CITIES[self.city].tag + EVENT_SUFFIX[self.kind]

    def per_minute(self, time: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """How many posts a minute it draws at each time."""
        age = (time - self.begin).astype(np.float64)
        rising = np.clip(age / self.rise, 0.0, 1.0)
        fading = np.exp2(-np.maximum(age - self.rise, 0.0) / self.half_life)
        return np.where((age >= 0) & (time < self.end), self.peak * rising * fading, 0.0)


@lru_cache(maxsize=4096)
def burst(seed: int, start: int, number: int) -> Burst:
    """The burst with this number, 0 the first, of a stream that begins at `start`."""
    rng = np.random.default_rng((seed, 0xB0257, number))
    activity = np.array([city.activity for city in CITIES])
    city = int(rng.choice(len(CITIES), p=activity / activity.sum()))
    kind = EVENTS[0].name if number == 0 else EVENTS[int(rng.integers(len(EVENTS)))].name
    offset = rng.uniform(20, 60) * SECOND if number == 0 else (number + rng.uniform(0, 0.9)) * PERIOD
    east, north = rng.normal(0.0, 0.03, 2)
    return Burst(
        kind=kind,
        city=city,
        lon=round(CITIES[city].lon + float(east), 4),
        lat=round(CITIES[city].lat + float(north), 4),
        spread_km=_SPREAD_KM[kind],
        begin=start + int(offset),
        rise=int(rng.uniform(60, 110) * SECOND),
        peak=float(rng.uniform(500, 1200)),
        half_life=int(rng.uniform(6, 15) * MINUTE),
        star=int(rng.integers(20, 400)),
    )


def bursts_between(seed: int, start: int, begin: int, end: int) -> list[Burst]:
    """The bursts that draw posts at some time in [begin, end), in order of their beginning."""
    first = max(0, (begin - start - LONGEST) // PERIOD - 1)
    last = max(0, (end - start) // PERIOD + 1)
    known = (burst(seed, start, number) for number in range(int(first), int(last) + 1))
    return [one for one in known if one.begin < end and one.end > begin]
