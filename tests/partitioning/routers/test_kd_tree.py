"""The kd-tree baseline: one leaf a worker, cut at medians."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers import kd_tree
from nearcast.partitioning.sample_tally import Tally
from tests.partitioning.routers.tile_cases import check_space, is_rectangle, leaf_of, random_sample, sample_of, samples


@given(samples, st.integers(1, 20))
def test_no_query_misses_a_post(sample: RouterSample, workers: int) -> None:
    partition = kd_tree.build(sample, workers, cells=32)
    check_space(partition, sample, workers)
    assert partition.owner.tolist() == list(range(workers))
    assert all(is_rectangle(partition, node) for node in range(partition.nodes))


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_powers_of_two_get_equally_many_posts(workers: int) -> None:
    sample = random_sample(4, "clustered", 4096, 0)
    partition = kd_tree.build(sample, workers)
    held = np.bincount([leaf_of(partition, *at) for at in zip(sample.posts.lon, sample.posts.lat, strict=True)])
    assert held.max() <= 1.2 * held.min()
    assert held.tolist() == partition.load.tolist()  # without queries an object costs c2 = 1


def test_the_most_loaded_part_is_cut_next() -> None:
    posts = [(float(x), float(y), []) for x in range(8) for y in range(8)]
    west = [((0.0, 0.0, 3.0, 7.0), [])] * 10
    partition = kd_tree.build(sample_of(posts, west), 3, cells=8)
    sizes = np.bincount(partition.node)
    assert sorted(sizes) == [16, 16, 32]
    assert partition.load[sizes.argmax()] == 32  # the side without queries stays whole


@given(samples, st.booleans())
def test_halves_differ_in_posts_as_little_as_a_line_allows(sample: RouterSample, across: bool) -> None:
    tally = Tally.of(sample, 16)
    low, high = kd_tree.halves(tally, (2, 3, 12, 10), across)
    x, y = tally.cell_of_post % 16, tally.cell_of_post // 16
    inside = (x >= 2) & (x < 12) & (y >= 3) & (y < 10)
    along = (x if across else y)[inside]
    lines = range(3, 12) if across else range(4, 10)
    least = min(abs(int((along < line).sum()) - int((along >= line).sum())) for line in lines)
    line = high[0] if across else high[1]
    assert line in lines
    assert abs(int((along < line).sum()) - int((along >= line).sum())) == least
    assert low[2 if across else 3] == line


def test_a_part_one_cell_wide_is_cut_the_other_way() -> None:
    tally = Tally.of(random_sample(1, "uniform", 20, 0), 16)
    assert kd_tree.halves(tally, (4, 0, 5, 2), across=True) == ((4, 0, 5, 1), (4, 1, 5, 2))
    assert kd_tree.halves(tally, (4, 0, 6, 1), across=False) == ((4, 0, 5, 1), (5, 0, 6, 1))
