"""Partitions of the text: their meaning, and each way to deal words out against plain Python."""

from collections.abc import Callable

import numpy as np
import pytest

from nearcast.partitioning.kernels.word_division import by_load
from nearcast.partitioning.partition import BY_QUERY, Partition
from nearcast.partitioning.router_sample import CRQ, CTQ, SRQ, RouterSample
from nearcast.partitioning.worker_load import LoadCosts, LoadPart, Traffic
from nearcast_papers.routers import text_only
from nearcast_papers.routers.kernels.word_parts import refine_cut
from tests.partitioning.routers.twin import (
    EDGES,
    SHAPES,
    check_partition,
    conjunctions,
    make_sample,
    random_sample,
    words_of,
)

BUILDERS = [text_only.build_frequency, text_only.build_hypergraph, text_only.build_metric]
WAYS = [text_only.by_frequency, text_only.by_hypergraph, text_only.by_metric]
COSTS = LoadCosts(0.01, 1.0, 0.5, 0.25)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("build", BUILDERS)
def test_no_post_misses_a_query(shape: str, build: Callable[..., Partition]) -> None:
    sample = random_sample(np.random.default_rng(3), 60, 60, shape)
    partition = build(sample, 4)
    check_partition(partition, sample, 4)
    assert partition.kind.tolist() == [BY_QUERY] and partition.owner.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("workers", [1, 5])
@pytest.mark.parametrize("build", BUILDERS)
def test_edges(edge: str, workers: int, build: Callable[..., Partition]) -> None:
    check_partition(build(EDGES[edge], workers), EDGES[edge], workers)


def counted(sample: RouterSample, traffic: Traffic, part: LoadPart) -> float:
    """The load of a part by Definition 1, post by post and query by query."""
    words = None if part.words is None else {int(word) for word in traffic.vocabulary[part.words]}
    queries, keys, everything = 0, set(), False
    for row in part.queries.tolist():
        filed = {key for key, _ in conjunctions(sample.queries, row)}
        everything |= 0 in filed and part.first
        filed = filed - {0} if words is None else filed & words
        keys |= filed
        queries += 1
    posts = sum(everything or bool(keys & set(words_of(sample.posts, row))) for row in part.posts.tolist())
    return COSTS.c1 * posts * queries + COSTS.c2 * posts + (COSTS.c3 + COSTS.c4) * queries


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_loads_are_those_of_definition_1(way: text_only.Divide, seed: int) -> None:
    sample = random_sample(np.random.default_rng(seed), 80, 60, types=(CRQ, CTQ) if seed else (CRQ,), vocabulary=30)
    traffic = Traffic.of(sample, COSTS)
    whole = traffic.whole()
    assert whole.load == pytest.approx(counted(sample, traffic, whole))
    for part in way(traffic, whole, 3):
        assert part.load == pytest.approx(counted(sample, traffic, part))


def test_every_filed_word_belongs_to_one_leaf() -> None:
    sample = random_sample(np.random.default_rng(5), 80, 60, types=(CRQ,), vocabulary=30)
    filed = {key for row in range(60) for key, _ in conjunctions(sample.queries, row)} - {0}
    for build in BUILDERS:
        assert sorted(build(sample, 3).keywords.tolist()) == sorted(filed)


def test_by_frequency_the_parts_have_words_equally_frequent() -> None:
    rng = np.random.default_rng(1)
    posts = [(float(i), 0.0, np.unique(rng.integers(1, 40, 4) ** 2).tolist()) for i in range(170)]
    sample = make_sample(posts, [(CRQ, (0, -1, 170, 1), [[i * i]]) for i in range(1, 40)])
    partition = text_only.build_frequency(sample, 4)
    often = np.array([sum(int(word) in post[2] for post in posts) for word in partition.keywords])
    sums = np.add.reduceat(often, partition.keyword_starts[:-1])
    assert np.ptp(sums) <= often.max()


def topics(seed: int, count: int = 400) -> RouterSample:
    """Posts of three words from one of eight topics, most queries about one word each."""
    rng = np.random.default_rng(seed)
    posts = []
    for _ in range(count):
        words = 1 + rng.integers(8) * 10 + rng.permutation(10)[:3]
        posts.append((rng.uniform(0, 1), rng.uniform(0, 1), words.tolist()))
    return make_sample(posts, [(CRQ, (0, 0, 1, 1), [[int(rng.integers(1, 81))]]) for _ in range(300)])


@pytest.mark.parametrize("seed", range(3))
def test_words_that_occur_together_are_put_together(seed: int) -> None:
    sample = topics(seed)
    traffic = Traffic.of(sample, LoadCosts())
    copies = [sum(len(part.sent) for part in way(traffic, traffic.whole(), 4)) for way in WAYS]
    assert copies[1] < 0.75 * copies[0] and copies[2] < copies[0]


@pytest.mark.parametrize("seed", range(5))
def test_moving_words_saves_the_pairs_it_says_and_keeps_the_balance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nets = [np.unique(rng.integers(0, 12, 3)) for _ in range(40)]
    lists = [[post for post, net in enumerate(nets) if slot in net] for slot in range(12)]
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.array([post for each in lists for post in each])
    weights = np.array([len(each) for each in lists], np.float64)
    part = rng.integers(0, 3, 12).astype(np.int32)

    def pairs() -> int:
        return sum(len({int(part[slot]) for slot in net}) for net in nets)

    def off() -> float:
        sums = np.bincount(part, weights, 3)
        return float(np.abs(sums / sums.mean() - 1).max())

    before, was_off = pairs(), off()
    saved = refine_cut(part, starts, flat, 40, weights, 3, 0.5, 10)
    assert before - pairs() == saved >= 0
    assert off() <= max(was_off, 0.5)


@pytest.mark.parametrize("held", [0, 2])
def test_by_metric_each_word_goes_where_the_load_stays_least(held: int) -> None:
    rng = np.random.default_rng(held)
    lists = [np.flatnonzero(rng.random(20) < 0.3) for _ in range(9)]
    filed = rng.integers(1, 5, 9).astype(np.float64)
    order = rng.permutation(9)
    starts = np.cumsum([0, *map(len, lists)])
    out = by_load(order, starts, np.concatenate(lists), 20, filed, 3, held, 0.1, 1.0, 0.5)
    posts: list[set[int]] = [set(range(20)) if held and part == 0 else set() for part in range(3)]
    queries = [float(held), 0.0, 0.0]
    for slot in order:
        loads = []
        for part in range(3):
            o, q = len(posts[part] | set(lists[slot].tolist())), queries[part] + filed[slot]
            loads.append(0.1 * o * q + 1.0 * o + 0.5 * q)
        best = loads.index(min(loads))
        assert out[slot] == best
        posts[best] |= set(lists[slot].tolist())
        queries[best] += filed[slot]


def test_searches_count_only_where_nothing_stands() -> None:
    posts = [(float(i), 0.0, [1 + i % 3]) for i in range(9)]
    both = make_sample(posts, [(SRQ, (0, -1, 9, 1), [[1]]), (CRQ, (0, -1, 9, 1), [[2]])])
    assert text_only.build_metric(both, 2).keywords.tolist() == [2]
    searches = make_sample(posts, [(SRQ, (0, -1, 9, 1), [[1]])])
    assert text_only.build_metric(searches, 2).keywords.tolist() == [1]


def test_a_thinned_sample_stands_for_the_whole() -> None:
    sample = topics(1, 800)
    whole, thin = (text_only.build_metric(sample, 4, most=most).load.sum() for most in (1000, 200))
    assert thin == pytest.approx(whole, rel=0.3)
