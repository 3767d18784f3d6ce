"""The choice of views: what it is worth, against all choices there are."""

from itertools import combinations, pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.kinds.aggregates.cache.selection import (
    OPENING,
    AskedQuery,
    Candidate,
    Workload,
    effort,
    load,
    select,
    select_classic,
)

NODES = [1, 4, 5, 16, 19, 22]  # the root, two of its children, three of theirs


@st.composite
def instances(draw: st.DrawFn, nodes: tuple[int, ...] = tuple(NODES), updates: bool = True, equal: bool = False):
    count = draw(st.integers(1, 6))
    candidates = []
    for number in range(count):
        node = draw(st.sampled_from(nodes))
        posts = 4_096_000.0 / 4 ** ((node.bit_length() - 1) // 2)
        candidates.append(
            Candidate(
                node,
                number,
                posts,
                draw(st.sampled_from([1.0, 20_000.0, 300_000.0])),
                1.0 if equal else draw(st.sampled_from([1.0, 2.0, 5.0])),
                draw(st.sampled_from([0.0, 10_000.0, 5_000_000.0])) if updates else 0.0,
            )
        )
    some = st.sets(st.integers(0, count - 1)).map(tuple)
    queries = [
        AskedQuery(
            draw(st.sampled_from([1.0, 3.0])), 4_096_000.0, draw(some),
            draw(st.sampled_from([float("inf"), 2_000_000.0])), draw(st.sampled_from([1.0, 0.1])),
            draw(some) if draw(st.booleans()) else (), *draw(st.sampled_from([(0.0, 0.0), (500.0, 20_000.0)])),
        )
        for _ in range(draw(st.integers(1, 5)))
    ]  # fmt: skip
    return queries, candidates


def best_way(query: AskedQuery, candidates: list[Candidate], views: set[int]) -> float:
    """n2 + n3 by trying the view of the whole region, and every set of usable views whose nodes do not overlap."""
    ways = [query.fixed + min(query.posts, query.at_most)]
    for i in set(query.whole) & views:
        ways.append(query.share * candidates[i].entries + OPENING + query.edges)
    usable = [i for i in query.options if i in views]
    for size in range(1, len(usable) + 1):
        for some in combinations(usable, size):
            spans = sorted(candidates[i].codes for i in some)
            if all(a[1] <= b[0] for a, b in pairwise(spans)):
                less = sum(query.share * candidates[i].entries + OPENING - candidates[i].posts for i in some)
                ways.append(query.fixed + min(query.posts + less, query.at_most) + query.edges)
    return min(ways)


@given(instances())
@settings(max_examples=150, deadline=None)
def test_the_effort_of_a_query_is_that_of_the_cheapest_disjoint_views(instance) -> None:
    queries, candidates = instance
    views = set(range(0, len(candidates), 2))
    for query in queries:
        assert effort(query, candidates, views) == pytest.approx(best_way(query, candidates, views))


@given(instances())
@settings(max_examples=100, deadline=None)
def test_a_benefit_is_the_load_that_a_view_takes_off(instance) -> None:
    queries, candidates = instance
    work = Workload(queries, candidates)
    for view in range(len(candidates)):
        less = load(queries, candidates, work.kept) - load(queries, candidates, work.kept | {view})
        assert work.benefit(view) == pytest.approx(max(less, 0.0))
        if view % 2:
            work.keep(view)


@given(instances(), st.sampled_from([1.0, 4.0, 100.0]))
@settings(max_examples=150, deadline=None)
def test_every_view_chosen_takes_load_off_and_fits(instance, capacity: float) -> None:
    queries, candidates = instance
    kept: list[int] = []
    for view in select(queries, candidates, capacity):
        assert load(queries, candidates, [*kept, view]) < load(queries, candidates, kept)
        kept.append(view)
    assert len(set(kept)) == len(kept)
    assert sum(candidates[view].space for view in kept) <= capacity


@pytest.mark.parametrize("choice", [select, select_classic])
@given(instance=instances(nodes=(16, 19, 22), updates=False, equal=True))
@settings(max_examples=150, deadline=None)
def test_views_of_equal_size_are_worth_63_percent_of_the_best_choice(choice, instance) -> None:
    """Harinarayan et al.'s bound, for nodes that do not overlap: what one view takes off only falls as others come."""
    queries, candidates = instance
    queries = [AskedQuery(each.times, each.posts, each.options) for each in queries]
    nothing = load(queries, candidates, ())
    for count in range(1, len(candidates) + 1):
        mine = list(choice(queries, candidates, float(count)))
        best = min(load(queries, candidates, some) for some in combinations(range(len(candidates)), count))
        assert nothing - load(queries, candidates, mine) >= 0.63 * (nothing - best) - 1e-9


def test_what_a_chosen_view_dominates_is_not_chosen() -> None:
    """The larger view answers both queries; to keep the smaller one too costs more than it saves (Definition 4.2)."""
    small = Candidate(1, "by topic", 10_000.0, 50.0, 1_000.0, updates=100.0)
    large = Candidate(1, "by topic and kind", 10_000.0, 150.0, 3_000.0, updates=100.0)
    queries = [AskedQuery(2.0, 10_000.0, (0, 1)), AskedQuery(50.0, 10_000.0, (1,))]
    work = Workload(queries, [small, large])
    assert work.is_dominated(0, by=1)
    assert not work.is_dominated(1, by=0)
    assert list(select(queries, [small, large], 10_000.0)) == [1]
    queries[0] = AskedQuery(10.0, 10_000.0, (0, 1))  # asked often enough, it pays
    assert not Workload(queries, [small, large]).is_dominated(0, by=1)


def test_a_view_that_costs_more_to_keep_up_than_it_saves_is_only_chosen_by_the_classic_greedy() -> None:
    view = Candidate(1, "", 9_000.0, 10.0, 100.0, updates=1_000_000.0)
    queries = [AskedQuery(1.0, 9_000.0, (0,))]
    assert list(select(queries, [view], 1_000.0)) == []
    assert list(select_classic(queries, [view], 1_000.0)) == [0]


@given(instances())
@settings(max_examples=50, deadline=None)
def test_nothing_fits_in_nothing(instance) -> None:
    queries, candidates = instance
    assume(all(each.space > 0 for each in candidates))
    assert not list(select(queries, candidates, 0.0)) and not list(select_classic(queries, candidates, 0.0))
