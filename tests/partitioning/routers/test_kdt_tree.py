"""The kdt-tree: its dynamic programme and merging against plain Python, its phases on figures, its meaning."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.partitioning.kernels.word_division import merge_leaves
from nearcast.partitioning.partition import BY_QUERY, SPACE
from nearcast.partitioning.router_sample import CRQ, CTQ, RouterSample
from nearcast.partitioning.routers import kdt_tree
from nearcast.partitioning.text_division import by_metric
from nearcast.partitioning.worker_load import LoadCosts, Traffic
from tests.papers.routers.test_text_only import COSTS, counted
from tests.partitioning.routers.twin import EDGES, SHAPES, Asked, Post, check_partition, make_sample, random_sample


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("workers", [1, 3, 20])
def test_no_post_misses_a_query(shape: str, workers: int) -> None:
    for seed in range(2):
        sample = random_sample(np.random.default_rng(seed), 50, 40, shape, vocabulary=30)
        check_partition(kdt_tree.build(sample, workers, theta=16), sample, workers)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("workers", [1, 9])
def test_edges(edge: str, workers: int) -> None:
    partition = kdt_tree.build(EDGES[edge], workers)
    check_partition(partition, EDGES[edge], workers)
    assert partition.leaves >= min(workers, 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=5), min_size=1, max_size=4), st.integers(0, 5))
def test_the_numbers_of_parts_have_the_least_load_of_all(curves: list[list[int]], more: int) -> None:
    parts = len(curves) + more
    numbers = kdt_tree.numbers_of_parts([np.array(curve, np.float64) for curve in curves], parts)
    options = [tuple(numbers) for numbers in product(*(range(1, len(curve) + 1) for curve in curves))]
    most = max(sum(option) for option in options if sum(option) <= parts)

    def load(option: tuple[int, ...]) -> int:
        return sum(curve[number - 1] for curve, number in zip(curves, option, strict=True))

    assert sum(numbers) == most
    assert load(tuple(numbers)) == min(load(option) for option in options if sum(option) == most)


def test_a_number_of_parts_that_is_not_possible_is_not_chosen() -> None:
    curves = [np.array([5.0, np.inf, 1.0]), np.array([5.0, 4.0, np.inf])]
    assert kdt_tree.numbers_of_parts(curves, 4) == [3, 1]
    assert kdt_tree.numbers_of_parts(curves, 5) == [3, 2]
    assert kdt_tree.numbers_of_parts([np.array([3.0, np.inf])] * 2, 6) == [1, 1]


def merged_by_hand(leaves: list[tuple[set[int], set[int]]], order: list[int], workers: int) -> list[int]:
    """MergeNodesIntoPartitions as §IV-B says it."""
    posts: list[set[int]] = [set() for _ in range(workers)]
    queries: list[set[int]] = [set() for _ in range(workers)]

    def load(o: set[int], q: set[int]) -> float:
        return 0.1 * len(o) * len(q) + 1.0 * len(o) + 0.5 * len(q)

    owner = [-1] * len(leaves)
    for leaf in order:
        o, q = leaves[leaf]
        now = [load(posts[w], queries[w]) for w in range(workers)]
        then = [load(posts[w] | o, queries[w] | q) for w in range(workers)]
        cheapest = min(range(workers), key=lambda w: (round(then[w] - now[w], 9), w))
        best = now.index(min(now))
        if min(now) > 0:
            after = [then[w] if w == cheapest else now[w] for w in range(workers)]
            if max(after) / min(after) <= max(now) / min(now):
                best = cheapest
        owner[leaf] = best
        posts[best] |= o
        queries[best] |= q
    return owner


@pytest.mark.parametrize("seed", range(8))
def test_leaves_are_merged_as_the_paper_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    leaves = [
        (set(rng.integers(0, 60, rng.integers(0, 20)).tolist()), set(rng.integers(0, 30, rng.integers(1, 9)).tolist()))
        for _ in range(14)
    ]
    order = rng.permutation(14)
    columns = []
    for which in (0, 1):
        lists = [sorted(leaf[which]) for leaf in leaves]
        columns += [np.cumsum([0, *map(len, lists)]), np.array([n for each in lists for n in each])]
    post_starts, posts, query_starts, queries = columns
    owner, loads = merge_leaves(order, post_starts, posts, query_starts, queries, 60, 30, 3, 0.1, 1.0, 0.5)
    assert owner.tolist() == merged_by_hand(leaves, order.tolist(), 3)
    for worker in range(3):
        mine = [leaf for leaf, w in zip(leaves, owner.tolist(), strict=True) if w == worker]
        o, q = (len(set().union(*(leaf[which] for leaf in mine))) for which in (0, 1))
        assert loads[worker] == pytest.approx(0.1 * o * q + o + 0.5 * q)


def two_halves(seed: int = 1) -> RouterSample:
    """Figure 2: in the west small queries about what posts say, in the east large ones about what few posts say."""
    rng = np.random.default_rng(seed)
    posts: list[Post] = []
    for x, y in rng.uniform((0, 0), (20, 10), (1500, 2)).tolist():
        posts.append((x, y, [int(w) for w in 1 + rng.zipf(1.6, 5) % 50]))
    for number in range(150):  # few of the eastern posts have a rare word
        posts[number] = (rng.uniform(10, 20), rng.uniform(0, 10), [1, 2, int(rng.integers(100, 108))])
    queries: list[Asked] = []
    for x, y in rng.uniform((0, 0), (10, 10), (1500, 2)).tolist():
        queries.append((CRQ, (x, y, min(x + 0.3, 10), y + 0.3), [[int(1 + rng.zipf(1.6) % 50)]]))
    for x, y in rng.uniform((10, 0), (14, 3), (4000, 2)).tolist():
        queries.append((CRQ, (x, y, x + 6, y + 7), [[int(rng.integers(100, 108))]]))
    return make_sample(posts, queries)


def test_similarity_is_the_cosine_of_word_counts() -> None:
    posts: list[Post] = [(0.0, 0.0, [1, 2]), (1.0, 1.0, [1]), (1.0, 1.0, [3])]
    sample = make_sample(posts, [(CRQ, (0, 0, 1, 1), [[1, 3]]), (CRQ, (0, 0, 1, 1), [[4]])])
    traffic = Traffic.of(sample, COSTS)
    # posts: 1 twice, 2 and 3 once; queries filed: under 1 and under 4 once
    assert kdt_tree.similarity(traffic, traffic.whole()) == pytest.approx(2 / (6**0.5 * 2**0.5))
    silent = Traffic.of(make_sample(posts, []), COSTS)
    assert kdt_tree.similarity(silent, silent.whole()) == 0.0


def test_phase_one_tells_regions_apart_by_the_words_of_posts_and_queries() -> None:
    traffic = Traffic.of(two_halves(), COSTS)
    parts = kdt_tree.alike_or_not(traffic, 0.8, 64)
    assert len(parts) > 1
    for part in parts:
        assert part.by_text == (part.rectangle[0] + part.rectangle[2] > 1024)


def test_the_west_is_cut_by_space_and_the_east_by_text() -> None:
    partition = kdt_tree.build(two_halves(), 8, delta=0.8, costs=LoadCosts(0.01, 1.0, 0.5, 0.25))
    grid = partition.node.reshape(1024, 1024)
    assert {int(k) for k in partition.kind[np.unique(grid[:, :400])]} == {SPACE}
    assert BY_QUERY in partition.kind[np.unique(grid[:, 700:])]


def test_loads_are_those_of_definition_1() -> None:
    sample = random_sample(np.random.default_rng(4), 120, 90, types=(CRQ, CTQ), vocabulary=30)
    traffic = Traffic.of(sample, COSTS)
    for part in kdt_tree.alike_or_not(traffic, 0.6, 16):
        for leaf in kdt_tree.partition_node(traffic, part, 3):
            assert leaf.load == pytest.approx(counted(sample, traffic, leaf))


@pytest.mark.parametrize("share", [0.5, 0.25, 0.6])
@pytest.mark.parametrize("axis", [0, 1])
def test_space_is_cut_where_the_heavier_side_is_lightest(axis: int, share: float) -> None:
    """Each side by its share: a quarter of the parts have a quarter of the posts and of the queries each."""
    sample = random_sample(np.random.default_rng(7), 60, 50, types=(CRQ,), vocabulary=20, side=9.0)
    traffic = Traffic.of(sample, COSTS)
    part = traffic.whole()

    def heavier(line: int) -> float:
        sides = []
        for low, high, k in ((0, line, share), (line, 1024, 1 - share)):
            o = sum(low <= at < high for at in (traffic.x, traffic.y)[axis].tolist())
            q = sum(any(r[at] < r[at + 2] and r[at] < high and low < r[at + 2] for at in (axis, axis + 4))
                    for r in traffic.rectangles.tolist())  # fmt: skip
            sides.append(COSTS.c1 * o * q / k**2 + (COSTS.c2 * o + COSTS.query * q) / k)
        return max(sides)

    first, second = kdt_tree.cut_in_two(traffic, part, axis, share)
    line = first.rectangle[axis + 2]
    assert line == second.rectangle[axis]
    assert heavier(line) == pytest.approx(min(heavier(other) for other in range(1, 1024)))


def test_a_node_is_cut_the_way_that_has_the_smaller_load() -> None:
    small: list[Asked] = [(CRQ, (x, 0.0, x + 0.1, 1.0), [[1 + i % 5]]) for i, x in enumerate(np.linspace(0, 9, 200))]
    large: list[Asked] = [(CRQ, (0.0, 0.0, 10.0, 1.0), [[1 + i % 5]]) for i in range(200)]
    posts: list[Post] = [(x, 0.5, [1 + i % 5]) for i, x in enumerate(np.linspace(0, 10, 200).tolist())]
    for queries in (small, large):
        traffic = Traffic.of(make_sample(posts, queries), COSTS)
        whole = traffic.whole()
        leaves = kdt_tree.partition_node(traffic, whole, 4)
        halves = kdt_tree.cut_in_two(traffic, whole, 0, 0.5)
        quarters = [quarter for half in halves for quarter in kdt_tree.cut_in_two(traffic, half, 0, 0.5)]
        textual = by_metric(traffic, whole, 4)
        assert len(leaves) == 4
        assert kdt_tree.total(leaves) <= min(kdt_tree.total(quarters), kdt_tree.total(textual))
        assert (len({leaf.rectangle for leaf in leaves}) > 1) == (queries is small)


@pytest.mark.parametrize("seed", range(3))
def test_workers_are_balanced_or_theta_is_reached(seed: int) -> None:
    sample = random_sample(np.random.default_rng(seed), 800, 600, types=(CRQ,), vocabulary=200, side=5.0)
    partition = kdt_tree.build(sample, 4, sigma=1.3, theta=40)
    assert 4 <= partition.leaves <= 40
    traffic = Traffic.of(sample, LoadCosts())
    assert np.bincount(partition.owner, partition.load, 4).max() < 0.5 * partition.load.sum()
    assert partition.load.sum() < 2 * traffic.whole().load


def test_the_same_sample_gives_the_same_partition() -> None:
    once, again = (kdt_tree.build(two_halves(3), 4).__dict__ for _ in range(2))
    assert all(np.array_equal(once[name], again[name]) for name in once)


def test_leaves_of_which_no_load_is_known_are_dealt_out_in_turn() -> None:
    """Without queries no worker has anything to do, and none should get all that comes."""
    made = kdt_tree.build(random_sample(np.random.default_rng(1), 3000, 0), 8)
    assert made.leaves >= 8
    assert np.bincount(made.owner, minlength=8).max() <= -(-made.leaves // 8)
