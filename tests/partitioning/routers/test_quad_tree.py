"""STAR's quadtree: its two phases, and what dealing out guarantees."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import CRQ, SRQ, RouterSample
from nearcast.partitioning.routers import quad_tree
from nearcast.partitioning.sample_tally import WORLD
from tests.partitioning.routers.tile_cases import (
    check_space,
    is_rectangle,
    leaf_of,
    leaves_of,
    random_sample,
    sample_of,
    samples,
)

CELLS = 16


@given(samples, st.integers(1, 20))
def test_no_query_misses_a_post(sample: RouterSample, workers: int) -> None:
    check_space(quad_tree.build(sample, workers, cells=CELLS), sample, workers)


@given(samples, st.integers(1, 20))
def test_there_are_more_leaves_than_workers_and_all_are_quadrants(sample: RouterSample, workers: int) -> None:
    partition = quad_tree.build(sample, workers, cells=CELLS)
    assert partition.leaves > workers
    for node in range(partition.nodes):
        y, x = np.nonzero(partition.node.reshape(CELLS, CELLS) == node)
        side = x.max() - x.min() + 1
        assert is_rectangle(partition, node)
        assert side * side == len(x)
        assert (side & (side - 1)) == 0
        assert x.min() % side == y.min() % side == 0


@given(samples)
def test_the_load_of_a_leaf_is_what_it_costs_by_the_formula(sample: RouterSample) -> None:
    partition = quad_tree.build(sample, 5, c1=2.0, c2=3.0, c3=5.0, cells=CELLS)
    posts, continuous, snapshot = (np.zeros(partition.leaves) for _ in range(3))
    for lon, lat in zip(sample.posts.lon, sample.posts.lat, strict=True):
        posts[leaf_of(partition, lon, lat)] += 1
    for kind, box in zip(sample.queries.type, sample.queries.boxes, strict=True):
        if box[0] > box[2]:
            return  # counted for each side
        (continuous if kind >= CRQ else snapshot)[list(leaves_of(partition, box))] += 1
    assert partition.load.tolist() == (posts * (2 + 3 * continuous + 5 * snapshot)).tolist()


def runs_of(partition: Partition) -> list[int]:
    """The owners of leaves in order, repeated ones left out."""
    owners = partition.owner.tolist()
    return [owner for i, owner in enumerate(owners) if i == 0 or owners[i - 1] != owner]


@given(samples, st.integers(1, 12))
def test_a_worker_owns_one_run_of_neighbours(sample: RouterSample, workers: int) -> None:
    runs = runs_of(quad_tree.build(sample, workers, cells=CELLS))
    assert runs == sorted(set(runs))


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 16])
def test_phase_2_goes_on_until_the_loads_are_balanced(workers: int) -> None:
    sample = random_sample(8, "clustered", 3000, 200)
    partition = quad_tree.build(sample, workers, balance=1.1, cells=256)
    dealt = np.bincount(partition.owner, partition.load, workers)
    assert dealt.max() <= 1.1 * dealt.mean()
    coarse = quad_tree.build(sample, workers, balance=np.inf, cells=256)
    assert workers < coarse.leaves <= partition.leaves
    assert coarse.leaves <= workers + 3


def test_all_posts_at_one_point_do_not_split_in_vain() -> None:
    partition = quad_tree.build(random_sample(1, "one point", 500, 0), 4, cells=1024)
    assert partition.leaves <= 4 + 3 * 10
    assert np.count_nonzero(partition.load) == 1


def test_the_world_in_even_parts_when_nothing_is_known() -> None:
    partition = quad_tree.build(sample_of([], []), 4, cells=CELLS)
    assert partition.extent == WORLD
    sizes = np.bincount(partition.node)
    assert np.bincount(partition.owner[partition.node], minlength=4).min() > 0
    assert sizes.max() <= 4 * sizes.min()


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=9).map(lambda each: np.array(each, np.float64)),
    st.integers(1, 5),
)
def test_no_load_is_further_from_the_mean_than_the_largest_leaf(load: np.ndarray, workers: int) -> None:
    owner = quad_tree.deal(load, load, workers, np.full(workers, np.inf))
    assert (np.diff(owner) >= 0).all()
    if load.sum():
        dealt = np.bincount(owner, load, workers)
        assert np.abs(dealt - load.sum() / workers).max() <= load.max() + 1e-9
        best = min(
            max(part.sum() for part in np.split(load, cuts))
            for cuts in combinations_with_replacement(range(len(load) + 1), workers - 1)
        )
        assert best <= dealt.max() <= 2 * best


def test_memory_sends_leaves_on_to_the_next_worker() -> None:
    load, size = np.array([4.0, 4.0, 4.0, 4.0]), np.array([3.0, 3.0, 1.0, 1.0])
    free = np.full(2, np.inf)
    assert quad_tree.deal(load, size, 2, free).tolist() == [0, 0, 1, 1]
    assert quad_tree.deal(load, size, 2, np.array([4.0, 9.0])).tolist() == [0, 1, 1, 1]
    assert quad_tree.deal(load, size, 2, np.array([5.0, 4.0])).tolist() == [0, 1, 1, 0]
    assert quad_tree.deal(load, size, 2, np.array([2.0, 9.0])).tolist() == [1, 1, 1, 1]
    assert -1 in quad_tree.deal(load, size, 2, np.array([4.0, 3.0]))


def test_no_worker_holds_more_than_its_memory() -> None:
    sample = random_sample(2, "uniform", 400, 0)
    limits = [40.0, 100.0, 300.0, 20.0]
    partition = quad_tree.build(sample, 4, memory=limits, cells=64)
    places = zip(sample.posts.lon, sample.posts.lat, strict=True)
    held = np.bincount([partition.owner[leaf_of(partition, *at)] for at in places], minlength=4)
    assert (held <= limits).all()
    assert held[2] > 200


def test_too_little_memory_is_an_error_in_words() -> None:
    with pytest.raises(BadInput, match="4 workers that hold 40 posts and queries are too few for a sample with 400"):
        quad_tree.build(random_sample(2, "uniform", 400, 0), 4, memory=10, cells=64)


def test_snapshot_queries_take_no_memory() -> None:
    posts, boxes = [(float(i), 0.0, [1]) for i in range(8)], [((0.0, 0.0, 7.0, 0.0), [1])] * 50
    assert quad_tree.build(sample_of(posts, boxes, [SRQ] * 50), 2, memory=4, cells=64).leaves > 2
    with pytest.raises(BadInput):
        quad_tree.build(sample_of(posts, boxes, [CRQ] * 50), 2, memory=4, cells=64)
