"""The three searches against their oracles, over sealed, fresh and archived segments with deletions."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.geo.shapes import Circle, Polygon, Rect
from nearcast.common.queries import Predicate, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.kinds.terms.search import TermRows
from nearcast.language import parse, parse_contains
from nearcast.reader.answer import Answer
from nearcast.reader.explain import explain
from nearcast.reader.reader import Reader
from tests.oracles.searches import nearest_rows, range_rows, term_counts
from tests.reader.searched_state import ARCHIVED, FRESH, SEALED, Post, make_state

TOKENIZER = Tokenizer()
NOON = 1_777_636_800_000_000
MINUTE = 60_000_000
RARE = [f"rare{n}" for n in range(60)]
COMMON = ["flood", "rain", "coffee", "café", "Straße", "🌊", "#flood", "東京", "the", "a"]
PLACES = [
    (180.0, 10.0), (-180.0, 10.0), (179.99, -10.0), (-179.99, -10.0), (0.0, 90.0), (77.0, 90.0), (-120.0, -90.0),
    (0.0, 0.0), (-74.0, 40.7), (-74.0, 40.7), (2.35, 48.86), (1e-9, -1e-9),
]  # fmt: skip


def random_posts(random: Random, count: int, first: int, start: int, exact: bool) -> list[Post]:
    """Posts in clusters, on poles and on the antimeridian; equal times and places; ids that are numbers or strings."""
    posts = []
    for n in range(count):
        lon, lat = random.choice(PLACES)
        if random.random() < 0.8:
            spread = random.choice((0.01, 1.0, 30.0))
            lon = max(-180.0, min(180.0, lon + random.uniform(-spread, spread)))
            lat = max(-90.0, min(90.0, lat + random.uniform(-spread, spread)))
        if not exact:
            lon, lat = round(lon, 5) + 0.0, round(lat, 5) + 0.0
        words = random.choices(COMMON, weights=range(len(COMMON), 0, -1), k=random.randrange(6))
        words += random.sample(RARE, random.randrange(3))
        if random.random() < 0.01:
            words *= 500
        post: Post = {
            "id": first + n if random.random() < 0.8 else f"p{first + n}",
            "ts": start + random.randrange(40) * MINUTE, "lon": lon, "lat": lat, "text": " ".join(words),
        }  # fmt: skip
        if random.random() < 0.5:
            post["price"] = random.choice((1, 2.5, 7, "free"))
        posts.append(post)
    return posts


def seeded(root: Path, seed: int, parts: list[tuple[str, int]], exact: bool) -> tuple[Path, list[Post]]:
    random = Random(seed)
    made = [
        (kind, random_posts(random, count, 10_000 * number, NOON + 10 * number * MINUTE, exact))
        for number, (kind, count) in enumerate(parts)
    ]
    everything = [post for _, posts in made for post in posts]
    deleted = random.sample([post["id"] for post in everything], len(everything) // 20)
    make_state(root, made, deleted)
    gone = set(deleted)
    return root, [post for post in everything if post["id"] not in gone]


@dataclass(frozen=True)
class Searched:
    reader: Reader = field(repr=False)
    posts: list[Post] = field(repr=False)


STATES = {
    "sealed": ([(SEALED, 1500)], True),
    "fresh": ([(FRESH, 700), (FRESH, 2100)], False),
    "all kinds": ([(ARCHIVED, 150), (SEALED, 900), (SEALED, 300), (FRESH, 100), (FRESH, 1)], False),
    "nothing": ([], False),
}


@pytest.fixture(scope="module", params=STATES)
def searched(request: Any, tmp_path_factory: pytest.TempPathFactory) -> "Searched":
    parts, exact = STATES[request.param]
    root, posts = seeded(tmp_path_factory.mktemp("searched") / "state", len(parts), parts, exact)
    return Searched(Reader(root), posts)


lons = st.sampled_from([place[0] for place in PLACES]) | st.floats(-180, 180)
lats = st.sampled_from([place[1] for place in PLACES]) | st.floats(-90, 90)
rects = st.builds(lambda a, b, c, d: Rect(a, min(b, d), c, max(b, d)), lons, lats, lons, lats)
circles = st.builds(Circle, lons, lats, st.sampled_from([0.0, 0.5, 30.0, 700.0, 9000.0, 25_000.0]))
rings = st.lists(st.tuples(lons, lats), min_size=3, max_size=6, unique=True)
triangles = rings.map(lambda ring: Polygon((tuple(ring),)))
regions = st.none() | rects | circles | triangles
words = st.sampled_from([*COMMON, *RARE[:6], "unheard"])
expressions = st.recursive(
    words.map(lambda word: f'"{word}"' if word == "東京" else word) | st.just('"flood rain"'),
    lambda part: (
        st.builds("({} AND {})".format, part, part)
        | st.builds("({} OR {})".format, part, part)
        | st.builds("({} AND NOT {})".format, part, part)
    ),
    max_leaves=4,
)
texts = st.none() | expressions.map(lambda text: parse_contains(text, TOKENIZER))
predicates = st.sampled_from(
    [(), (), (), (Predicate("price", "<", (5,)),), (Predicate("price", "=", ("free",)),),
     (Predicate("price", "is_null"),), (Predicate("nothing", "is_not_null"),)]
)  # fmt: skip
moments = st.integers(-5, 80).map(lambda minute: TimeBound(at=NOON + minute * MINUTE))
times = st.sampled_from([{}]) | st.fixed_dictionaries(
    {}, optional={"after": moments | st.just(TimeBound(ago=20 * MINUTE)), "since": moments, "until": moments}
)
conditions = st.builds(
    lambda region, text, wanted, time: {"region": region, "text": text, "predicates": wanted, **time},
    regions, texts, predicates, times,
)  # fmt: skip
CASES = settings(max_examples=60, deadline=None)


def clock_of(reader: Reader) -> int:
    return reader.manifest.clock or 0


def rows_of(found: Answer) -> list[dict[str, Any]]:
    """Without the attributes that a post does not have."""
    return [{name: value for name, value in row.items() if value is not None} for row in found]


@CASES
@given(asked=conditions, limit=st.sampled_from([None, None, 0, 1, 7, 500]))
def test_a_range_search_finds_what_looking_at_every_post_finds(
    searched: Searched, asked: dict[str, Any], limit: int | None
) -> None:
    reader, posts = searched.reader, searched.posts
    query = RangeQuery(**asked, limit=limit)
    assert rows_of(reader.answer(query)) == range_rows(posts, query, clock_of(reader), TOKENIZER)


@CASES
@given(asked=conditions, lon=lons, lat=lats, k=st.sampled_from([1, 3, 10, 100, 5000]))
def test_the_nearest_posts_are_those_that_looking_at_every_post_finds(
    searched: Searched, asked: dict[str, Any], lon: float, lat: float, k: int
) -> None:
    reader, posts = searched.reader, searched.posts
    query = NearestQuery(**asked, lon=lon, lat=lat, k=k)
    assert rows_of(reader.answer(query)) == nearest_rows(posts, query, clock_of(reader), TOKENIZER)


@CASES
@given(asked=conditions, k=st.sampled_from([1, 5, 10, 1000]))
def test_the_frequent_terms_are_those_that_counting_every_post_finds(
    searched: Searched, asked: dict[str, Any], k: int
) -> None:
    reader, posts = searched.reader, searched.posts
    query = TermsQuery(**asked, k=k)
    found = reader.answer(query)
    assert isinstance(found, TermRows)
    assert list(zip(found.terms, found.counts, strict=True)) == term_counts(posts, query, clock_of(reader), TOKENIZER)


# -- what oracles do not say -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    posts = [
        {"id": n, "ts": NOON + n * MINUTE, "lon": n / 10, "lat": 0.0, "text": f"the flood in street{n}", "price": n}
        for n in range(50)
    ]
    return Reader(make_state(tmp_path_factory.mktemp("flooded") / "state", [(SEALED, posts[:40]), (FRESH, posts[40:])]))


def test_stop_words_are_not_counted(flooded: Reader, tmp_path: Path) -> None:
    sql = "SELECT TopK(text, 3) FROM stream"
    assert list(flooded.search(sql))[:2] == [{"term": "flood", "count": 50}, {"term": "in", "count": 50}]
    assert [row["term"] for row in flooded.search(sql, stop_words="english")] == ["flood", "street0", "street1"]
    file = tmp_path / "stop"
    file.write_text("flood\nstreet0 The")
    assert [row["term"] for row in flooded.search(sql, stop_words=str(file))] == ["in", "street1", "street10"]
    assert next(iter(flooded.search(sql, stop_words=["in"])))["term"] == "flood"


def test_every_kind_of_answer_turns_into_arrow_and_pandas(flooded: Reader) -> None:
    near = flooded.search("SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 3")
    assert near.to_arrow().column_names == ["id", "ts", "lon", "lat", "text", "price", "distance_km"]
    assert list(near.to_pandas()["id"]) == [0, 1, 2]
    terms = flooded.search("SELECT TopK(text, 2) FROM stream WHERE loc INSIDE RECT(-1, -1, 1, 1)")
    assert isinstance(terms, TermRows)
    assert terms.to_arrow().to_pydict() == {"term": ["flood", "in"], "count": [11, 11]}
    assert list(terms.to_pandas()["count"]) == [11, 11]


def test_chosen_columns_of_the_nearest_come_with_their_distance(flooded: Reader) -> None:
    near = flooded.search("SELECT id, price FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 1")
    assert list(near) == [{"id": 0, "price": 0, "distance_km": 0.0}]


def test_a_limit_leaves_old_segments_closed(flooded: Reader) -> None:
    found = flooded.search("SELECT id FROM stream LIMIT 3")
    assert [row["id"] for row in found] == [49, 48, 47]
    assert found.segments_opened == 1


@pytest.mark.parametrize(
    ("sql", "method"),
    [
        ("SELECT * FROM stream WHERE text CONTAINS 'unheard'", "vocabulary"),
        ("SELECT * FROM stream WHERE text CONTAINS 'street7'", "words first"),
        ("SELECT * FROM stream WHERE loc INSIDE RECT(0, -1, 9, 1)", "place first"),
        ("SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 3", "nearest blocks first"),
        ("SELECT TopK(text, 3) FROM stream", "place first"),
    ],
)
def test_the_plan_names_the_method_of_each_segment(flooded: Reader, sql: str, method: str) -> None:
    steps = list(explain(flooded, parse(f"EXPLAIN {sql}", TOKENIZER)))
    told = {step["step"]: step["detail"] for step in steps}
    assert told["segments opened"] == "2 of 2; 0 skipped by time"
    assert method in told["index"]
    (large,) = [name for name in told if name.startswith("b000000000")]
    assert told[large].startswith(f"{method}: ")
    assert told["candidates checked"].endswith("of 50 posts")


def test_a_search_opens_only_what_its_time_touches(flooded: Reader) -> None:
    found = flooded.search("SELECT id FROM stream WHERE time AFTER '5 minutes ago'")
    assert [row["id"] for row in found] == [49, 48, 47, 46, 45]
    assert (found.segments_opened, found.effort.skipped) == (1, 1)
