"""Tornado's A-Grid against its definitions, tried out by counting."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers import a_grid
from nearcast.partitioning.sample_tally import WORLD, prefix_sums
from tests.partitioning.routers.tile_cases import (
    SHAPES,
    cell,
    check_space,
    in_box,
    is_rectangle,
    leaves_of,
    random_sample,
    sample_of,
    samples,
)

EMPTY = sample_of([], [])


@given(samples, st.integers(1, 20))
def test_no_query_misses_a_post(sample: RouterSample, workers: int) -> None:
    check_space(a_grid.build(sample, workers, cells=32), sample, workers)


@given(samples, st.integers(1, 20))
def test_there_is_one_rectangle_for_each_evaluator(sample: RouterSample, workers: int) -> None:
    partition = a_grid.build(sample, workers, cells=16)
    assert partition.owner.tolist() == list(range(workers))
    assert all(is_rectangle(partition, node) for node in range(partition.nodes))


def test_the_world_in_even_parts_when_nothing_is_known() -> None:
    partition = a_grid.build(EMPTY, 4)
    assert partition.extent == WORLD
    assert partition.cells == a_grid.MOST_CELLS
    assert np.bincount(partition.node).tolist() == [250_000] * 4


def test_more_evaluators_than_cells_are_as_many_as_cells() -> None:
    partition = a_grid.build(EMPTY, 9, cells=2)
    assert partition.leaves == 4


def test_more_evaluators_than_workers_are_dealt_out_by_cost() -> None:
    sample = random_sample(3, "uniform", 400, 60)
    partition = a_grid.build(sample, 3, evaluators=24, cells=32)
    assert partition.leaves == 24
    dealt = np.bincount(partition.owner, partition.load, 3)
    assert dealt.max() - dealt.min() <= partition.load.max()


def brute_costs(sample: RouterSample, extent: tuple[float, float, float, float], cells: int) -> np.ndarray:
    """Eq. 1: for each post the queries of its cell that its words lead to, or that no word leads to."""
    west, south, width, height = extent
    cost = np.zeros((cells, cells))
    posts, queries = sample.posts, sample.queries
    for i in range(len(posts)):
        x, y = cell(posts.lon[i], west, width, cells), cell(posts.lat[i], south, height, cells)
        words = set(posts.terms[posts.offsets[i] : posts.offsets[i + 1]].tolist())
        for j in range(len(queries)):
            code = queries.code[queries.code_offsets[j] : queries.code_offsets[j + 1]]
            box = queries.boxes[j]
            x0, x1 = cell(box[0], west, width, cells), cell(box[2], west, width, cells)
            here = x0 <= x <= x1 if box[0] <= box[2] else x >= x0 or x <= x1
            here &= cell(box[1], south, height, cells) <= y <= cell(box[3], south, height, cells)
            if here and (not len(code) or int(code[1]) in words):
                cost[y, x] += 1
    return cost


@given(samples)
def test_the_cost_of_a_cell_is_the_queries_its_posts_lead_to(sample: RouterSample) -> None:
    partition = a_grid.build(sample, 1, cells=8)
    expected = brute_costs(sample, partition.extent, 8)
    assert np.array_equal(a_grid.cell_costs(sample, partition.extent, 8), expected)
    assert partition.load.tolist() == pytest.approx([len(sample.posts) + a_grid.CHECK * expected.sum()])


def test_a_term_of_many_queries_is_estimated_without_bias() -> None:
    rng = np.random.default_rng(1)
    west = rng.uniform(-170, 100, 1000)
    queries = [((x, -60.0, x + 60.0, 60.0), [7]) for x in west]
    sample = sample_of([(float(x), 0.0, [7]) for x in np.linspace(-60, 90, 150)], queries)
    extent = WORLD
    exact, estimate = brute_costs(sample, extent, 64).sum(), a_grid.cell_costs(sample, extent, 64).sum()
    assert estimate != exact
    assert estimate == pytest.approx(exact, rel=0.05)


costs = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=4, max_size=4).map(np.array)


@given(costs, st.integers(0, 3), st.integers(0, 3), st.integers(1, 4), st.integers(1, 4))
def test_a_cut_leaves_the_least_greater_half(matrix: np.ndarray, x0: int, y0: int, width: int, height: int) -> None:
    part = (x0, y0, min(x0 + width, 4), min(y0 + height, 4))
    ways = [matrix[part[1] : part[3], part[0] : x].sum() for x in range(part[0] + 1, part[2])]
    ways += [matrix[part[1] : y, part[0] : part[2]].sum() for y in range(part[1] + 1, part[3])]
    if not ways:
        return
    total = matrix[part[1] : part[3], part[0] : part[2]].sum()
    halves = [matrix[y0:y1, x0:x1].sum() for x0, y0, x1, y1 in a_grid.cut(prefix_sums(matrix), part)]
    assert max(halves) == min(max(way, total - way) for way in ways)
    assert sum(halves) == total


def least_maximum(matrix: np.ndarray, parts: int) -> float:
    """The best that any sequence of cuts can do."""
    if parts == 1:
        return float(matrix.sum())
    best = np.inf
    for axis in (0, 1):
        for line, some in product(range(1, matrix.shape[axis]), range(1, parts)):
            low, high = np.split(matrix, [line], axis=axis)
            if low.size >= some and high.size >= parts - some:
                best = min(best, max(least_maximum(low, some), least_maximum(high, parts - some)))
    return best


@given(costs.filter(lambda matrix: matrix.sum() > 0), st.integers(1, 4))
def test_the_costliest_part_is_at_most_twice_the_best_that_cuts_can_do(matrix: np.ndarray, parts: int) -> None:
    found = a_grid.split(prefix_sums(matrix), parts)
    assert len(found) == parts
    greatest = max(matrix[y0:y1, x0:x1].sum() for x0, y0, x1, y1 in found)
    assert least_maximum(matrix, parts) <= greatest <= 2 * least_maximum(matrix, parts)


def test_figure_5_is_cut_between_rows_2_and_3() -> None:
    matrix = np.zeros((4, 4), np.int64)
    matrix[2, 1], matrix[1, 3], matrix[3, 3] = 1, 2, 1  # O1 at (2, 3), O2 at (4, 2), O3 at (4, 4), counted from 1
    assert a_grid.cut(prefix_sums(matrix), (0, 0, 4, 4)) == ((0, 0, 4, 2), (0, 2, 4, 4))


@pytest.mark.parametrize(
    ("boxes", "cells"),
    [
        ([], 1000),
        ([(5.0, 5.0, 5.0, 5.0)], 1000),  # a point has no side
        ([(0.0, 0.0, 1.0, 1.0)], 100),
        ([(0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.6, 0.6)], 125),
        ([(0.0, 0.0, 1.0, 1.0), (7.0, 7.0, 7.0, 7.0)], 100),
        ([(0.0, 0.0, 0.01, 0.01)], 1000),
        ([(-180.0, -90.0, 180.0, 90.0)], 64),
        ([(179.5, 0.0, -179.5, 1.0)], 100),
    ],
)
def test_a_cell_is_as_long_as_the_mean_query(boxes: list[tuple[float, ...]], cells: int) -> None:
    sample = sample_of([(0.0, 0.0, []), (100.0, 100.0, [])], [(box, []) for box in boxes])
    assert a_grid.granularity(sample) == cells


@given(samples, st.integers(1, 30))
def test_neighbour_based_routing_finds_every_partition_once(sample: RouterSample, workers: int) -> None:
    partition = a_grid.build(sample, workers, cells=16)
    boxes = sample.queries.boxes[sample.queries.boxes[:, 0] <= sample.queries.boxes[:, 2]]
    nodes, offsets = a_grid.route(partition, boxes)
    for i, box in enumerate(boxes):
        found = nodes[offsets[i] : offsets[i + 1]].tolist()
        assert sorted(found) == sorted(leaves_of(partition, box))
    assert len(offsets) == len(boxes) + 1


@pytest.mark.parametrize("shape", SHAPES)
def test_a_post_is_found_by_routing_its_point(shape: str) -> None:
    sample = random_sample(5, shape, 30, 10)
    partition = a_grid.build(sample, 7, cells=16)
    points = np.column_stack((sample.posts.lon, sample.posts.lat, sample.posts.lon, sample.posts.lat))
    nodes, offsets = a_grid.route(partition, points)
    assert np.diff(offsets).tolist() == [1] * 30
    assert [{node} for node in nodes.tolist()] == [leaves_of(partition, point) for point in points]
    assert all(in_box(point, *point[:2]) for point in points)
