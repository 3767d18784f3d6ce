"""R-tree leaves as a partition: STR packing, and the cells between tiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.router_sample import RouterSample
from nearcast_papers.routers import r_tree
from nearcast_papers.routers.kernels.tile_growth import least_enlargement
from tests.partitioning.routers.tile_cases import check_space, leaf_of, random_sample, sample_of, samples


@given(samples, st.integers(1, 12), st.booleans())
def test_no_query_misses_a_post(sample: RouterSample, workers: int, one_each: bool) -> None:
    if one_each:
        partition = r_tree.build_str(sample, workers, cells=32)
        assert partition.leaves <= workers
    else:
        partition = r_tree.build(sample, workers, leaves=15, cells=32)
        assert partition.leaves <= 15
    check_space(partition, sample, workers)


@pytest.mark.parametrize("tiles", [1, 2, 3, 5, 7, 9, 12, 50])
def test_tiles_have_equally_many_points_as_nearly_as_may_be(tiles: int) -> None:
    rng = np.random.default_rng(tiles)
    x, y = rng.permutation(1000), rng.permutation(1000)  # no two share a row or column
    boxes = r_tree.sort_tile(x, y, tiles)
    assert len(boxes) == tiles
    held = [np.count_nonzero((x >= x0) & (x < x1) & (y >= y0) & (y < y1)) for x0, y0, x1, y1 in boxes]
    assert sum(held) == 1000
    assert max(held) - min(held) <= 2


def test_fewer_points_than_tiles_make_fewer_tiles() -> None:
    assert r_tree.sort_tile(np.array([5, 1]), np.array([2, 7]), 9).tolist() == [[1, 7, 2, 8], [5, 2, 6, 3]]
    assert r_tree.sort_tile(np.array([], np.int64), np.array([], np.int64), 9).shape == (0, 4)


boxes = st.lists(
    st.tuples(*[st.integers(0, 5)] * 4).map(
        lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]) + 1, max(c[1], c[3]) + 1)
    ),
    min_size=1,
    max_size=6,
)


@given(boxes)
def test_a_cell_goes_to_the_tile_that_grows_least(tiles: list[tuple[int, int, int, int]]) -> None:
    node = least_enlargement(np.array(tiles, np.int32), 6)
    for y in range(6):
        for x in range(6):
            keys = []
            for number, (x0, y0, x1, y1) in enumerate(tiles):
                area = (x1 - x0) * (y1 - y0)
                grown = (max(x1, x + 1) - min(x0, x)) * (max(y1, y + 1) - min(y0, y))
                keys.append((grown - area, area, number))
            assert node[y * 6 + x] == min(keys)[2]


def test_one_tile_a_worker_balances_the_posts() -> None:
    sample = random_sample(6, "clustered", 5000, 0)
    partition = r_tree.build_str(sample, 9)
    assert partition.leaves == 9
    assert sorted(partition.owner.tolist()) == list(range(9))
    held = np.bincount([leaf_of(partition, *at) for at in zip(sample.posts.lon, sample.posts.lat, strict=True)])
    assert held.tolist() == partition.load.tolist()
    assert held.max() <= 1.1 * held.mean()


def test_without_a_sample_the_tiles_are_even() -> None:
    partition = r_tree.build_str(sample_of([], []), 6, cells=36)
    assert np.bincount(partition.node).tolist() == [36 * 36 // 6] * 6
    assert sorted(partition.owner.tolist()) == list(range(6))


def test_posts_at_one_point_share_one_tile() -> None:
    partition = r_tree.build(random_sample(1, "one point", 100, 5), 4, cells=16)
    assert partition.leaves == 1
