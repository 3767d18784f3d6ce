"""With a cache and without: the same aggregates, whatever is asked, kept, added, deleted and merged."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import isclose
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.expressions import Phrase
from nearcast.common.geo.shapes import Circle, Rect
from nearcast.common.queries import Predicate, TimeBound
from nearcast.kinds.aggregates.answer_rows import shape_of
from nearcast.kinds.aggregates.cache import nodes, selection
from nearcast.kinds.aggregates.cache import plan as answer
from nearcast.kinds.aggregates.cache.answer_cache import AggregateCache
from nearcast.kinds.aggregates.cache.snapshot import Snapshots
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.query import AggregateQuery, Measure, Output
from nearcast.language import encode_query
from nearcast.reader.roles import Segments
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.posts.values import STRING
from tests.oracles.aggregate_cases import NOON, aggregates, random_posts
from tests.reader.searched_state import table_of, with_words

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True, scope="module")
def eager() -> Iterator[None]:
    """Few posts are enough for a deep tree, and every view pays."""
    patch = pytest.MonkeyPatch()
    patch.setattr(nodes, "LEAF_POSTS", 2)
    patch.setattr(selection, "OPENING", -1e6)
    patch.setattr(answer, "OPENING", -1e6)
    patch.setattr(answer, "WORTH", float("inf"))
    yield
    patch.undo()


def rows(groups: Groups) -> dict[Any, Any]:
    """Groups by what they are, with exact values; sums as the doubles they are nearest to."""
    out = {}
    for i in range(len(groups)):
        key = tuple(zip(groups.kinds[i].tolist(), groups.values[i].tolist(), strict=True))
        mine = groups.term_group == i
        assert key not in out
        out[key] = (
            int(groups.posts[i]), groups.counts[i].tolist(), groups.numbers[i].tolist(), groups.least[i].tolist(),
            groups.greatest[i].tolist(), groups.seen[i].tolist(),
            sorted(zip(groups.term[mine].tolist(), groups.term_posts[mine].tolist(), strict=True)),
            (groups.sums[i] + groups.low[i]).tolist(),
        )  # fmt: skip
    return out


def assert_same(found: Groups, expected: Groups) -> None:
    assert found.shape == expected.shape
    one, other = rows(found), rows(expected)
    assert one.keys() == other.keys()
    for key in one:
        assert one[key][:-1] == other[key][:-1]
        assert all(isclose(a, b, rel_tol=1e-15) for a, b in zip(one[key][-1], other[key][-1], strict=True))
    strings, known = (
        dict(zip(each.spelling.hashes.tolist(), each.spelling.strings.to_pylist(), strict=True))
        for each in (found, expected)
    )
    used = expected.values[expected.kinds == STRING].tolist()
    assert [strings[each] for each in used] == [known[each] for each in used]


Asked = tuple[Question, Shape]


def ask(cache: AggregateCache, segments: Segments, asked: list[Asked]) -> int:
    """How many of the answers came from the cache; all must be those without one."""
    plain = Snapshots().of(segments)
    used = 0
    for question, shape in asked:
        found = cache.groups(segments, question, shape)
        assert_same(found.groups, plain.plain(shape)(question)[0])
        used += found.used.views > 0 or found.used.cached > 0
    return used


class Changing:
    """Segments of posts that come, are deleted and are merged."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = Random(seed)
        posts = random_posts(self.random, count)
        if seed % 2:  # about the world, not in a few places
            for post in posts:
                post["lon"], post["lat"] = self.random.uniform(-180, 180), round(self.random.uniform(-90, 90), 1)
        self.table = with_words(table_of(posts))
        self.made = 0
        cuts = sorted(self.random.sample(range(1, count), self.random.randrange(3)))
        self.later = self.table.slice(count * 3 // 4)
        self.segments: list[tuple[str, PostSegment, np.ndarray]] = []
        bounds = [0, *(cut for cut in cuts if cut < count * 3 // 4), count * 3 // 4]
        for begin, end in pairwise(bounds):
            self.add(self.table.slice(begin, end - begin))

    def add(self, table: pa.Table) -> None:
        self.made += 1
        self.segments.append((f"s{self.made}", PostSegment.of(table.combine_chunks()), NOTHING))

    def change(self, how: str) -> None:
        if how == "add":
            self.add(self.later)
        elif how == "delete":
            at = self.random.randrange(len(self.segments))
            name, segment, _ = self.segments[at]
            some = self.random.sample(range(len(segment)), self.random.randrange(len(segment) + 1))
            self.segments[at] = name, segment, frozen(np.array(sorted(some), np.int64))
        else:
            tables = []
            for _, segment, gone in self.segments:
                tables.append(segment.all().take(pa.array(np.delete(np.arange(len(segment)), gone))))
            self.segments = []
            self.add(pa.concat_tables(tables, promote_options="default"))


degrees = st.floats(-180, 180)
regions = (
    st.none()
    | st.builds(lambda a, b, c, d: Rect(a, min(b, d) / 2, c, max(b, d) / 2), degrees, degrees, degrees, degrees)
    | st.builds(lambda lon, lat, km: Circle(lon, lat / 2, km), degrees, degrees, st.floats(0, 12_000))
)


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """Any aggregate; mostly without conditions on attributes, for few posts meet several."""
    query = draw(aggregates())
    if draw(st.booleans()):
        query = replace(query, region=draw(regions))
    if draw(st.booleans()):
        query = replace(query, predicates=query.predicates[:1])
    if draw(st.booleans()):
        query = replace(query, predicates=(), text=None)
    return Question.of(encode_query(query, NOON)), shape_of(query)


@given(
    st.integers(0, 10**6),
    st.sampled_from([4, 20, 60]),
    st.lists(questions(), min_size=1, max_size=6),
    st.lists(st.sampled_from(["add", "delete", "merge"]), max_size=3, unique=True),
    st.sampled_from([0, 2_000, MEGABYTE, MEGABYTE]),
    st.sampled_from([0, 100, MEGABYTE, MEGABYTE]),
    st.sampled_from([False, False, True]),
)
@settings(max_examples=30, deadline=None)
def test_answers_are_the_same_with_and_without_a_cache(
    seed: int, count: int, asked: list[Asked], changes: list[str], views: int, objects: int, classic: bool
) -> None:
    state = Changing(seed, count)
    cache = AggregateCache(views, objects, classic=classic, regions=seed % 3 > 0, background=False)
    assert ask(cache, state.segments, asked) == 0  # nothing is kept before anything was chosen
    cache.choose(state.segments)
    ask(cache, state.segments, asked)
    for how in changes:
        state.change(how)
        ask(cache, state.segments, asked)
        cache.refresh(state.segments)
        ask(cache, state.segments, asked)
    cache.choose(state.segments)
    ask(cache, state.segments, asked)
    status = cache.status()
    assert status.view_bytes <= views and status.region_bytes <= objects


def scattered(seed: int, count: int) -> pa.Table:
    """Posts about two cities and the antimeridian, of one day, with a topic, a kind and three words."""
    rng = np.random.default_rng(seed)
    centre = rng.integers(0, 3, count)
    lon = np.array([2.3, 13.4, 180.0])[centre] + rng.normal(0, 0.3, count)
    lat = np.array([48.9, 52.5, -17.8])[centre] + rng.normal(0, 0.3, count)
    terms = np.sort(rng.integers(1, 12, (count, 3)), axis=1).astype(np.uint64).ravel()
    offsets = np.arange(0, 3 * count + 1, 3, dtype=np.int32)
    return pa.table({
        "id": np.arange(count), "id_text": pa.nulls(count, pa.string()),
        "ts": NOON + rng.integers(0, 86_400_000_000, count), "lon": np.where(lon > 180, lon - 360, lon), "lat": lat,
        "text": pa.array(["some text"] * count), "leaf": pa.array(np.zeros(count, np.int32)),
        "terms": pa.ListArray.from_arrays(pa.array(offsets), pa.array(terms)),
        "topic:i": pa.array(rng.integers(0, 5, count), mask=rng.random(count) < 0.1),
        "kind:s": pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, count)]),
    })  # fmt: skip


near = st.builds(
    lambda at, x, y, w, h: Rect(at[0] + x, at[1] + y, _east(at[0] + x + w), at[1] + y + h),
    st.sampled_from([(2.3, 48.9), (13.4, 52.5), (179.7, -17.8)]),
    st.floats(-0.5, 0.2), st.floats(-0.5, 0.2), st.floats(0.01, 0.9), st.floats(0.01, 0.9),
) | st.builds(
    lambda at, x, km: Circle(_east(at[0] + x), at[1], km),
    st.sampled_from([(2.3, 48.9), (13.4, 52.5), (179.7, -17.8)]), st.floats(-0.5, 0.5), st.floats(0.5, 80),
)  # fmt: skip


def _east(lon: float) -> float:
    return lon - 360 if lon > 180 else lon


@st.composite
def regional(draw: st.DrawFn) -> AggregateQuery:
    """One to four constraints, as in STAR §8.1."""
    word = Phrase((draw(st.integers(1, 12)),), ("w",))
    chosen = draw(st.sets(st.sampled_from(["region", "region", "text", "after", "predicates"]), max_size=3))
    every = {
        "region": draw(near), "text": word, "after": TimeBound(at=NOON + draw(st.integers(-1, 86_400_000_000))),
        "predicates": (Predicate("topic", "=", (draw(st.integers(0, 5)),)),),
    }  # fmt: skip
    by = draw(st.lists(st.sampled_from(["topic", "kind", "hour"]), max_size=2, unique=True))
    measure = draw(st.sampled_from([Measure("count"), Measure("avg", "topic"), Measure("topk", "text", 3)]))
    outputs = (Output("n", measure), *(Output(name, name) for name in by))
    return AggregateQuery(**{name: every[name] for name in {*chosen, "region"}}, outputs=outputs, group_by=tuple(by))


@given(st.integers(0, 1000), st.lists(regional(), min_size=3, max_size=10), st.booleans())
@settings(max_examples=30, deadline=None)
def test_regions_are_answered_from_views_borders_and_posts_together(
    seed: int, queries: list[AggregateQuery], objects: bool
) -> None:
    tables = [scattered(seed + number, 300) for number in range(2)]
    segments = [(f"s{n}", PostSegment.of(table), NOTHING) for n, table in enumerate(tables)]
    asked = [(Question.of(encode_query(query, NOON)), shape_of(query)) for query in queries]
    cache = AggregateCache(MEGABYTE, MEGABYTE if objects else 0, regions=seed % 4 == 0, background=False)
    ask(cache, segments, asked)
    cache.choose(segments)
    ask(cache, segments, asked)
    segments[1] = ("s1", segments[1][1], frozen(np.arange(0, 300, 7)))
    segments.append(("s2", PostSegment.of(scattered(seed + 2, 200)), NOTHING))
    ask(cache, segments, asked)
