"""The stream of a World: the same however it is cut, and as uneven as the world."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.language import check_subscription, parse
from nearcast.sources.world import SCHEMA, World
from nearcast.sources.world.cities import CITIES
from nearcast.sources.world.post_generator import BLOCK
from nearcast_papers.query_sets.post_sample import split_words

MINUTE = 60_000_000


@pytest.fixture(scope="module")
def world() -> World:
    return World(rate=500)


@pytest.fixture(scope="module")
def posts(world: World) -> pa.Table:
    """Ten minutes of it."""
    return world.posts(0, 300_000)


def micros(posts: pa.Table) -> np.ndarray:
    return posts["ts"].cast(pa.int64()).to_numpy()


@given(st.integers(0, 5 * BLOCK), st.integers(0, 2 * BLOCK), st.integers(0, 1000), st.integers(0, 1000))
@settings(max_examples=15)
def test_any_slice_equals_the_same_slice_of_a_larger_one(first: int, count: int, before: int, after: int) -> None:
    world = World(seed=7)
    begin = max(0, first - before)
    larger = world.posts(begin, first - begin + count + after)
    assert world.posts(first, count).equals(larger.slice(first - begin, count))


def test_equal_worlds_have_equal_posts_and_other_seeds_have_others() -> None:
    assert World(seed=3).posts(0, 100).equals(World(seed=3).posts(0, 100))
    assert not World(seed=3).posts(0, 100)["text"].equals(World(seed=4).posts(0, 100)["text"])


def test_posts_have_all_columns_ids_in_order_and_places_on_the_globe(posts: pa.Table) -> None:
    assert posts.schema.equals(SCHEMA)
    assert posts["id"].to_numpy().tolist() == list(range(300_000))
    assert pc.all(pc.and_(pc.greater_equal(posts["lat"], -90), pc.less_equal(posts["lat"], 90))).as_py()
    assert pc.all(pc.and_(pc.greater_equal(posts["lon"], -180), pc.less_equal(posts["lon"], 180))).as_py()
    assert [name for name in posts.column_names if posts[name].null_count] == ["price"]
    assert pc.min(pc.utf8_length(posts["text"])).as_py() > 0


def test_times_go_up_at_the_rate(world: World, posts: pa.Table) -> None:
    times = micros(posts)
    assert (np.diff(times) >= 0).all()
    assert times[0] >= world.start
    per_second = np.bincount((times - world.start) // 1_000_000)[:599]
    assert per_second.mean() == pytest.approx(500, rel=0.02)
    assert per_second.std() > 10  # arrivals are random, not a comb


def test_forty_percent_of_the_posts_lie_in_the_densest_hundredth_of_the_cells(posts: pa.Table) -> None:
    cells = np.floor(posts["lat"].to_numpy() * 10) * 10_000 + np.floor(posts["lon"].to_numpy() * 10)
    counts = np.sort(np.unique(cells, return_counts=True)[1])[::-1]
    assert 0.35 <= counts[: len(counts) // 100].sum() / len(cells) <= 0.5


def test_words_follow_zipf_and_texts_have_about_ten(posts: pa.Table) -> None:
    words = split_words(posts["text"]).flatten()
    assert 8 <= len(words) / len(posts) <= 12
    counts = np.sort(words.value_counts().field("counts").to_numpy())[::-1]
    assert 30_000 < len(counts) < 60_000
    ranks = np.unique(np.geomspace(10, 5000, 200).astype(int))
    slope = -np.polyfit(np.log(ranks), np.log(counts[ranks - 1]), 1)[0]
    assert 1.0 <= slope <= 1.2


def test_texts_have_hashtags_mentions_emoji_and_links_now_and_then(posts: pa.Table) -> None:
    for sign in (r"#\w", r"@\w", r"https://", r"\p{So}"):
        share = pc.mean(pc.match_substring_regex(posts["text"], sign).cast(pa.float64())).as_py()
        assert 0.01 < share < 0.4, sign


def test_people_write_in_the_language_of_their_city(posts: pa.Table) -> None:
    def languages(city: str, reach: float) -> dict[str, int]:
        where = next(one for one in CITIES if one.name == city)
        near = np.hypot(posts["lon"].to_numpy() - where.lon, posts["lat"].to_numpy() - where.lat) < reach
        counts = posts["lang"].filter(pa.array(near)).value_counts()
        return {entry["values"]: entry["counts"] for entry in counts.to_pylist()}

    for city, language in (("Tokyo", "ja"), ("Mexico City", "es"), ("Sao Paulo", "pt"), ("London", "en")):
        found = languages(city, 0.3)
        assert max(found, key=lambda code: found[code]) == language, city


def test_places_have_words_of_their_own(posts: pa.Table) -> None:
    """The name of a city is found mostly around it."""
    for city in (city for city in CITIES if city.name in ("London", "Chicago", "Paris")):
        named = posts.filter(pc.match_substring(posts["text"], city.name))
        near = np.hypot(named["lon"].to_numpy() - city.lon, named["lat"].to_numpy() - city.lat) < 2
        assert len(named) > 50 and near.mean() > 0.9, city.name


def test_a_city_posts_less_at_night() -> None:
    """London at 4 in the morning and at 8 in the evening, by the same number of posts of the whole world."""
    world = World(rate=10)
    share = {}
    for hour in (4, 20):
        posts = world.posts(hour * 36_000, 20_000)
        share[hour] = (np.hypot(posts["lon"].to_numpy() + 0.12, posts["lat"].to_numpy() - 51.51) < 0.5).mean()
    assert share[4] < share[20] / 3


@pytest.mark.parametrize("seed", range(5))
def test_the_first_burst_goes_from_nothing_to_hundreds_a_minute_in_two_minutes(seed: int) -> None:
    world = World(seed=seed, rate=500)
    burst = world.bursts()[0]
    assert world.start <= burst.begin < world.start + 2 * MINUTE
    posts = world.posts(0, 500 * 60 * 6)
    about = pc.equal(posts["topic"], burst.kind).to_numpy()
    minute = (micros(posts)[about] - burst.begin) // (MINUTE // 2)  # half minutes
    assert minute.min() >= 0
    counts = np.bincount(minute)
    assert counts[4:6].sum() > 200  # a minute, from two minutes on
    assert counts[0] < counts[3]
    near = np.hypot(posts["lon"].to_numpy() - burst.lon, posts["lat"].to_numpy() - burst.lat)[about] < 1.5
    assert near.mean() > 0.95


def test_a_burst_has_words_of_its_own_and_fades(world: World) -> None:
    burst = world.bursts()[0]
    later = np.array([burst.begin - 1, burst.begin + burst.rise, burst.begin + burst.rise + burst.half_life, burst.end])
    assert burst.per_minute(later).tolist() == pytest.approx([0.0, burst.peak, burst.peak / 2, 0.0])
    posts = world.posts(0, 300_000)
    tagged = posts.filter(pc.match_substring(posts["text"], burst.tag))
    assert len(tagged) > 500
    assert set(tagged["topic"].to_pylist()) == {burst.kind}


def test_a_slow_stream_is_not_taken_over_by_bursts() -> None:
    posts = World(rate=2).posts(0, 5000)
    events = pc.is_in(posts["topic"], pa.array(["earthquake", "flood", "concert"]))
    assert 0.2 < pc.mean(events.cast(pa.float64())).as_py() < 0.6


def test_bursts_are_listed_for_any_stretch_of_time(world: World) -> None:
    day = world.bursts(world.start, world.start + 24 * 60 * MINUTE)
    assert len(day) > 50
    assert {burst.kind for burst in day} == {"earthquake", "flood", "concert"}
    begin = world.start + 300 * MINUTE
    active = [burst for burst in day if burst.begin < begin + 10 * MINUTE and burst.end > begin]
    assert world.bursts(begin, begin + 10 * MINUTE) == active


def test_subscriptions_are_distinct_repeatable_and_parse(world: World) -> None:
    found = world.subscriptions(300)
    assert found == world.subscriptions(300)
    assert found[:20] == world.subscriptions(20)
    assert len({id_ for id_, _ in found}) == 300
    for _, sql in found:
        check_subscription(parse(sql, Tokenizer()))
    everything = " ".join(sql for _, sql in found)
    for form in ("RECT(", "CIRCLE(", "POLYGON(", "OVERLAPS", "NOT drill", '"road closed"', "price <", " OR ", "FOR "):
        assert form in everything, form


def test_the_first_subscription_catches_the_first_burst(world: World) -> None:
    burst = world.bursts()[0]
    (name, sql), (_, by_tag) = world.subscriptions(2)
    assert name == f"{burst.kind}-{CITIES[burst.city].tag}"
    assert f"{burst.lon:.2f}, {burst.lat:.2f}" in sql and burst.kind in sql
    assert burst.tag in by_tag


@pytest.mark.parametrize(
    "settings_", [{"rate": 0}, {"rate": float("nan")}, {"seed": -1}, {"vocabulary": 10}], ids=lambda case: str(case)
)
def test_a_world_that_cannot_be_is_refused(settings_: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        World(**settings_)  # type: ignore[arg-type]


def test_posts_are_counted_from_zero() -> None:
    assert World().posts(5, 0).num_rows == 0
    with pytest.raises(BadInput):
        World().posts(-1, 5)


def test_posts_are_made_fast() -> None:
    world = World(seed=99)
    world.posts(0, 1)
    begun = time.perf_counter()
    world.posts(BLOCK, 8 * BLOCK)
    assert 8 * BLOCK / (time.perf_counter() - begun) > 30_000
