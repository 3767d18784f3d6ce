"""Phase I against counting posts and queries, and the decision to begin anew."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.partitioning.balancers import text_cuts as retext
from nearcast.partitioning.moves import Loads, imbalance, worker_loads
from nearcast.partitioning.partition import BY_QUERY, SPACE, Partition
from nearcast.partitioning.redrawn import DrawnNode, Leaf
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.sample_tally import WORLD
from nearcast.partitioning.tiles import space_partition
from tests.partitioning.balancers.cases import CELLS, check_partition, random_mix, random_tiles
from tests.partitioning.routers.tile_cases import random_sample, sample_of

Case = tuple[Partition, Loads, RouterSample]
COSTS = retext.CutCosts(1.0, 1.0, 1.0)
lists = st.lists(st.integers(0, 6), max_size=4)


def here_of(posts: list[list[int]], queries: list[list[int]]) -> retext.Here:
    """A place of one cell, from the words of posts and the key words of queries ([] for a query without)."""
    keys = [(i, word) for i, each in enumerate(queries) for word in (sorted(set(each)) or [0])]
    words = [(i, word) for i, each in enumerate(posts) for word in each]
    return retext.Here(
        np.array([0]),
        len(posts),
        np.array([i for i, _ in words], np.int64),
        np.array([word for _, word in words], np.uint64),
        np.array([i for i, _ in keys], np.int64),
        np.array([word for _, word in keys], np.uint64),
    )


def load_of(posts: list[list[int]], queries: list[list[int]], words: set[int], anyway: bool) -> float:
    """Definition 1 for the leaf of some words, by counting; `anyway` it has all posts and the queries without words."""
    sent = sum(anyway or bool(words & set(post)) for post in posts)
    kept = sum(bool(words & set(query)) or (anyway and not query) for query in queries)
    return COSTS.load(sent, kept)


@given(st.lists(lists, max_size=8), st.lists(lists.map(lambda each: [w for w in each if w][:2]), max_size=8))
def test_a_cut_by_words_lowers_the_load_as_counted(posts: list[list[int]], queries: list[list[int]]) -> None:
    change = retext.by_words(here_of(posts, queries), COSTS, 0, 1)
    if change is None:
        return
    node, factor = change
    before = COSTS.load(len(posts), len(queries))
    wordless = any(not query for query in queries)
    parts = [set(leaf.words.tolist()) for leaf in node.leaves]
    after = [load_of(posts, queries, part, wordless and i == 0) for i, part in enumerate(parts)]
    assert sum(after) == pytest.approx(factor * before)
    assert factor < 1
    assert [leaf.share for leaf in node.leaves] == pytest.approx([each / sum(after) for each in after])
    assert parts[0].isdisjoint(parts[1])
    assert parts[0] | parts[1] == {word for query in queries for word in query}
    assert sorted(leaf.owner for leaf in node.leaves) == [0, 1]


@given(
    st.lists(lists, max_size=8),
    st.lists(lists.map(lambda each: [w for w in each if w][:2]), max_size=6),
    st.integers(2, 3),
)
def test_merging_lowers_the_load_as_counted(posts: list[list[int]], queries: list[list[int]], leaves: int) -> None:
    words = [set(range(1, 7)[i::leaves]) for i in range(leaves)]
    wordless = any(not query for query in queries)
    loads = [load_of(posts, queries, part, wordless and i == 0) for i, part in enumerate(words)]
    total = sum(loads) or 1.0
    node = DrawnNode(
        BY_QUERY,
        tuple(Leaf(i, np.array(sorted(part), np.uint64), loads[i] / total) for i, part in enumerate(words)),
    )
    change = retext.together(here_of(posts, queries), COSTS, node, 1, 0)
    united = load_of(posts, queries, words[0] | words[1], wordless)
    if united >= loads[0] + loads[1]:
        assert change is None
        return
    assert change is not None
    merged, factor = change
    assert factor == pytest.approx((united + sum(loads[2:])) / total)
    assert merged.kind == (SPACE if leaves == 2 else BY_QUERY)
    assert sum(leaf.share for leaf in merged.leaves) == pytest.approx(1)
    assert [leaf.owner for leaf in merged.leaves] == [0, *range(2, leaves)]
    if leaves == 3:
        assert set(merged.leaves[0].words.tolist()) == words[0] | words[1]


def test_no_leaf_of_the_other_worker_is_no_merge() -> None:
    node = DrawnNode(BY_QUERY, (Leaf(0, np.array([1], np.uint64), 0.5), Leaf(2, np.array([2], np.uint64), 0.5)))
    assert retext.together(here_of([[1, 2]] * 9, []), COSTS, node, 0, 1) is None


def random_case(seed: int, mixed: bool, workers: int) -> Case:
    partition, loads = random_mix(seed, 6, workers) if mixed else random_tiles(seed, 6, workers)
    return partition, loads, random_sample(seed, "uniform", 60, 30)


cases = st.builds(random_case, st.integers(0, 10**6), st.booleans(), st.integers(1, 4))


@given(cases, st.sampled_from([1, 3, 20]), st.sampled_from([1, 4]))
def test_the_total_falls_and_only_two_workers_change(case: Case, cells: int, side: int) -> None:
    partition, loads, sample = case
    move = retext.phase_one(partition, loads, sample, 1.0, cells, COSTS, side)
    if move is None:
        return
    check_partition(move.partition)
    two = [int(move.before.argmax()), int(move.before.argmin())]
    others = np.delete(np.arange(partition.workers), two)
    assert move.after.sum() <= move.before.sum() + 1e-9
    assert move.after[two].max() < move.before.max() + 1e-9
    assert move.after[others] == pytest.approx(move.before[others])


@given(cases)
def test_both_phases_together_relieve_the_most_loaded(case: Case) -> None:
    partition, loads, sample = case
    move = retext.local(partition, loads, sample, ratio=1.2, side=4)
    load = worker_loads(partition, loads.leaf_load)
    if imbalance(load) <= 1.2:
        assert move is None
    if move is not None:
        check_partition(move.partition)
        worst = int(load.argmax())
        assert move.after[worst] < move.before[worst]
        assert move.loads.leaf_load.tolist() == pytest.approx(move.partition.load.tolist())


def test_rare_key_words_are_worth_a_cut_and_frequent_ones_are_not() -> None:
    partition = space_partition("kd", WORLD, CELLS, np.arange(64) // 32, np.zeros(2), np.arange(2), 2)
    loads = Loads(np.ones(64), np.ones(64), np.array([90.0, 1.0]))
    boxes = [((-180.0, -90.0, 180.0, -80.0), [word]) for word in range(1, 9)]
    rare = sample_of([(-10.0, -85.0, [50 + i]) for i in range(20)] + [(-10.0, -85.0, [i]) for i in range(1, 9)], boxes)
    frequent = sample_of([(-10.0, -85.0, list(range(1, 9)))] * 28, boxes)
    move = retext.phase_one(partition, loads, rare, side=2)
    assert move is not None
    assert move.cause.endswith("1 cells cut by words, 0 merged")
    assert (move.partition.kind == BY_QUERY).sum() == 1
    assert retext.phase_one(partition, loads, frequent, side=2) is None


@pytest.mark.parametrize(
    ("current", "fresh", "expected"),
    [
        ([5.0, 5.0], [5.0, 5.0], False),
        ([5.0, 5.0], [4.4, 4.4], True),  # 12% less in all
        ([5.0, 5.0], [4.8, 4.8], False),
        ([9.0, 1.0], [5.0, 5.0], True),  # back in balance
        ([5.0, 5.0], [7.0, 1.0], False),  # less, but out of balance
        ([9.0, 1.0], [8.0, 1.0], True),  # neither is in balance, one is less
    ],
)
def test_a_fresh_partition_is_worth_it_if_it_balances_or_saves(
    current: list[float], fresh: list[float], expected: bool
) -> None:
    assert retext.repartition(np.array(current), np.array(fresh)) is expected
