"""Coarse slots: bounds that always hold, and slots that grow with age."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.geo.containment import contains, encode
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.storage.posts import coarse_slots
from nearcast.storage.posts.coarse_slots import CoarseSlots, cells_of
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question

SLOT = 100
Post = tuple[int, float, float, frozenset[int]]  # ts, lon, lat, terms

EDGES = (-180.0, -179.5, -90.0, -1.0, 0.0, 0.5, 1.0, 89.5, 90.0, 179.0, 179.9, 180.0)
lons = st.sampled_from(EDGES) | st.floats(-180, 180)
lats = st.sampled_from([each for each in EDGES if abs(each) <= 90]) | st.floats(-90, 90)
times = st.integers(-3 * SLOT, 20 * SLOT)
posts = st.lists(st.tuples(times, lons, lats, st.frozensets(st.integers(1, 12), max_size=5)), max_size=40)
rects = st.builds(lambda a, b, south, north: Rect(a, min(south, north), b, max(south, north)), lons, lons, lats, lats)
circles = st.builds(Circle, lons, lats, st.sampled_from([0.0, 1.0, 80.0, 500.0, 9_000.0, 20_100.0]))
triangles = st.builds(lambda *corners: Polygon((corners,)), *[st.tuples(lons, lats)] * 3)
regions = st.none() | rects | circles | triangles


def segment_of(some: list[Post]) -> PostSegment:
    """Posts as a segment in memory; terms are named by numbers, and one of them is there twice."""
    terms = [[*sorted(each[3]), *sorted(each[3])[:1]] for each in some]
    base: dict[str, Any] = {
        "id": pa.array(range(len(some)), pa.int64()),
        "id_text": pa.nulls(len(some), pa.string()),
        "ts": pa.array([each[0] for each in some], pa.int64()),
        "lon": pa.array([each[1] for each in some], pa.float64()),
        "lat": pa.array([each[2] for each in some], pa.float64()),
        "text": pa.array([""] * len(some), pa.string()),
        "leaf": pa.array([0] * len(some), pa.int32()),
        "terms": pa.array(terms, pa.list_(pa.uint64())),
    }
    return PostSegment.of(pa.table(base))


def folded(some: list[Post]) -> CoarseSlots:
    segment = segment_of(some)
    return CoarseSlots.fold(segment, np.arange(len(segment)), SLOT)


def question(region: Region | None, since: int, until: int) -> Question:
    kind, box, shape = encode(region)
    return Question(kind, box, frozen(np.array(shape, np.float64)), ((),), since, until, None)


@settings(max_examples=40, deadline=None)
@given(
    parts=st.lists(posts.filter(len), min_size=1, max_size=3),
    region=regions,
    bounds=st.tuples(times, times).map(sorted) | st.just([BEGINNING, NEVER]),
    ages=st.lists(st.integers(20 * SLOT, 200 * SLOT), max_size=2),
    counters=st.sampled_from([1, 2, 32]),
)
def test_every_count_lies_within_its_bounds(
    parts: list[list[Post]], region: Region | None, bounds: list[int], ages: list[int], counters: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coarse_slots, "COUNTERS", counters)
        slots = CoarseSlots.merged([folded(part) for part in parts])
        for clock in sorted(ages):
            slots = slots.aged(clock, clock // SLOT * SLOT, SLOT)
    since, until = bounds
    everything = [post for part in parts for post in part]
    asked = [post for post in everything if since <= post[0] < until and contains(region, post[1], post[2])]
    found = slots.tally(question(region, since, until))
    assert int(slots.posts.sum()) == len(everything)
    (estimate,), (least,), (most,) = found.posts.estimate, found.posts.at_least, found.posts.at_most
    assert least <= len(asked) <= most and least <= estimate <= most
    truth = Counter(term for post in asked for term in post[3])
    counts = found.by_term
    listed = dict(
        zip(found.terms.tolist(), zip(counts.at_least, counts.estimate, counts.at_most, strict=True), strict=True)
    )
    for term in range(1, 13):
        low, middle, high = listed.get(term, (0, 0, found.unlisted))
        assert low <= truth[term] <= high and low <= middle <= high, term
    if region is None and (since, until) == (BEGINNING, NEVER):
        assert (estimate, least, most) == (len(everything),) * 3


def test_a_cell_counts_where_its_middle_is_and_a_slot_by_its_share() -> None:
    #  slots      0         100        200
    #  posts      |3 in cell A, 1 in B |4 in A
    some = [(10, 0.1, 0.1, frozenset({1}))] * 3 + [(20, 1.2, 0.1, frozenset({2}))]
    some += [(150, 0.9, 0.9, frozenset({1}))] * 4
    slots = folded(some)
    half = slots.tally(question(Rect(-10, -10, 0.7, 10), 0, 150))
    assert half.posts.estimate.tolist() == [3 + 2]
    assert half.posts.at_least.tolist() == [0] and half.posts.at_most.tolist() == [7]
    whole = slots.tally(question(Rect(0, 0, 2, 1), 0, 100))
    assert [each.tolist() for each in (whole.posts.at_least, whole.posts.estimate, whole.posts.at_most)] == [[4]] * 3
    assert whole.terms.tolist() == [1, 2] and whole.by_term.at_least.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("lon", "lat", "column", "row"),
    [(-180, -90, 0, 0), (180, 90, 359, 179), (179.999, 89.999, 359, 179), (0, 0, 180, 90), (-0.1, -0.1, 179, 89)],
)
def test_a_cell_has_its_western_and_southern_edges(lon: float, lat: float, column: int, row: int) -> None:
    assert cells_of(np.array([lon]), np.array([lat])).tolist() == [column + 360 * row]


def test_slots_grow_with_age_and_are_few() -> None:
    """Dropped one by one over a long time: lengths are powers of two, longer ones lie further back."""
    slots, slot_count = None, 250
    for number in range(slot_count):
        new = folded([(number * SLOT + 5, 3.3, 4.4, frozenset({number % 7 + 1}))])
        slots = new if slots is None else CoarseSlots.merged([slots, new])
        slots = slots.aged((number + 3) * SLOT, (number + 1) * SLOT, SLOT)
    assert slots is not None
    spans = sorted(zip(slots.begin.tolist(), slots.end.tolist(), strict=True))
    assert spans[0][0] == 0 and spans[-1][1] == slot_count * SLOT
    assert [end for _, end in spans[:-1]] == [begin for begin, _ in spans[1:]]  # no gap, no overlap
    lengths = [(end - begin) // SLOT for begin, end in spans]
    assert lengths == sorted(lengths, reverse=True) and all(n & (n - 1) == 0 for n in lengths)
    assert lengths[0] >= slot_count // 4 and lengths[-1] <= 2
    assert len(spans) <= 2.5 * np.log2(slot_count)
    assert slots.posts.tolist() == lengths
    assert slots.slots == len(spans)


def test_a_slot_and_cell_takes_some_hundreds_of_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    some = [
        (int(ts), float(lon), float(lat), frozenset(random.integers(1, 2000, 8).tolist()))
        for ts, lon, lat in zip(
            random.integers(0, 3 * SLOT, 4000), random.uniform(0, 3, 4000), random.uniform(0, 3, 4000), strict=True
        )
    ]
    slots = folded(some)
    size = slots.write(tmp_path / "coarse.arrow")
    assert len(slots) == 27 and size < 27 * 900 + 5000
    again = CoarseSlots.open(tmp_path / "coarse.arrow")
    for name in ("begin", "end", "cell", "posts"):
        assert np.array_equal(getattr(again, name), getattr(slots, name))
    for name in ("group", "terms", "counts", "errors", "rest", "total"):
        assert np.array_equal(getattr(again.summaries, name), getattr(slots.summaries, name))
    assert again.summaries.m == slots.summaries.m


def test_of_no_posts_there_is_nothing() -> None:
    slots = CoarseSlots.fold(segment_of([(1, 0.0, 0.0, frozenset({1}))]), np.empty(0, np.int64), SLOT)
    assert len(slots) == 0 and slots.slots == 0
    found = CoarseSlots.merged([slots, slots]).aged(500, 400, SLOT).tally(question(None, BEGINNING, NEVER))
    assert found.posts.at_most.tolist() == [0] and not len(found.terms) and found.unlisted == 0
