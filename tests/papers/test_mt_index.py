"""The MT-index gives what a dictionary of posts gives, for any windows, beats and delays."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kinds.aggregates.group_by import aggregate_columns
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.storage.posts.coded_columns import coded
from nearcast_papers.baselines.mt_index import MtIndex, common_interval
from tests.storage.cases import TERMS

SHAPE = Shape(("series", "interval", "by"), ("of",), terms=True)


@dataclass(frozen=True)
class Counted:
    """A post, as a series counts it."""

    series: int
    ts: int
    key: str | None = None
    value: float | None = None
    terms: tuple[int, ...] = ()


def partials(posts: list[Counted], length: int) -> Groups:
    """What posts add, by (series, interval, key)."""
    table = pa.table(
        {
            "series:i": pa.array([post.series for post in posts], pa.int64()),
            "interval:i": pa.array([-(-post.ts // length) for post in posts], pa.int64()),
            "by:s": pa.array([post.key for post in posts], pa.string()),
            "of:f": pa.array([post.value for post in posts], pa.float64()),
        }
    )
    terms = np.array([term for post in posts for term in post.terms], np.uint64)
    offsets = np.cumsum([0, *(len(post.terms) for post in posts)]).astype(np.int64)
    by, of = [coded(table, name) for name in SHAPE.by], [coded(table, name) for name in SHAPE.measured]
    return aggregate_columns(SHAPE, by, of, len(posts), (terms, offsets))


Answer = dict[str | None, tuple[int, int, float, float, float, Counter[int]]]


def right_answer(posts: list[Counted], series: int, begin: int, end: int) -> Answer:
    """By definition: the posts of a series in (begin, end], by key."""
    out: Answer = {}
    for key in {post.key for post in posts}:
        some = [p for p in posts if p.series == series and begin < p.ts <= end and p.key == key]
        values = [post.value for post in some if post.value is not None]
        if some:
            bounds = (min(values, default=np.inf), max(values, default=-np.inf))
            terms = Counter(term for post in some for term in set(post.terms))
            out[key] = (len(some), len(values), sum(values), *bounds, terms)
    return out


def answers(groups: Groups, requests: int) -> list[Answer]:
    spelled = dict(zip(groups.spelling.hashes.tolist(), groups.spelling.strings.to_pylist(), strict=True))
    out: list[Answer] = [{} for _ in range(requests)]
    for row in range(len(groups)):
        place, _, key = groups.values[row].tolist()
        terms = groups.term_group == row
        counted = Counter(dict(zip(groups.term[terms].tolist(), groups.term_posts[terms].tolist(), strict=True)))
        total = groups.sums[row, 0] + groups.low[row, 0]
        measures = (groups.posts[row], groups.counts[row, 0], total, groups.least[row, 0], groups.greatest[row, 0])
        name = spelled[key] if groups.kinds[row, 2] == 3 else None
        assert name not in out[place]
        out[place][name] = (*(each.item() for each in measures), counted)
    assert (np.diff(groups.values[:, 0]) >= 0).all()
    return out


def ask(index: MtIndex, requests: list[tuple[int, int, int]]) -> list[Answer]:
    columns = np.array(requests, np.int64).reshape(-1, 3)
    return answers(index.combine(columns[:, 0], columns[:, 1], columns[:, 2]), len(requests))


keys = st.one_of(st.none(), st.sampled_from(("a", "b")))
values = st.one_of(st.none(), st.integers(-4, 9).map(float))
words = st.lists(st.sampled_from(TERMS[:3]), max_size=3).map(tuple)
lags = st.one_of(st.integers(0, 4), st.integers(0, 40))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=3),
    st.sampled_from((1, 3, 10)),
    st.lists(
        st.tuples(st.integers(0, 7), st.lists(st.tuples(st.integers(0, 2), lags, keys, values, words), max_size=5)),
        max_size=12,
    ),
    st.integers(-50, 50),
    st.booleans(),
)
def test_every_window_of_every_beat_is_what_its_posts_give(
    asked: list[tuple[int, int]], unit: int, steps: list, clock: int, layered: bool
) -> None:
    """Series with windows and beats of their own, posts late by up to several windows, several beats in one step."""
    windows, beats = [w * unit for w, _ in asked], [b * unit for _, b in asked]
    length = common_interval(windows, beats)
    index = MtIndex(SHAPE, length, max(windows), layered)
    posts: list[Counted] = []
    kept = clock  # beats up to here have been answered, so posts older than its windows may be forgotten
    for ahead, arriving in steps:
        clock += ahead
        batch = [
            Counted(series % len(asked), clock - lag, key, value, terms) for series, lag, key, value, terms in arriving
        ]
        posts += batch
        index.add(partials(batch, length))
        due = [
            (series, end - window, end)
            for series, (window, beat) in enumerate(zip(windows, beats, strict=True))
            for end in range(kept - kept % beat, clock + 1, beat)
            if kept < end
        ]
        for earlier in sorted({end for _, _, end in due}):
            now = [request for request in due if request[2] == earlier]
            assert ask(index, now) == [right_answer(posts, *request) for request in now]
            index.advance(earlier)
            assert ask(index, now) == [right_answer(posts, *request) for request in now]
        kept = clock


def test_a_window_of_five_minutes_takes_one_interval_of_layer_0_and_one_of_layer_2() -> None:
    """Figure 5 of STAR, with intervals 1, 2 … and the clock at the end of 5, 6 and 7.

    L_0  1 2 3 4 5 6 7
    L_1  --- --- ---
    L_2  -------
    """
    index = MtIndex(SHAPE, 1, 5)
    index.add(partials([Counted(0, ts) for ts in range(1, 8)], 1))
    index.advance(5)
    assert list(index.cover(0, 5)) == [(2, 0), (0, 4)]
    index.advance(6)
    assert list(index.cover(1, 6)) == [(0, 1), (1, 1), (1, 2)]
    assert sorted(index.layers[0]) == [1, 2, 3, 4, 5, 6]  # intervals 2 to 7
    assert sorted(index.layers[1]) == [1, 2]
    assert not index.layers[2]


@pytest.mark.parametrize("reach", [1, 2, 3, 5, 8, 13])
def test_no_smaller_number_of_intervals_makes_up_a_window(reach: int) -> None:
    index = MtIndex(SHAPE, 1, reach)
    for now in range(reach, 3 * reach + 8):
        index.advance(now)
        for begin in range(now - reach, now + 1):
            fewest = {begin: 0}
            for at in range(begin, now):
                for layer in range(index.top + 1):
                    if at % (1 << layer) == 0 and at + (1 << layer) <= now:
                        to = at + (1 << layer)
                        fewest[to] = min(fewest.get(to, reach), fewest[at] + 1)
            found = list(index.cover(begin, now))
            assert len(found) == fewest[now]
            assert [b << layer for layer, b in found][:1] in ([begin], [])


def test_a_gap_without_posts_takes_no_memory_and_no_time() -> None:
    index = MtIndex(SHAPE, 1, 1 << 30)
    index.add(partials([Counted(0, 5)], 1))
    index.advance(1 << 29)
    assert sum(map(len, index.layers)) <= 31
    assert ask(index, [(0, 0, 1 << 29)])[0][None][0] == 1
    index.advance(1 << 31)
    assert not any(index.layers)
    assert ask(index, [(0, 1 << 30, 1 << 31)]) == [{}]


def test_a_late_post_is_added_to_the_layers_above_it() -> None:
    index = MtIndex(SHAPE, 10, 80)
    index.add(partials([Counted(0, 35)], 10))
    index.advance(80)
    index.add(partials([Counted(0, 31), Counted(0, 75), Counted(1, 71)], 10))
    assert [len(list(index.cover(0, 8)))] == [1]
    assert [answer.get(None, (0,))[0] for answer in ask(index, [(0, 0, 80), (1, 0, 80), (0, 30, 40), (2, 0, 80)])] == [
        3, 1, 2, 0,
    ]  # fmt: skip
    index.advance(160)
    index.add(partials([Counted(0, 80), Counted(0, 81)], 10))  # the first is older than any window
    assert ask(index, [(0, 80, 160)])[0][None][0] == 1


def test_a_post_on_the_end_of_an_interval_is_in_it() -> None:
    index = MtIndex(SHAPE, 10, 20)
    index.add(partials([Counted(0, 0), Counted(0, 10), Counted(0, 11), Counted(0, 20)], 10))
    index.advance(20)
    assert [answer[None][0] for answer in ask(index, [(0, 0, 10), (0, 10, 20), (0, 0, 20)])] == [1, 2, 3]


def test_a_window_beyond_what_is_kept_is_refused() -> None:
    index = MtIndex(SHAPE, 1, 4)
    index.advance(10)
    for begin, end in ((5, 9), (6, 11)):
        with pytest.raises(ValueError, match="further back"):
            index.combine(np.array([0]), np.array([begin]), np.array([end]))
    with pytest.raises(ValueError, match="whole intervals"):
        MtIndex(SHAPE, 4, 10)


def test_many_series_at_one_beat_are_added_up_together() -> None:
    random = np.random.default_rng(1)
    posts = [Counted(int(s), int(t), "a", 1.0) for s, t in zip(*random.integers(1, 200, (2, 3000)), strict=True)]
    index = MtIndex(SHAPE, 1, 200)
    index.add(partials(posts, 1))
    index.advance(200)
    requests = [(series, 200 - 7 * (1 + series % 20), 200) for series in range(210)]
    assert ask(index, requests) == [right_answer(posts, *request) for request in requests]
