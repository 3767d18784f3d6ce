"""AQWA's kd-tree: each cut lowers points × queries most."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers import kd_tree
from nearcast.partitioning.sample_tally import Rectangle, Tally
from nearcast_papers.routers import aqwa
from tests.partitioning.routers.tile_cases import check_space, is_rectangle, random_sample, sample_of, samples


@given(samples, st.integers(1, 20))
def test_no_query_misses_a_post(sample: RouterSample, workers: int) -> None:
    partition = aqwa.build(sample, workers, leaves=12, cells=32)
    check_space(partition, sample, workers)
    assert partition.leaves == max(12, workers)
    assert all(is_rectangle(partition, node) for node in range(partition.nodes))


def count(tally: Tally, part: Rectangle) -> int:
    """Points × queries of a part, by counting."""
    x0, y0, x1, y1 = part
    x, y = tally.cell_of_post % tally.cells, tally.cell_of_post // tally.cells
    points = np.count_nonzero((x >= x0) & (x < x1) & (y >= y0) & (y < y1))
    return points * sum(a < x1 and c > x0 and b < y1 and d > y0 for a, b, c, d in tally.rectangles.tolist())


@given(samples)
def test_the_best_cut_is_the_best_of_all(sample: RouterSample) -> None:
    tally = Tally.of(sample, 12)
    part = (1, 2, 9, 11)
    gain, halves = aqwa.best_cut(tally, part)
    ways = [count(tally, (1, 2, x, 11)) + count(tally, (x, 2, 9, 11)) for x in range(2, 9)]
    ways += [count(tally, (1, 2, 9, y)) + count(tally, (1, y, 9, 11)) for y in range(3, 11)]
    assert sum(count(tally, half) for half in halves) == min(ways)
    assert gain == count(tally, part) - min(ways)


def test_a_single_cell_is_not_cut() -> None:
    assert aqwa.best_cut(Tally.of(sample_of([(1.0, 1.0, [])], []), 4), (2, 2, 3, 3)) == (0.0, [])
    assert aqwa.build(sample_of([], []), 2, leaves=9, cells=2).leaves == 4


def test_queries_and_posts_apart_are_parted() -> None:
    posts = [(x, y, []) for x in (0.0, 10.0) for y in (0.0, 10.0)] + [(1.0, 1.0, [])] * 50
    partition = aqwa.build(sample_of(posts, [((8.0, 8.0, 9.0, 9.0), [])] * 50), 2, leaves=2, cells=10)
    assert partition.load.sum() <= 2 * 50  # not 54 × 50: at most the post in the corner with the queries is left


def test_the_total_cost_is_below_that_of_medians() -> None:
    for seed in range(5):
        sample = random_sample(seed, "uniform", 500, 100)
        medians = kd_tree.build(sample, 16, c1=1.0, c2=0.0, c3=0.0, cells=64)
        ours = aqwa.build(sample, 16, leaves=16, cells=64)
        assert ours.load.sum() <= medians.load.sum()
