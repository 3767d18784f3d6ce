"""Algorithms 3 and 4 of Skype against trying every cut, and the loose prefix against its definition."""

from itertools import accumulate, combinations
from math import inf, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kinds.relevance.distributions.kd import KdTree, best_cut
from nearcast.kinds.relevance.distributions.shares import firsts, shares_of
from nearcast.kinds.relevance.distributions.subscriber_vocabulary import (
    SubscriberVocabulary,
    cut_words,
    pairs_of,
    prefixes,
)
from nearcast.kinds.relevance.distributions.word_cut import WordCut
from nearcast.kinds.relevance.vectors import Profiles, Vectors

Sets = list[set[int]]
some_sets = st.lists(st.sets(st.integers(0, 9), max_size=4), max_size=12)


def pairs(sets: Sets) -> tuple[np.ndarray, np.ndarray]:
    flat = np.array([word for each in sets for word in sorted(each)], np.int64)
    return pairs_of(np.array([0, *accumulate(map(len, sets))]), flat)


def cost(words: range, held: Sets, posted: Sets) -> int:
    """Equation 16, in numbers of posts instead of shares of them."""
    return sum(not each.isdisjoint(words) for each in held) * sum(not each.isdisjoint(words) for each in posted)


def runs(ends: np.ndarray) -> list[range]:
    return [range(a, b) for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


# -- Algorithm 4 -------------------------------------------------------------------------------------------------------


@given(some_sets, some_sets, st.integers(2, 7))
@settings(max_examples=150, deadline=None)
def test_the_first_cut_of_the_words_is_the_best_there_is(held: Sets, posted: Sets, workers: int) -> None:
    found = cut_words(10, pairs(held), pairs(posted), np.ones(workers, np.int64))
    low, high = workers // 2, workers - workers // 2

    def apart(cut: int) -> int:
        return abs(cost(range(cut), held, posted) * high**2 - cost(range(cut, 10), held, posted) * low**2)

    assert apart(found[low - 1]) == min(apart(cut) for cut in range(low, 10 - high + 1))


@given(some_sets, some_sets)
@settings(max_examples=60, deadline=None)
def test_every_further_cut_is_the_best_of_its_run(held: Sets, posted: Sets) -> None:
    """With four workers: the halves are cut as if they were alone."""
    a, b, c, end = cut_words(10, pairs(held), pairs(posted), np.ones(4, np.int64)).tolist()
    assert end == 10 and 0 < a < b < c < 10
    for low, cut, high in ((0, a, b), (b, c, 10)):
        differences = [
            abs(cost(range(low, at), held, posted) - cost(range(at, high), held, posted)) for at in range(low + 1, high)
        ]
        assert differences[cut - low - 1] == min(differences)


@given(some_sets, some_sets, st.integers(1, 14))
@settings(max_examples=60, deadline=None)
def test_runs_cover_all_words_and_none_is_empty_while_words_last(held: Sets, posted: Sets, workers: int) -> None:
    cut = runs(cut_words(10, pairs(held), pairs(posted), np.ones(workers, np.int64)))
    assert [word for run in cut for word in run] == list(range(10))
    assert sum(len(run) > 0 for run in cut) == min(workers, 10)


def test_cuts_come_near_the_least_variance() -> None:
    """Equation 17 over all partitions into four runs; Algorithm 4 is a heuristic, and should not be far off."""
    random = np.random.default_rng(3)

    def draw(count: int, most: int) -> Sets:
        sizes = random.integers(1, most, count)
        return [set((12 * (1 - random.random(size) ** 2)).astype(int).tolist()) for size in sizes]

    held, posted = draw(200, 4), draw(200, 8)

    def variance(ends: list[int]) -> float:
        return float(np.var([cost(run, held, posted) for run in runs(np.array(ends))]))

    found = variance(cut_words(12, pairs(held), pairs(posted), np.ones(4, np.int64)).tolist())
    every = sorted(variance([*three, 12]) for three in combinations(range(1, 12), 3))
    assert every[0] <= found <= every[len(every) // 10]


def test_a_slot_behind_which_more_workers_stand_gets_more_of_the_words() -> None:
    held = [{word} for word in range(100)]
    assert cut_words(100, pairs(held), pairs(held), np.array([1, 1])).tolist() == [50, 100]
    assert cut_words(100, pairs(held), pairs(held), np.array([1, 3])).tolist() == [25, 100]


def test_words_are_cut_evenly_where_nothing_is_known_of_costs() -> None:
    assert cut_words(12, pairs([]), pairs([]), np.ones(4, np.int64)).tolist() == [3, 6, 9, 12]
    assert cut_words(0, pairs([]), pairs([]), np.ones(3, np.int64)).tolist() == [0, 0, 0]
    assert cut_words(2, pairs([]), pairs([]), np.ones(5, np.int64)).tolist() == [1, 2, 2, 2, 2]


def test_words_rank_by_frequency_and_then_by_term() -> None:
    vocabulary = SubscriberVocabulary.of(np.array([5, 6, 7, 9], np.uint64), np.array([30, 2, 30, 1]))
    assert vocabulary.ranks(np.array([9, 6, 5, 7, 8, 2**64 - 1], np.uint64)).tolist() == [0, 1, 2, 3, -1, -1]


@pytest.mark.parametrize("ends", [[10], [1, 10], [3, 4, 9, 10], [4, 10, 10, 10], list(range(1, 11))])
def test_a_word_belongs_to_the_slot_of_its_run(ends: list[int]) -> None:
    terms = np.arange(1, 11, dtype=np.uint64) * 7
    cut = WordCut.whole(SubscriberVocabulary.of(terms, np.arange(10)), np.array(ends))
    ones = np.ones(10)
    sent = cut.of_posts(Vectors(ones, ones, terms, np.arange(11), ones))
    assert [np.flatnonzero(each).tolist() for each in sent] == [
        [slot] for slot, run in enumerate(runs(np.array(ends))) for _ in run
    ]


def test_unknown_words_go_to_all_slots_by_their_hashes() -> None:
    cut = WordCut.whole(SubscriberVocabulary.of(np.empty(0, np.uint64), np.empty(0, np.int64)), np.zeros(4, np.int64))
    ones, terms = np.ones(400), np.arange(1, 401, dtype=np.uint64)
    sent = cut.of_posts(Vectors(ones, ones, terms, np.arange(401), ones))
    assert (sent.sum(axis=1) == 1).all() and sent.sum(axis=0).min() > 60


# -- Algorithm 3 -------------------------------------------------------------------------------------------------------

coordinates = st.lists(st.sampled_from([-180.0, -1.0, -0.0, 0.0, 0.5, 2.0, 180.0]), max_size=12)


@given(coordinates, coordinates, st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_a_node_is_cut_at_the_best_of_its_subscribers_coordinates(
    mine: list[float], posts: list[float], low: int, high: int
) -> None:
    def apart(cut: float) -> int:
        below = sum(x <= cut for x in mine) * sum(x <= cut for x in posts)
        above = sum(x > cut for x in mine) * sum(x > cut for x in posts)
        return abs(below * high**2 - above * low**2)

    found = best_cut(np.array(mine), np.array(posts), low, high)
    cuts = sorted(set(mine))[:-1]
    assert found is None if not cuts else found in cuts and apart(found) == min(map(apart, cuts))


def test_nodes_are_cut_by_lon_and_lat_in_turns_and_by_the_other_where_one_does_not_cut() -> None:
    square = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    keys = np.zeros(4, np.uint64)
    tree = KdTree.of(square, square, np.ones(4, np.int64))
    assert tree.axis.tolist() == [0, 1, -1, -1, 1, -1, -1] and tree.slots(*square, keys).tolist() == [0, 1, 2, 3]
    line = np.zeros(4), np.arange(4.0)
    tree = KdTree.of(line, line, np.ones(4, np.int64))
    assert tree.axis.tolist() == [1, 1, -1, -1, 1, -1, -1] and tree.slots(*line, keys).tolist() == [0, 1, 2, 3]


def test_subscribers_that_no_line_parts_are_dealt_out_by_their_keys() -> None:
    point = np.zeros(300), np.zeros(300)
    tree = KdTree.of(point, point, np.ones(3, np.int64))
    counts = np.bincount(tree.slots(*point, np.arange(300, dtype=np.uint64)))
    assert len(counts) == 3 and counts.min() > 60


def test_leaves_cost_alike_for_any_number_of_workers() -> None:
    random = np.random.default_rng(2)
    mine, posts = random.normal(size=(2, 4000)), random.normal(size=(2, 4000)) + 0.3
    for workers in (3, 5, 8, 12):
        tree = KdTree.of((mine[0], mine[1]), (posts[0], posts[1]), np.ones(workers, np.int64))
        held, seen = (
            np.bincount(tree.slots(*each, np.zeros(4000, np.uint64)), minlength=workers) for each in (mine, posts)
        )
        costs = np.sqrt(held * seen)
        assert costs.max() < 1.25 * costs.min()


# -- loose prefixes ----------------------------------------------------------------------------------------------------


def by_definition(weights: list[float], alpha: float, theta: float, by_sum: bool) -> int:
    """The least p of which the words after it add too little; the widening is left out."""
    for p in range(1, len(weights)):
        rest = weights[p:]
        most = sum(rest) if by_sum else sqrt(sum(weight**2 for weight in rest))
        if alpha + (1 - alpha) * most < theta - 1e-9:
            return p
    return len(weights)


weights_of = st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.7, 1.0]), min_size=1, max_size=6)


alphas, thetas = st.sampled_from([0.0, 0.3, 0.6, 1.0]), st.sampled_from([0.0, 0.35, 0.62, 0.85, 1.1, inf])


@given(weights_of, alphas, thetas, st.booleans(), st.randoms())
@settings(max_examples=150, deadline=None)
def test_prefixes_are_those_of_definition_12(
    weights: list[float], alpha: float, theta: float, by_sum: bool, random: Random
) -> None:
    ranks = list(range(len(weights)))
    random.shuffle(ranks)
    one = np.ones(1)
    words = np.arange(len(weights), dtype=np.uint64)
    offsets = np.array([0, len(weights)])
    profile = Profiles(
        one, one, one * alpha, one, one.astype(int), words, offsets, np.array([weights[r] for r in ranks])
    )
    chosen = prefixes(profile, one * theta, np.array(ranks), by_sum)
    p = by_definition(weights, alpha, theta, by_sum)
    assert sorted(np.array(ranks)[chosen].tolist()) == list(range(p))


def test_the_prefix_of_the_papers_example_8() -> None:
    """alpha 0.6 and kScore 0.8 leave 0.5 for the words; here of weights 0.4, 0.3, 0.3, 0.1."""
    one = np.ones(1)
    profile = Profiles(
        one, one, one * 0.6, one, one.astype(int), np.arange(4, dtype=np.uint64), np.array([0, 4]),
        np.array([0.4, 0.3, 0.3, 0.1]),
    )  # fmt: skip
    assert prefixes(profile, one * 0.8, np.arange(4), by_sum=True).tolist() == [True, True, False, False]


# -- l1 x l2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "parts", "shares"),
    [(32, 4, [8] * 4), (5, 2, [2, 3]), (5, 99, [1] * 5), (3, 0, [3]), (32, None, [6, 6, 7, 6, 7]), (1, None, [1])],
)
def test_workers_are_shared_out_evenly(workers: int, parts: int | None, shares: list[int]) -> None:
    found = shares_of(workers, parts)
    assert found.tolist() == shares and firsts(found)[-1] == workers
