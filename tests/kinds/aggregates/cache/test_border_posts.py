"""Cached borders: which regions are chosen, what they cover, which go first."""

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.geo.containment import contains
from nearcast.common.geo.shapes import Circle, Rect
from nearcast.kinds.aggregates.cache.border_posts import (
    POST_BYTES,
    Borders,
    Overlap,
    Region,
    improvement,
    overlaps_of,
    posts_of,
    select,
)
from nearcast.kinds.aggregates.cache.learning import Holdings
from nearcast.kinds.aggregates.cache.nodes import box
from tests.kinds.aggregates.cache.test_nodes import question, segment

NODE = 1 << 8 | 0b11010010  # a cell of 22.5° × 11.25°
WEST, SOUTH, EAST, NORTH = box(NODE)


def within(slot: int, reach: float, lon: float, lat: float) -> bool:
    """Definition 4.4: a rectangle along a side, or a quarter circle about a corner."""
    if slot < 4:
        return [lon - WEST, EAST - lon, lat - SOUTH, NORTH - lat][slot] <= reach
    corner = (WEST if slot % 2 == 0 else EAST, SOUTH if slot < 6 else NORTH)
    return (lon - corner[0]) ** 2 + (lat - corner[1]) ** 2 <= reach * (1 + 1e-12)


x = st.floats(WEST - 3, EAST + 3)
y = st.floats(SOUTH - 3, NORTH + 3)
rects = st.builds(lambda a, b, c, d: Rect(min(a, c), min(b, d), max(a, c), max(b, d)), x, y, x, y)
circles = st.builds(Circle, x, y, st.floats(10, 2000))
inner = st.lists(st.tuples(st.floats(WEST, EAST), st.floats(SOUTH, NORTH)), min_size=1, max_size=30)


@given(rects | circles, inner)
@settings(max_examples=80, deadline=None)
def test_a_region_covers_what_it_is_offered_for(region: Rect | Circle, where: list[tuple[float, float]]) -> None:
    for node, needs in overlaps_of(np.array([NODE]), question(region)):
        assert node == NODE
        assert len(needs) in (1, 3)
        for slot, reach in needs:
            for lon, lat in where:
                assert not contains(region, lon, lat) or within(slot, reach, lon, lat)


def test_sides_and_corners_are_told_apart() -> None:
    cases = [
        (Rect(WEST - 1, SOUTH - 1, WEST + 2, NORTH + 1), {0: 2.0}),
        (Rect(EAST - 2, SOUTH - 1, EAST + 2, NORTH + 1), {1: 2.0}),
        (Rect(WEST - 1, SOUTH - 1, EAST + 2, SOUTH + 3), {2: 3.0}),
        (Rect(WEST - 1, NORTH - 3, EAST + 2, NORTH + 3), {3: 3.0}),
        (Rect(WEST - 1, SOUTH - 1, WEST + 2, SOUTH + 3), {4: 13.0, 0: 2.0, 2: 3.0}),
        (Rect(EAST - 2, NORTH - 3, EAST + 2, NORTH + 3), {7: 13.0, 1: 2.0, 3: 3.0}),
        (Rect(WEST + 1, SOUTH + 1, EAST - 1, NORTH - 1), {}),  # in the middle
        (Rect(WEST + 1, SOUTH - 1, EAST - 1, NORTH + 1), {}),  # a strip across it
        (Rect(WEST - 1, SOUTH - 1, EAST + 1, NORTH + 1), {}),  # all of it
        (Rect(170, SOUTH - 1, WEST + 2, NORTH + 1), {0: 2.0}),  # across the antimeridian
    ]
    for region, expected in cases:
        found = {
            slot: round(reach, 9)
            for _, needs in overlaps_of(np.array([NODE]), question(region))
            for slot, reach in needs
        }
        assert found == expected, region


# -- the choice --------------------------------------------------------------------------------------------------------


@st.composite
def overlaps(draw: st.DrawFn) -> tuple[list[Overlap], dict[Region, float]]:
    """Overlaps of two nodes with 100 posts, and how many posts each region has: more, the farther it reaches."""
    out = []
    for _ in range(draw(st.integers(1, 4))):
        node = draw(st.integers(1, 2))
        needs = {slot: float(draw(st.integers(1, 3))) for slot in draw(st.sampled_from([(0,), (1,), (4, 0, 2)]))}
        out.append(Overlap(node, 100.0, draw(st.sampled_from([1.0, 4.0])), tuple(needs.items())))
    held = {}
    for node in (1, 2):
        for slot in (0, 1, 2, 4):
            steps = draw(st.lists(st.integers(0, 40), min_size=3, max_size=3))
            held |= {Region(node, slot, reach): float(sum(steps[: int(reach)])) for reach in (1.0, 2.0, 3.0)}
    return out, held


@given(overlaps(), st.sampled_from([0.0, 20.0, 60.0, 200.0]))
@settings(max_examples=80, deadline=None)
def test_the_greedy_choice_is_worth_63_percent_of_the_best_of_its_size(
    instance: tuple[list[Overlap], dict[Region, float]], budget: float
) -> None:
    """Theorem 4.7, against every set of regions."""
    asked, counts = instance
    chosen = select(asked, counts.__getitem__, budget)
    space = sum(counts[region] for region in chosen)
    assert space <= budget
    assert len({(region.node, region.slot) for region in chosen}) == len(chosen)
    every = sorted({Region(o.node, slot, need) for o in asked for slot, need in o.needs})
    best = max(
        improvement(asked, some, counts.__getitem__)
        for size in range(len(every) + 1)
        for some in combinations(every, size)
        if sum(counts[region] for region in some) <= space
    )
    assert improvement(asked, chosen, counts.__getitem__) >= 0.63 * best - 1e-9


# -- the posts ---------------------------------------------------------------------------------------------------------


@given(inner, st.integers(0, 7), st.floats(0, 60))
@settings(max_examples=40, deadline=None)
def test_what_a_region_would_hold_is_what_it_holds(where: list[tuple[float, float]], slot: int, reach: float) -> None:
    posts = segment([*where, (WEST - 1, SOUTH - 1)])
    held = Holdings(frozen(np.array([NODE])), [posts])
    region = Region(NODE, slot, reach)
    kept = Borders.of([region]).rows("s", posts)
    assert held.posts(NODE) == len(where) == len(posts_of(frozen(np.array([NODE])), posts))
    assert held(region) == len(kept.rows)
    assert all(a <= b for a, b in pairwise(kept.reach.tolist()))
    assert all(within(slot, reach, lon, lat) for lon, lat in zip(*posts.places(kept.rows), strict=True))


def test_the_least_recently_used_regions_go_first() -> None:
    posts = segment([(WEST + step / 10, SOUTH + 1.0) for step in range(100)])
    borders = Borders.of([Region(NODE, 0, 1.05), Region(NODE, 1, 100.0), Region(NODE, 2, 2.0)])
    borders.rows("s", posts)
    assert len(borders) == 3 and borders.nbytes == POST_BYTES * (11 + 100 + 100)
    meeting = np.array([NODE])
    west, south = Rect(-180, -90, WEST + 0.5, 90), Rect(-180, -90, 180, SOUTH + 1.5)
    rows, answered = borders.gather("s", posts, meeting, question(west), tick=2)
    assert answered.tolist() == [True] and len(rows) == 6  # no more than the query reaches
    assert borders.gather("s", posts, meeting, question(south), tick=1)[1].tolist() == [True]
    assert borders.within(POST_BYTES * 211) is borders
    fewer = borders.within(POST_BYTES * 200)
    assert fewer.nbytes == POST_BYTES * 111 and len(fewer) == 2  # region 1 was never used
    assert fewer.gather("s", posts, meeting, question(west), tick=3)[0].tolist() == rows.tolist()
    least = fewer.within(POST_BYTES * 50)
    assert least.nbytes == POST_BYTES * 11
    assert least.gather("s", posts, meeting, question(south), tick=4)[1].tolist() == [False]
    assert not len(least.within(0))
