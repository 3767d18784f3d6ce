"""With a cache and without: the same aggregates, whatever is asked, kept, added, deleted and merged."""

from collections.abc import Iterator
from math import isclose
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.cache import answer, nodes, selection
from nearcast.cache.cached_answers import CachedAnswers
from nearcast.cache.snapshot import Segments, Snapshots
from nearcast.index.answers import shape_of
from nearcast.index.groups import Groups, Shape
from nearcast.index.posts import PostSegment
from nearcast.index.question import NOTHING, Question
from nearcast.index.rows import frozen
from nearcast.language import encode_query
from nearcast.model.queries import AggregateQuery
from tests.oracles.aggregate_cases import NOON, aggregates, random_posts
from tests.reader.searched_state import table_of, with_words

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True, scope="module")
def eager() -> Iterator[None]:
    """Few posts are enough for a deep tree and for a view to pay."""
    patch = pytest.MonkeyPatch()
    patch.setattr(nodes, "LEAF_POSTS", 2)
    patch.setattr(selection, "OPENING", 0.0)
    patch.setattr(answer, "OPENING", 0.0)
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
    strings = dict(zip(expected.spelling.hashes.tolist(), expected.spelling.strings.to_pylist(), strict=True))
    known = dict(zip(found.spelling.hashes.tolist(), found.spelling.strings.to_pylist(), strict=True))
    assert strings.items() <= known.items()


Asked = tuple[Question, Shape]


def ask(cache: CachedAnswers, segments: Segments, asked: list[Asked]) -> int:
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
        self.table = with_words(table_of(random_posts(self.random, count)))
        self.made = 0
        cuts = sorted(self.random.sample(range(1, count), self.random.randrange(3)))
        self.later = self.table.slice(count * 3 // 4)
        self.segments: list[tuple[str, PostSegment, np.ndarray]] = []
        bounds = [0, *(cut for cut in cuts if cut < count * 3 // 4), count * 3 // 4]
        for begin, end in zip(bounds, bounds[1:], strict=False):
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


@given(
    st.integers(0, 10**6),
    st.sampled_from([4, 20, 60]),
    st.lists(aggregates(), min_size=1, max_size=6),
    st.lists(st.sampled_from(["add", "delete", "merge"]), max_size=3, unique=True),
    st.sampled_from([0, 700, MEGABYTE]),
    st.sampled_from([0, 100, MEGABYTE]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_answers_are_the_same_with_and_without_a_cache(
    seed: int, count: int, queries: list[AggregateQuery], changes: list[str], views: int, objects: int, classic: bool
) -> None:
    state = Changing(seed, count)
    asked = [(Question.of(encode_query(query, NOON)), shape_of(query)) for query in queries]
    cache = CachedAnswers(views, objects, classic=classic, background=False)
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
