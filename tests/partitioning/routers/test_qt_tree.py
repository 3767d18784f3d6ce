"""The QT-tree: each split against computing both, the plan against enumeration, the partition against its meaning."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.partitioning.cost_model import Prices
from nearcast.partitioning.partition import BY_POST, SPACE
from nearcast.partitioning.qt_plan import best_plan, regrown, share_out
from nearcast.partitioning.qt_split import Planter, SplitNode, leaves, plant, total
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import CRQ, SKQ, SRQ, STQ, RouterSample
from nearcast.partitioning.routers import qt_tree
from tests.partitioning.routers.twin import EDGES, SHAPES, Post, check_partition, make_sample, random_sample


def shallow(sample: RouterSample) -> Statistics:
    return Statistics.of(sample, depth=7)


def planter_of(sample: RouterSample) -> Planter:
    return Planter.of(sample, shallow(sample))


def nodes(root: SplitNode) -> Iterator[SplitNode]:
    yield root
    for child in root.children:
        yield from nodes(child)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ways", qt_tree.WAYS)
def test_no_post_misses_a_query(shape: str, ways: str) -> None:
    for seed in range(2):
        sample = random_sample(np.random.default_rng(seed), 50, 40, shape)
        j = None if ways == "best" else shallow(sample)
        check_partition(qt_tree.build(sample, 3, theta=16, ways=ways, statistics=j), sample, 3)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("workers", [1, 9])
def test_edges(edge: str, workers: int) -> None:
    partition = qt_tree.build(EDGES[edge], workers)
    check_partition(partition, EDGES[edge], workers)
    assert partition.leaves == 64 and len(set(partition.owner.tolist())) == workers


@pytest.mark.parametrize("seed", range(4))
def test_each_node_is_split_the_way_that_leaves_less_work(seed: int) -> None:
    types = [(SRQ,), (SRQ, CRQ), (SKQ, STQ), (SRQ, SKQ, CRQ)][seed]
    sample = random_sample(np.random.default_rng(seed), 300, 200, types=types, side=100.0)
    planter = planter_of(sample)
    seen = set()
    for node in nodes(plant(planter, 40)):
        if not node.children:
            continue
        spatial, textual = planter.by_space(node), planter.by_text(node)
        by_space = not textual or total(spatial) <= total(textual)
        assert node.cut == (SPACE if by_space else BY_POST)
        assert total(node.children) == pytest.approx(min(total(spatial), total(textual) if textual else np.inf))
        assert sorted(np.concatenate([child.posts for child in node.children])) == sorted(node.posts)
        seen.add(node.cut)
    assert SPACE in seen


def test_the_heaviest_node_is_split_next_until_there_are_theta_leaves() -> None:
    sample = random_sample(np.random.default_rng(3), 300, 200, types=(CRQ,))
    planter = planter_of(sample)
    previous = plant(planter, 1)
    for theta in range(4, 41, 3):
        root = plant(planter, theta)
        assert len(leaves(root)) == theta
        before = {(n.level, n.x, n.y): n.work for n in leaves(previous)}
        gone = set(before) - {(n.level, n.x, n.y) for n in leaves(root)}
        assert [before[node] for node in gone] == [max(before.values())]
        previous = root


def split_by_hand(planter: Planter, node: SplitNode) -> list[int]:
    """Textual partitioning as §4.1.2 says it: the child of each post, by the increment of W of eq. 2."""
    prices = Prices.of(planter.j, node.level, node.x, node.y)
    words: list[set[int]] = [set() for _ in range(4)]
    sizes = [0] * 4
    out = []

    def work(child: int, more: set[int], size: int) -> float:
        known = sorted(words[child] | more)
        return size * prices.post(np.array([row[known].sum() for row in prices.chances]))

    for post in node.posts.tolist():
        heard = set(planter.words[planter.offsets[post] : planter.offsets[post + 1]].tolist())
        grown = [
            round(work(child, heard, sizes[child] + 1) - work(child, set(), sizes[child]), 9) for child in range(4)
        ]
        best = min(range(4), key=lambda child: (grown[child], child))
        out.append(best)
        words[best] |= heard
        sizes[best] += 1
    return out


@pytest.mark.parametrize("seed", range(6))
def test_a_textual_split_gives_each_post_to_the_child_whose_work_grows_least(seed: int) -> None:
    sample = random_sample(np.random.default_rng(seed), 50, 80, types=(SRQ, SKQ, CRQ), vocabulary=40)
    planter = planter_of(sample)
    root = planter.root()
    expected = split_by_hand(planter, root)
    groups = [[int(p) for p, c in zip(root.posts, expected, strict=True) if c == child] for child in range(4)]
    assert [child.posts.tolist() for child in planter.by_text(root)] == [group for group in groups if group]


def test_posts_with_words_that_are_asked_for_and_others_part_company() -> None:
    # figure 3(b): one word is asked for everywhere; those that have it come together
    posts = [(float(i % 10), float(i // 10), [1 if i % 5 == 0 else 100 + i]) for i in range(100)]
    sample = make_sample(posts, [(SRQ, (0, 0, 10, 10), [[1]])] * 50)
    partition = qt_tree.build(sample, 2, theta=4)
    assert partition.kind.tolist() == [BY_POST] and partition.leaves == 2
    assert partition.load.tolist() == [0.0, 20.0]  # of 100 posts, the 20 with the word are looked at
    assert partition.keywords.tolist() == [1]  # the leaf with none stands first and has the rest


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), min_size=1, max_size=4))
def test_splits_are_shared_out_in_the_best_way(curves: list[list[int]]) -> None:
    best, parts = share_out([np.array(curve, np.float64) for curve in curves], 5)
    for budget in range(6):
        options = [c for c in product(range(6), repeat=len(curves)) if sum(c) <= budget]
        assert best[budget] == min(sum(curve[i] for curve, i in zip(curves, c, strict=True)) for c in options)
        assert parts[budget] in options
        assert best[budget] == sum(curve[i] for curve, i in zip(curves, parts[budget], strict=True))


@pytest.mark.parametrize("shape", ["spread", "crowded"])
@pytest.mark.parametrize("types", [(SRQ,), (SKQ,), (CRQ,), (SRQ, STQ, CRQ)])
def test_a_plan_has_at_most_the_work_of_space_or_text_alone(shape: str, types: tuple[int, ...]) -> None:
    sample = random_sample(np.random.default_rng(7), 400, 300, shape, types, vocabulary=60, side=20.0)
    planter = planter_of(sample)
    plan = best_plan(planter, 22)
    assert len(leaves(plan)) <= 22
    alone = [total(leaves(plant(planter, 22, ways))) for ways in ("space", "text")]
    assert total(leaves(plan)) <= min(alone) * (1 + 1e-9)
    partition = qt_tree.build(sample, 2, theta=22, statistics=shallow(sample))
    assert partition.load.sum() == pytest.approx(total(leaves(plan)))


def test_where_posts_crowd_the_plan_is_far_better_than_one_split_ahead() -> None:
    rng = np.random.default_rng(1)
    city = [(lon, lat, rng.integers(1, 60, 4).tolist()) for lon, lat in rng.normal((-74, 40), 0.3, (600, 2)).tolist()]
    asked = [(SRQ, (lon, lat, lon + 0.1, lat + 0.1), [[int(rng.integers(1, 60))]]) for lon, lat, _ in city[:300]]
    sample = make_sample([*city, (151.0, -34.0, [])], asked)
    greedy, best = (qt_tree.build(sample, 2, theta=40, ways=ways).load.sum() for ways in ("greedy", "best"))
    assert best < 0.5 * greedy


def test_a_plan_made_with_some_posts_is_carried_out_with_all() -> None:
    sample = random_sample(np.random.default_rng(2), 400, 300, types=(SRQ, CRQ), vocabulary=60, side=60.0)
    planter = planter_of(sample)
    plan = best_plan(planter, 22)
    again = regrown(planter, planter.root(), plan)
    assert [n.posts.tolist() for n in nodes(again)] == [n.posts.tolist() for n in nodes(plan)]
    rough = best_plan(planter, 22, planned=150)
    assert sum(len(leaf.posts) for leaf in leaves(rough)) == 400
    assert total(leaves(rough)) <= 1.3 * total(leaves(plan))


def test_space_below_text_cuts_all_textual_children() -> None:
    quadrant = [SplitNode(1, part % 2, part // 2, np.array([part])) for part in range(4)]
    text = [SplitNode(0, 0, 0, np.arange(4), children=quadrant), SplitNode(0, 0, 0, np.array([4]))]
    root = SplitNode(0, 0, 0, np.arange(5), cut=BY_POST, children=text)
    found = list(qt_tree.squares([root], 0, 0, 0))
    assert [(level, x, y) for level, x, y, _ in found] == [(1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1)]
    assert [here for *_, here in found] == [[quadrant[part], text[1]] for part in range(4)]


@pytest.mark.parametrize("ways", qt_tree.WAYS)
def test_the_same_sample_gives_the_same_partition(ways: str) -> None:
    samples = [random_sample(np.random.default_rng(4), 200, 150) for _ in range(2)]
    once, again = (qt_tree.build(s, 4, ways=ways, statistics=shallow(s)).__dict__ for s in samples)
    assert all(np.array_equal(once[name], again[name]) for name in once)


def test_without_queries_the_tree_follows_the_posts_and_without_posts_it_is_a_grid() -> None:
    posts: list[Post] = [(x, 0.0, []) for x in np.random.default_rng(1).normal(0, 1, 500).tolist()]
    posts.append((100.0, 50.0, []))
    crowded = qt_tree.build(make_sample(posts, []), 2)
    assert crowded.leaves == 64 and crowded.load.max() < 0.2 * crowded.load.sum()
    empty = qt_tree.build(make_sample([], []), 2)
    assert empty.leaves == 64 and np.bincount(empty.node).tolist() == [128 * 128] * 64


def test_the_baselines_split_one_way_only() -> None:
    sample = random_sample(np.random.default_rng(4), 200, 150, types=(SRQ,))
    assert (qt_tree.build(sample, 2, ways="space").kind == SPACE).all()
    text = qt_tree.build(sample, 2, ways="text")
    assert text.kind.tolist() == [BY_POST] and text.leaves > 16
    with pytest.raises(BadInput, match="one of best, greedy, space, text"):
        qt_tree.build(sample, 2, ways="time")
