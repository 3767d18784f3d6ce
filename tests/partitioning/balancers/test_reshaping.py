"""FG: ĥ, splitting, merging, and what comes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.balancers import reallocation as reallocate
from nearcast.partitioning.balancers import reshaping as reshape
from nearcast.partitioning.moves import Loads, imbalance, worker_loads
from nearcast.partitioning.partition import BY_POST, BY_QUERY, SPACE, Partition
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.routers import quad_tree
from nearcast.partitioning.sample_tally import WORLD, extent_of
from nearcast.partitioning.tiles import paint, space_partition
from tests.partitioning.balancers.cases import CELLS, check_partition, random_loads, random_mix
from tests.partitioning.routers.tile_cases import random_sample, sample_of

Case = tuple[Partition, Loads, Statistics]


def random_tree(seed: int, workers: int) -> Case:
    sample = random_sample(seed, "uniform", 60, 20)
    partition = quad_tree.build(sample, workers, cells=CELLS)
    loads = random_loads(np.random.default_rng(seed), partition)
    return partition, loads, Statistics.of(sample, depth=3, word_depth=2)


def random_kinds(seed: int, workers: int) -> Case:
    partition, loads = random_mix(seed, 5, workers)
    return partition, loads, Statistics.of(random_sample(seed, "uniform", 60, 20), WORLD, depth=3, word_depth=2)


cases = st.builds(random_tree, st.integers(0, 10**6), st.integers(1, 5)) | st.builds(
    random_kinds, st.integers(0, 10**6), st.integers(1, 5)
)


@pytest.mark.parametrize(
    ("parent", "children", "expected"),
    [
        ([0.4, 0, 0, 0, 0, 0], [[0.4, 0, 0, 0, 0, 0]] * 4, 1.0),  # every query touches every child
        ([0.4, 0, 0, 0, 0, 0], [[0.1, 0, 0, 0, 0, 0]] * 4, 0.25),  # each touches one
        ([0.4, 0.2, 0, 0, 0, 0], [[0.4, 0.05, 0, 0, 0, 0]] * 4, 0.625),
        ([0, 0, 0, 0, 0, 0], [[0, 0, 0, 0, 0, 0]] * 4, 0.0),
        ([0.5, 0, 0, 0.5, 0, 0], [[0.5, 0, 0, 0.5, 0, 0]] + [[0, 0, 0, 0, 0, 0]] * 3, 0.25),
    ],
)
def test_similarity_is_the_mean_share_of_queries_that_touch_a_child(
    parent: list[float], children: list[list[float]], expected: float
) -> None:
    assert reshape.similarity(np.array(parent), np.array(children)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ((0, 0, 8, 8), (0, 0, 0)),
        ((4, 0, 8, 4), (1, 1, 0)),
        ((6, 2, 8, 4), (2, 3, 1)),
        ((5, 5, 6, 6), (2, 2, 2)),  # a single cell: the finest node that has children
        ((3, 3, 5, 5), (0, 0, 0)),  # across the middle
        ((0, 0, 3, 1), (1, 0, 0)),
    ],
)
def test_the_smallest_node_of_j_that_covers_a_leaf(
    part: tuple[int, int, int, int], expected: tuple[int, int, int]
) -> None:
    assert reshape.smallest_cover(part, 8, 3) == expected


@given(cases, st.sampled_from([0.0, 0.5, 1.0]))
def test_the_greatest_load_falls_and_nothing_is_lost(case: Case, epsilon: float) -> None:
    partition, loads, statistics = case
    move = reshape.adjust(partition, loads, statistics, ratio=1.5, epsilon=epsilon)
    if imbalance(worker_loads(partition, loads.leaf_load)) <= 1.5:
        assert move is None
    if move is None:
        return
    check_partition(move.partition)
    assert move.after.max() < move.before.max()
    assert move.after.sum() == pytest.approx(move.before.sum())
    assert move.loads.leaf_load.tolist() == move.partition.load.tolist()
    old_kind, new_kind = partition.kind[partition.node], move.partition.kind[move.partition.node]
    assert ((old_kind == BY_QUERY) == (new_kind == BY_QUERY)).all()


def four(load: tuple[float, ...], queries: list[tuple[tuple[float, ...], list[int]]]) -> Case:
    """Quarters of the world, each with its load, and searches."""
    parts = [(0, 0, 4, 4), (4, 0, 8, 4), (0, 4, 4, 8), (4, 4, 8, 8)]
    partition = space_partition("qt", WORLD, 8, paint(parts, 8), np.zeros(4), np.arange(4) % 2, 2)
    sample = sample_of([(-180.0, -90.0, []), (180.0, 90.0, [])], queries, [0] * len(queries))
    assert extent_of(sample) == WORLD
    return partition, Loads(np.ones(64), np.ones(64), np.array(load)), Statistics.of(sample, depth=3, word_depth=2)


def test_queries_that_touch_every_child_split_by_words_and_others_by_space() -> None:
    wide = [((-180.0, -90.0, -1.0, -1.0), [word]) for word in range(1, 9)]
    small = [((x, y, x, y), [5]) for x in (-170.0, -10.0) for y in (-80.0, -10.0)]
    for queries, kind in ((wide, BY_POST), (small, SPACE)):
        case = four((90.0, 1.0, 1.0, 1.0), queries)
        move = reshape.adjust(*case, ratio=1.1)
        assert move is not None
        assert move.partition.kind[move.partition.node[0]] == kind
        assert "1 splits" in move.cause
        assert move.after.max() <= 50


def test_words_are_dealt_out_to_the_leaves() -> None:
    wide = [((-180.0, -90.0, -1.0, -1.0), [word]) for word in range(1, 9)]
    move = reshape.adjust(*four((90.0, 1.0, 1.0, 1.0), wide), ratio=1.1)
    assert move is not None
    lists = np.split(move.partition.keywords, move.partition.keyword_starts[1:-1])
    assert sorted(len(words) for words in lists if len(words)) == [2, 2, 2, 2]
    assert sorted(np.concatenate(lists).tolist()) == list(range(1, 9))


def test_without_words_a_split_is_one_of_space() -> None:
    wide = [((-180.0, -90.0, -1.0, -1.0), [])] * 8
    move = reshape.adjust(*four((90.0, 1.0, 1.0, 1.0), wide), ratio=1.1)
    assert move is not None
    assert (move.partition.kind == SPACE).all()


def test_light_quarters_are_merged_into_their_parent() -> None:
    small = [(x, y, x + 2, y + 2) for y in (4, 6) for x in (4, 6)]
    parts = [(0, 0, 4, 4), (4, 0, 8, 4), (0, 4, 4, 8), *small]
    partition = space_partition("qt", WORLD, 8, paint(parts, 8), np.zeros(7), np.zeros(7), 2)
    loads = Loads(np.ones(64), np.ones(64), np.array([100.0, 30.0, 30.0, 1.0, 1.0, 1.0, 1.0]))
    points = sample_of([(-180.0, -90.0, []), (180.0, 90.0, [])], [((-170.0, -80.0, -170.0, -80.0), [])], [0])
    move = reshape.adjust(partition, loads, Statistics.of(points, depth=3, word_depth=2), ratio=1.02)
    assert move is not None
    assert len(set(move.partition.node.reshape(8, 8)[4:, 4:].reshape(-1).tolist())) == 1
    assert move.after.max() / move.after.min() <= 1.1


def test_four_leaves_of_words_are_merged_into_one() -> None:
    base = four((90.0, 40.0, 40.0, 4.0), [])
    partition = Partition(
        **{
            **base[0].__dict__,
            "kind": np.array([SPACE, SPACE, SPACE, BY_POST], np.uint8),
            "first": np.array([0, 1, 2, 3, 7], np.int32),
            "load": np.zeros(7),
            "owner": np.array([0, 0, 0, 1, 1, 1, 1], np.int32),
            "keywords": np.arange(1, 5, dtype=np.uint64),
            "keyword_starts": np.array([0, 0, 0, 0, 1, 2, 3, 4]),
        }
    )
    loads = Loads(np.ones(64), np.ones(64), np.array([90.0, 40.0, 40.0, 1.0, 1.0, 1.0, 1.0]))
    move = reshape.adjust(partition, loads, base[2], ratio=1.01)
    assert move is not None
    assert move.partition.kind[move.partition.node[63]] == SPACE
    assert len(move.partition.keywords) == 0


@given(st.integers(0, 10**6))
def test_fg_does_what_fm_cannot(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = four(tuple(rng.permutation([200.0, 1.0, 2.0, 3.0])), [])
    move, shuffled = reshape.adjust(*case, ratio=2.0), reallocate.fm(*case[:2], ratio=2.0)
    assert move is not None
    assert imbalance(move.after) <= 2.0
    assert shuffled is None or imbalance(shuffled.after) > 2.0


def test_a_single_cell_without_words_stays_as_it_is() -> None:
    node = np.where(np.arange(64) == 0, 0, 1)
    partition = space_partition("qt", WORLD, 8, node, np.zeros(2), np.arange(2), 2)
    loads = Loads(np.ones(64), np.ones(64), np.array([50.0, 1.0]))
    assert reshape.adjust(partition, loads, four((1.0,) * 4, [])[2]) is None


def test_what_was_split_is_not_merged_again_for_a_single_hot_cell() -> None:
    partition, loads, statistics = four((90.0, 80.0, 80.0, 80.0), [])
    hot = Loads(np.where(np.arange(64) == 9, 1.0, 0.0), np.ones(64), loads.leaf_load)
    move = reshape.adjust(partition, hot, statistics, ratio=1.0)
    assert move is None or move.partition.leaves <= 2 * partition.leaves + 4
