"""Posts, a block at a time: each block from a generator of its own, so any slice is the same whoever makes it."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nearcast.sources.world.bursts import LARGEST_SHARE, MINUTE, Burst, bursts_between
from nearcast.sources.world.cities import CITIES
from nearcast.sources.world.english import EVENTS
from nearcast.sources.world.geography import geography, move, scatter, wakefulness
from nearcast.sources.world.languages import TOPICS_OF
from nearcast.sources.world.post_texts import texts
from nearcast.sources.world.world_vocabulary import LANGUAGE_CODES, TOPICS, USERS, vocabulary

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BLOCK = 8192
QUARTER = 15 * MINUTE  # how often the share of each place is computed anew
MOTHER_TONGUE = 0.78  # of the posts of a city are in its language, the others in English
FAR_OUT = 0.002  # of the posts come from the country between the places
PRICED = 0.5  # of the posts whose topic has prices

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), ("lat", pa.float64()), ("lon", pa.float64()),
        ("text", pa.string()), ("user", pa.string()), ("lang", pa.string()), ("topic", pa.string()),
        ("likes", pa.int64()), ("price", pa.float64()),
    ]
)  # fmt: skip

_TOPIC_NAMES = [topic.name for topic in TOPICS]  # no Arrow array: making one imports pandas, a second and more
_TOPIC_PRICE = np.array([topic.price for topic in TOPICS])
_CITY_LANGUAGE = np.array([LANGUAGE_CODES.index(city.language) for city in CITIES])


@lru_cache(maxsize=2)
def block(seed: int, start: int, rate: float, words: int, number: int) -> pa.Table:
    """The posts [number * BLOCK, (number + 1) * BLOCK) of a stream: a pure function of its arguments.

    Times are those of a Poisson process, in order; bursts take the place of other posts.
    """
    rng = np.random.default_rng((seed, 0x90575, number))
    map_, lexicon = geography(), vocabulary(words)
    time = _times(rng, start, rate, number)
    bursts = bursts_between(seed, start, int(time[0]), int(time[-1]) + 1)
    event = _events(rng, bursts, time, rate)
    spot = _spots(rng, time)
    topic = _topics(rng, map_.city[map_.place[spot]])
    spread = map_.spread[spot] * np.where(rng.random(BLOCK) < FAR_OUT, 40.0, 1.0)
    lon, lat = map_.lon[spot], map_.lat[spot]
    star = np.zeros(BLOCK, np.int64)
    kinds = [kind.name for kind in EVENTS]
    for index, burst in enumerate(bursts):
        here = np.flatnonzero(event == index)
        spots = map_.spots_of(burst.city)
        spot[here] = spots[(here % 97) % min(6, len(spots))]
        lon[here], lat[here], spread[here] = burst.lon, burst.lat, burst.spread_km
        topic[here] = len(TOPICS) - len(EVENTS) + kinds.index(burst.kind)
        star[here] = burst.star % lexicon.names
    lon, lat = move(lon, lat, *scatter(rng, spread))
    place = map_.place[spot]
    city = map_.city[place]
    language = np.where(rng.random(BLOCK) < MOTHER_TONGUE, _CITY_LANGUAGE[city], 0)
    language = np.where(lexicon.sentences.size[language * len(TOPICS) + topic] > 0, language, 0)
    groups = {
        "phrase": language * len(TOPICS) + topic,
        "topic": topic,
        "place": place,
        "city": city,
        "spot": spot,
        "all": np.zeros(BLOCK, np.int64),
        "event": city * len(EVENTS) + np.maximum(topic - (len(TOPICS) - len(EVENTS)), 0),
        "star": star,
    }
    text = texts(lexicon, rng, groups, language, (event >= 0).astype(np.int64))
    neighbour = np.expm1(rng.random(BLOCK) * np.log(300)).astype(np.int64)
    user = lexicon.first_user + (spot * 97 + neighbour) % USERS
    return pa.table(
        [
            np.arange(number * BLOCK, (number + 1) * BLOCK),
            pa.array(time).cast(pa.timestamp("us", tz="UTC")),
            np.round(lat, 6),
            np.round(lon, 6),
            text,
            lexicon.strings.take(pa.array(user)),
            pa.array(LANGUAGE_CODES).take(pa.array(language)),
            pa.array(_TOPIC_NAMES).take(pa.array(topic)),
            np.minimum(rng.random(BLOCK) ** -0.8 - 1, 1e6).astype(np.int64),
            _prices(rng, topic),
        ],
        schema=SCHEMA,
    )


def _times(rng: np.random.Generator, start: int, rate: float, number: int) -> Integers:
    """Times of a Poisson process that has exactly one block of posts in the block's own stretch of time."""
    offset = (number + np.sort(rng.random(BLOCK))) * (BLOCK / rate * 1e6)
    return start + offset.astype(np.int64)


def _events(rng: np.random.Generator, bursts: list[Burst], time: Integers, rate: float) -> Integers:
    """For each post the burst it belongs to, -1 for none."""
    uniform = rng.random(BLOCK)
    event = np.full(BLOCK, -1, np.int64)
    if not bursts:
        return event
    shares = np.array([burst.per_minute(time) for burst in bursts]) / (rate * 60)
    total = shares.sum(axis=0)
    shares *= np.minimum(1.0, LARGEST_SHARE / np.maximum(total, 1e-12))
    bounds = np.cumsum(shares, axis=0)
    chosen = (uniform >= bounds).sum(axis=0)
    return np.where(chosen < len(bursts), chosen, -1)


def _spots(rng: np.random.Generator, time: Integers) -> Integers:
    """The spot of each post: by weight, and by how awake it is."""
    map_ = geography()
    uniform = rng.random(len(time))
    quarter = time // QUARTER
    cuts = np.flatnonzero(np.diff(quarter)) + 1
    spots = np.empty(len(time), np.int64)
    for begin, end in zip([0, *cuts], [*cuts, len(time)], strict=True):
        bounds = _spot_bounds(int(quarter[begin]))
        spots[begin:end] = np.searchsorted(bounds, uniform[begin:end] * bounds[-1], side="right")
    return np.minimum(spots, len(map_.lon) - 1)


@lru_cache(maxsize=128)
def _spot_bounds(quarter: int) -> Floats:
    map_ = geography()
    bounds: Floats = np.cumsum(map_.weight * wakefulness(map_.lon, quarter * QUARTER + QUARTER // 2))
    return bounds


@lru_cache(maxsize=1)
def _topic_bounds() -> Floats:
    """Cumulated share of each topic in each city: everywhere the same ones, but each city is keen on three."""
    rng = np.random.default_rng(99)
    keen = np.ones((len(CITIES), len(TOPICS)))
    for row in keen:
        row[rng.integers(len(TOPICS) - len(EVENTS), size=3)] = 3.0
    for row, language in zip(keen, _CITY_LANGUAGE, strict=True):
        if language:
            row[[topic.name not in TOPICS_OF[LANGUAGE_CODES[language]] for topic in TOPICS]] *= 0.2
    shares = keen * np.array([topic.share for topic in TOPICS])
    bounds: Floats = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    return bounds


def _topics(rng: np.random.Generator, city: Integers) -> Integers:
    uniform = rng.random(len(city))
    topics: Integers = (uniform[:, None] >= _topic_bounds()[city]).sum(axis=1)
    return np.minimum(topics, len(TOPICS) - len(EVENTS) - 1)


def _prices(rng: np.random.Generator, topic: Integers) -> pa.DoubleArray:
    median = _TOPIC_PRICE[topic]
    price = np.round(median * np.exp(rng.normal(0.0, 0.45, len(topic))), 2)
    missing = (median == 0) | (rng.random(len(topic)) >= PRICED)
    return pa.array(price, mask=missing)
