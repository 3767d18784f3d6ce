"""Segments searched together give what each gives alone."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.expressions import Conjunction, Literal
from nearcast.common.geo.distance import haversine_km
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.storage.posts.kernels.vocabulary import find_terms
from nearcast.storage.posts.nearest_search import search_nearest
from nearcast.storage.posts.post_layout import lay_out, place_order
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.posts.range_search import search_range, search_range_in
from nearcast.storage.posts.segment_group import SegmentGroup
from nearcast.storage.posts.term_counts import Counting, count_terms_in, greatest
from tests.storage.posts.test_post_segment import posts, question

NO_STOP_WORDS = frozen(np.empty(0, np.uint64))
SIZES = (0, 1, 300, 2_500, 12_000, 700)


def segment(count: int, words: int, seed: int, sealed: bool) -> PostSegment:
    table = posts(count, words, seed=seed, texts=["x"] * count)
    arrays, _ = lay_out(table, place_order(table), sealed)
    return PostSegment(Path(), {name: frozen(a) if isinstance(a, np.ndarray) else a for name, a in arrays.items()})


@pytest.fixture(scope="module", params=[60, 30_000], ids=["few words", "many words"])
def group(request: pytest.FixtureRequest) -> SegmentGroup:
    """Fresh and sealed, empty and large; of some a third is deleted."""
    parts = [segment(size, request.param, seed, sealed=seed % 2 == 0) for seed, size in enumerate(SIZES)]
    gone = [frozen(np.arange(0, len(part), 3)) if seed % 3 == 0 else NOTHING for seed, part in enumerate(parts)]
    return SegmentGroup.of(parts, gone)


@st.composite
def questions(draw: st.DrawFn, group: SegmentGroup) -> Question:
    box = draw(
        st.sampled_from([None, (-170.0, -80.0, 170.0, 80.0), (100.0, -90.0, -100.0, 10.0), (0.0, 0.0, 9.0, 9.0)])
    )
    first, last = int(group.times[-2, 0]), int(group.times[-2, 1])
    since = draw(st.sampled_from([BEGINNING, first, (first + last) // 2, last - (last - first) // 50, NEVER]))
    asked = question(box, since)
    known = group[4].terms[1:60].tolist()
    word = st.sampled_from([*known, 12345]).map(lambda term: (term,))
    literal = st.builds(Literal, word, st.booleans())
    conjunctions = draw(
        st.one_of(
            st.just(((),)),
            st.builds(lambda terms: ((Literal(terms, False),),), word),
            st.lists(st.lists(literal, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple),
        )
    )
    return asked_with(asked, conjunctions)


def asked_with(asked: Question, conjunctions: tuple[Conjunction, ...]) -> Question:
    return Question(asked.kind, asked.box, asked.shape, conjunctions, asked.since, asked.until, None)


def alone(group: SegmentGroup, members: np.ndarray, asked: Question) -> dict[int, list[int]]:
    found = {n: search_range(group[n], asked, group.gone[n]).rows.tolist() for n in members.tolist()}
    return {n: rows for n, rows in found.items() if rows}


def some_of(data: st.DataObject) -> np.ndarray:
    numbers = data.draw(st.lists(st.integers(0, len(SIZES) - 1), unique=True))
    return np.array(numbers, np.int64)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_range_has_the_rows_that_each_segment_gives_alone(group: SegmentGroup, data: st.DataObject) -> None:
    members, asked = some_of(data), data.draw(questions(group))
    found = search_range_in(group, members, asked)
    expected = alone(group, members, asked)
    assert {n: rows.tolist() for n, rows in found.hits} == expected
    assert [n for n, _ in found.hits] == [n for n in members.tolist() if n in expected]
    assert sorted(found.scans()) == sorted(members.tolist())


@settings(max_examples=60, deadline=None)
@given(data=st.data(), k=st.sampled_from([1, 10, 5_000]))
def test_the_nearest_are_the_least_distances_of_all(group: SegmentGroup, data: st.DataObject, k: int) -> None:
    members, asked = some_of(data), data.draw(questions(group))
    lon, lat = data.draw(st.sampled_from([(0.0, 0.0), (-179.9, 10.0), (20.0, 90.0)]))
    expected = sorted(
        haversine_km(lon, lat, float(group[n].lon[row]), float(group[n].lat[row]))
        for n, rows in alone(group, members, asked).items()
        for row in rows
    )[:k]
    found = search_nearest(group, members, asked, lon, lat, k)
    km = sorted(value for *_, part in found.hits for value in part.tolist())[:k]
    assert np.allclose(km, expected, rtol=1e-9, atol=1e-9) and len(km) == len(expected)
    assert sorted(found.scans()) == sorted(members.tolist())


@settings(max_examples=60, deadline=None)
@given(data=st.data(), k=st.sampled_from([1, 7, 4_000]))
def test_frequent_terms_are_those_of_all_posts(group: SegmentGroup, data: st.DataObject, k: int) -> None:
    """However the segments are shared out over threads, and with some terms left out."""
    members, asked = some_of(data), data.draw(questions(group))
    stop = frozen(group[4].terms[1:4]) if data.draw(st.booleans()) else NO_STOP_WORDS
    expected: dict[int, int] = {}
    for n, rows in alone(group, members, asked).items():
        for row in rows:
            part = group[n].codes[group[n].offsets[row] : group[n].offsets[row + 1]]
            for term in group[n].terms[np.unique(part)].tolist():
                if term and term not in stop.tolist():
                    expected[term] = expected.get(term, 0) + 1
    cut = data.draw(st.integers(0, len(members)))
    counting = data.draw(st.sampled_from(Counting))
    parts = [count_terms_in(group, each, asked, counting) for each in (members[:cut], members[cut:])]
    terms, sums, parts = greatest(parts, k, stop)
    best = sorted(expected.values(), reverse=True)
    least = best[min(k, len(best)) - 1] if best else 0
    assert dict(zip(terms.tolist(), sums.tolist(), strict=True)) == {t: n for t, n in expected.items() if n >= least}


def test_a_number_keeps_the_segment_that_it_was_given_first() -> None:
    """Two threads may open one file; the arrays of the first may be in use."""
    first, second = (segment(300, 60, seed=1, sealed=False) for _ in range(2))
    group = SegmentGroup(1)
    group.hold(0, first)
    before = group.table.copy()
    group.hold(0, second)
    assert group[0] is first and np.array_equal(group.table, before)


@given(
    terms=st.sets(st.one_of(st.integers(1, 40), st.integers(2**64 - 40, 2**64 - 1), st.integers(1, 2**64 - 1))),
    others=st.lists(st.integers(0, 2**64 - 1), max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_terms_are_found_however_they_are_crowded(terms: set[int], others: list[int]) -> None:
    held = [0, *terms]  # by code
    by_term = sorted(range(1, len(held)), key=lambda code: held[code])
    wanted = [*terms, *others, 0, 1, 2**64 - 1]
    arrays = np.array(held, np.uint64), np.array(by_term, np.uint32), np.array(wanted, np.uint64)
    found = find_terms(*(frozen(array) for array in arrays))
    assert found.tolist() == [held.index(term) if term in terms else -1 for term in wanted]
