"""Indexes of standing aggregates are exact."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.expressions import And, Or
from nearcast.common.geo.shapes import Rect
from nearcast.kinds.aggregates.ch_plan import MOST_LEVELS, TreePlan
from nearcast.kinds.aggregates.condition_index import EachPair, Seen, StandingIndex, distinct_conditions
from nearcast.kinds.aggregates.index import ChTrees
from nearcast.kinds.aggregates.kernels.ch_walk import EQUAL, PLACE, WORDS
from nearcast.storage.subscriptions.rows import Rows
from nearcast_papers.baselines.op_index import OpIndex
from nearcast_papers.baselines.range_aggregates import RangeAggregates
from nearcast_papers.baselines.rp_trees import RpTrees
from tests.kinds.aggregates.condition_conformance import (
    Query,
    StandingIndexSuite,
    Told,
    attributes_of,
    conditions,
    crowd,
    pairs,
    queries,
    told,
)
from tests.storage.cases import TERMS, Post, Subscription, columns_of, word


class TestChTrees(StandingIndexSuite):
    index = ChTrees


class TestChTreesOfFewQueries(StandingIndexSuite):
    """So few that most indexes have several trees, and insertions make new ones."""

    index = ChTrees

    def built(self, rows: Rows, seen: Seen) -> StandingIndex:
        return ChTrees.build(rows, seen, capacity=max(4, len(rows) // 10))


class TestOpIndex(StandingIndexSuite):
    index = OpIndex


class TestRpTrees(StandingIndexSuite):
    index = RpTrees


class TestRangeAggregates(StandingIndexSuite):
    index = RangeAggregates


# -- what only the CH-tree has -----------------------------------------------------------------------------------------


def seen_in(posts: list[Told]) -> Seen:
    return Seen.of(columns_of([each.post for each in posts]), attributes_of(posts))


def test_the_most_selective_predicate_comes_first() -> None:
    """Half of the posts have the word, a tenth the topic, one in a hundred is in a range."""
    posts = [
        Told(Post(at % 100 + 0.5, 0.5, 5, (TERMS[0],) if at % 2 else ()), (("topic", at % 10),)) for at in range(1000)
    ]
    wanted = [
        Query(Subscription(at, Rect(at % 100, 0, at % 100 + 1, 1), word(TERMS[0])), (("topic", "=", (at % 10,)),))
        for at in range(200)
    ]
    assert [level.kind for level in TreePlan.of(conditions(wanted), seen_in(posts)).levels][-1] == WORDS
    rare = [Told(each.post, (("topic", at),)) for at, each in enumerate(posts)]
    wanted = [Query(each.subscription, (("topic", "=", (at,)),)) for at, each in enumerate(wanted)]
    assert TreePlan.of(conditions(wanted), seen_in(rare)).levels[0].kind == EQUAL


def test_a_predicate_that_few_queries_have_comes_late() -> None:
    posts = [Told(Post(at % 100 + 0.5, 0.5), (("topic", at % 10), ("odd", at))) for at in range(500)]
    wanted = [Query(Subscription(at, Rect(at % 100, 0, at % 100 + 1, 1))) for at in range(99)]
    wanted.append(Query(predicates=(("odd", "=", (1,)),)))
    levels = TreePlan.of(conditions(wanted), seen_in(posts)).levels
    assert [(level.kind, level.name) for level in levels] == [(PLACE, ""), (EQUAL, "odd")]


def test_of_many_predicates_the_costliest_are_checked_in_the_leaves() -> None:
    wanted = [Query(predicates=((f"x{at}", "=", (1,)), ("y", "=", (2,)))) for at in range(30)]
    posts = [Told(attributes=((f"x{at}", 1), ("y", at % 3))) for at in range(30)]
    rows = conditions(wanted)
    assert len(TreePlan.of(rows, seen_in(posts)).levels) == MOST_LEVELS
    assert pairs(ChTrees.build(rows, seen_in(posts)), posts) == pairs(EachPair(rows), posts)


def test_a_full_tree_is_left_alone_and_the_next_planned_anew() -> None:
    wanted, posts = crowd(5, 50, 40)
    rows, seen = conditions(wanted), seen_in(posts)
    index = ChTrees.build(rows.take(np.arange(25)), seen, capacity=20)
    assert [len(tree.queries.rows) for tree in index.trees] == [20, 5]
    more = index.insert(rows.take(np.arange(25, 50)))
    assert [len(tree.queries.rows) for tree in more.trees] == [20, 20, 10]
    assert more.trees[0] is index.trees[0]
    assert more.trees[1].plan is index.trees[1].plan
    assert [len(tree.queries.rows) for tree in index.trees] == [20, 5]  # a value


def test_dropped_queries_are_marked_then_leave_and_an_empty_tree_goes_at_once() -> None:
    wanted, posts = crowd(6, 60, 40)
    rows = conditions(wanted)
    index = ChTrees.build(rows, seen_in(posts), capacity=20)
    fewer = index.remove(rows.seq[:25])
    assert [int(tree.inactive.sum()) for tree in fewer.trees] == [5, 0]
    assert fewer.trees[0].tree is index.trees[1].tree
    clean = fewer.remove(rows.seq[25:35]).cleaned()
    assert [len(tree.queries.rows) for tree in clean.trees] == [20, 5]
    assert pairs(clean, posts) == pairs(EachPair(rows.take(np.arange(35, 60))), posts)
    assert not index.remove(rows.seq).trees


def test_a_tree_whose_queries_change_gathers_few_that_are_dropped(monkeypatch) -> None:
    monkeypatch.setattr("nearcast.kinds.aggregates.index.MOST_INACTIVE", 10)
    wanted, posts = crowd(7, 200, 60)
    rows = conditions(wanted)
    index = ChTrees.build(rows.take(np.arange(40)), seen_in(posts), capacity=16)
    for first in range(40, 200, 10):
        index = index.insert(rows.take(np.arange(first, first + 10))).remove(rows.seq[first - 40 : first - 30])
        assert sum(int(tree.inactive.sum()) for tree in index.trees) <= 10
        assert len(index.trees) <= 6
    assert pairs(index, posts) == pairs(EachPair(rows.take(np.arange(160, 200))), posts)


# -- equal conditions --------------------------------------------------------------------------------------------------


def test_equal_conditions_are_one_whatever_the_order_of_their_words_or_their_times() -> None:
    a, b, c = (word(term) for term in TERMS[:3])
    wanted = [
        Query(Subscription(1, None, And((a, b)), start=3)),
        Query(Subscription(2, None, And((b, a)), end=9)),
        Query(Subscription(3, None, Or((a, b)))),
        Query(Subscription(4, None, Or((b, a)))),
        Query(Subscription(5, None, And((a, c)))),
        Query(Subscription(6, Rect(0, 0, 1, 1), And((a, b)))),
        Query(Subscription(7, None, And((a, b))), (("x", "=", (1,)),)),
        Query(Subscription(8)),
        Query(Subscription(9, life=4)),
    ]
    first, which = distinct_conditions(conditions(wanted))
    groups = {tuple(np.flatnonzero(which == each).tolist()) for each in range(len(first))}
    assert groups == {(0, 1), (2, 3), (4,), (5,), (6,), (7, 8)}
    assert [which[row] for row in first.tolist()] == list(range(len(first)))


@settings(max_examples=30)
@given(st.lists(queries, max_size=8), st.lists(told, max_size=8), st.data())
def test_rows_with_the_conditions_of_another_match_what_it_matches(
    wanted: list[Query], posts: list[Told], data: st.DataObject
) -> None:
    again = data.draw(st.lists(st.sampled_from(wanted), max_size=4)) if wanted else []
    rows = conditions(wanted + again)
    first, which = distinct_conditions(rows)
    assert len(first) <= len(wanted)
    found = pairs(EachPair(rows), posts)
    for row, one in enumerate(which.tolist()):
        assert {p for p, q in found if q == row} == {p for p, q in found if q == first[one]}
