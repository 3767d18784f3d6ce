"""The quadtree: each place in one node of a level, and regions as nodes."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.geo.containment import contains, encode
from nearcast.common.geo.shapes import Circle, Polygon, Rect, Region
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.kinds.aggregates.cache.nodes import ROOT, Quadtree, box, depth, span
from nearcast.kinds.aggregates.kernels.quadtree import cell_codes, choose
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question

EDGES = [-180.0, -90.0, 0.0, 90.0, 180.0, np.nextafter(0.0, -1), np.nextafter(90.0, 0), 45 / 8192, -45 / 8192]
lons = st.floats(-180, 180) | st.sampled_from(EDGES)
lats = st.floats(-90, 90) | st.sampled_from([edge / 2 for edge in EDGES])
places = st.lists(st.tuples(lons, lats), min_size=1, max_size=40)
regions = (
    st.none()
    | st.builds(lambda a, b, c, d: Rect(a, min(b, d), c, max(b, d)), lons, lats, lons, lats)
    | st.builds(Circle, lons, lats, st.floats(0, 20_100))
    | st.lists(st.tuples(lons, lats), min_size=3, max_size=5, unique=True).map(lambda ring: Polygon((tuple(ring),)))
)


def question(region: Region | None) -> Question:
    kind, bbox, shape = encode(region)
    return Question(kind, bbox, frozen(np.array(shape, np.float64)), ((),), BEGINNING, NEVER, None)


def segment(where: list[tuple[float, float]]) -> PostSegment:
    n = len(where)
    return PostSegment.of(pa.table({
        "id": np.arange(n), "id_text": pa.nulls(n, pa.string()), "ts": np.arange(n),
        "lon": [lon for lon, _ in where], "lat": [lat for _, lat in where], "text": pa.array([""] * n),
        "leaf": pa.array(np.zeros(n, np.int32)),
        "terms": pa.ListArray.from_arrays(pa.array(np.zeros(n + 1, np.int32)), pa.array([], pa.uint64())),
    }))  # fmt: skip


def inside(node: int, lon: float, lat: float) -> bool:
    west, south, east, north = box(node)
    return west <= lon <= east and south <= lat <= north


def nodes_of(code: int) -> list[int]:
    """The nodes from the last level up to the root."""
    node = 1 << 32 | code
    return [node >> 2 * up for up in range(17)]


@given(places)
@settings(max_examples=100, deadline=None)
def test_a_place_lies_in_one_node_of_each_level(where: list[tuple[float, float]]) -> None:
    posts = segment(where)
    codes = cell_codes(posts.arrays["fixed"], posts.arrays["exact"], frozen(np.arange(len(posts)))).tolist()
    for code, lon, lat in zip(codes, posts.lon.tolist(), posts.lat.tolist(), strict=True):
        path = nodes_of(code)
        assert path[-1] == ROOT and [depth(node) for node in path] == list(range(16, -1, -1))
        for node in path:
            first, end = span(node)
            assert first <= code < end
            assert inside(node, lon, lat)
            if node != ROOT:
                assert not any(inside(node ^ other, lon, lat) for other in (1, 2, 3))


@given(places, regions, st.sampled_from([1, 1000]))
@settings(max_examples=150, deadline=None)
def test_a_region_is_covered_and_overlapped_nodes(
    where: list[tuple[float, float]], region: Region | None, sample: int
) -> None:
    tree = Quadtree.of([segment(where)], sample)
    cover = tree.cover(question(region))
    nodes = [*cover.inside.tolist(), *cover.meeting.tolist()]
    spans = sorted(span(node) for node in nodes)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    for lon, lat in where:
        of = [node for node in nodes if inside(node, lon, lat)]
        if contains(region, lon, lat):
            assert len(of) == 1
        elif of:
            assert of[0] not in cover.inside.tolist()
    largest = tree.largest(cover)
    assert (largest is None) == (not len(cover.inside))
    assert largest is None or depth(largest) == min(map(depth, cover.inside.tolist()))


def test_no_posts_make_a_tree_of_one_leaf() -> None:
    tree = Quadtree.of([])
    assert tree.posts(ROOT) == 0
    cover = tree.cover(question(Rect(0, 0, 1, 1)))
    assert cover.inside.tolist() == [] and cover.meeting.tolist() == [ROOT]
    assert tree.cover(question(None)).inside.tolist() == [ROOT]


def least(node: int, posts: dict[int, float], costs: dict[int, list[float]]) -> float:
    """The recursion of §4.1.3: L(q, n)."""
    own = min([posts[node], *costs.get(node, [])])
    return min(own, sum(least(4 * node + i, posts, costs) for i in range(4))) if depth(node) < 3 else own


@given(
    st.lists(st.integers(0, 2**32 - 1), max_size=60),
    st.lists(st.tuples(st.integers(1, 255).filter(lambda n: n.bit_length() % 2), st.floats(0, 20)), max_size=12),
    st.sampled_from([[1], [4, 7], [5], [16, 30]]),
)
@settings(max_examples=200, deadline=None)
def test_the_cheapest_of_a_nodes_views_and_its_childrens_is_chosen(
    codes: list[int], views: list[tuple[int, float]], covered: list[int]
) -> None:
    tree = Quadtree(frozen(np.array(sorted(codes), np.uint32)), 2.0)
    views.sort(key=lambda view: (span(view[0])[0], -span(view[0])[1]))
    nodes, costs = (np.array([view[i] for view in views], dtype) for i, dtype in ((0, np.int64), (1, np.float64)))
    used, left, spared = choose(tree.codes, 2.0, np.array(covered), frozen(nodes), frozen(costs))
    every = [node for level in range(4) for node in range(1 << 2 * level, 2 << 2 * level)]
    posts = {node: tree.posts(node) for node in every}
    priced: dict[int, list[float]] = {}
    for node, cost in views:
        priced.setdefault(node, []).append(cost)
    effort = sum(costs[i] for i in used.tolist()) + sum(tree.posts(node) for node in left.tolist())
    assert effort == pytest.approx(sum(least(node, posts, priced) for node in covered))
    assert spared == pytest.approx(sum(tree.posts(views[i][0]) for i in used.tolist()))
    spans = sorted([span(views[i][0]) for i in used.tolist()] + [span(node) for node in left.tolist()])
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert sum(end - first for first, end in spans) == sum(span(node)[1] - span(node)[0] for node in covered)


@pytest.mark.parametrize("lon", [-97.0, 0.0, 90.0, 180.0])
def test_a_circle_that_reaches_both_poles_and_the_antimeridian_does_not_cover_the_world(lon: float) -> None:
    far = (lon - 180 if lon > 0 else lon + 180, 0.0)
    region = Circle(lon, 0.0, 10_388.0)
    assert not contains(region, *far)
    cover = Quadtree.of([segment([far, (lon, 0.0)])]).cover(question(region))
    assert not any(inside(node, *far) for node in cover.inside.tolist())
