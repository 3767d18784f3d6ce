"""One suite for all matchers: on any subscribers, thresholds and posts they give the pairs of the definition."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kinds.relevance import index as igpt_batch
from nearcast.kinds.relevance.matcher import Matcher, Pairs
from nearcast.kinds.relevance.vectors import Profiles, Vectors
from nearcast_papers.baselines import igpt
from nearcast_papers.baselines.matchers import MATCHERS, brute
from tests.kinds.relevance import matching_cases as cases
from tests.oracles import relevance as oracle

Found = list[tuple[int, int, float]]
Many = tuple[Profiles, np.ndarray, Vectors, Found]
FAST = [name for name in MATCHERS if name != "brute"]
LEFT_OUT: dict[str, Callable[[Profiles, np.ndarray], Matcher]] = {
    **{f"igpt {r} alone": partial(igpt.build, rules=(r,), largest_cell=30) for r in igpt.RULES},
    **{f"igpt without {r}": partial(igpt.build, rules=set(igpt.RULES) - {r}, largest_cell=30) for r in igpt.RULES},
    "igpt without rules": partial(igpt.build, rules=(), largest_cell=30),
    "igpt in one cell and group": partial(igpt.build, groups=1, largest_cell=10**9),
    **{f"batch {r} alone": partial(igpt_batch.build, rules=(r,)) for r in sorted(igpt_batch.RULES)},
    "batch without rules": partial(igpt_batch.build, rules=()),
}


def found(pairs: Pairs) -> Found:
    return sorted(zip(pairs.rows.tolist(), pairs.posts.tolist(), pairs.scores.tolist(), strict=True))


def by_definition(profiles: list[oracle.Taste], theta: list[float], posts: list[oracle.Post]) -> Found:
    out = []
    for row, profile in enumerate(profiles):
        for number, post in enumerate(posts):
            score = oracle.score(profile, post, cases.STATISTICS)
            if score is not None and score >= theta[row]:
                out.append((row, number, score))
    return out


@st.composite
def thresholds(draw: st.DrawFn, profiles: list[oracle.Taste], posts: list[oracle.Post]) -> list[float]:
    """Of each subscriber: nothing special, or the very score of a post, or the next number above or below it."""
    out = []
    for profile in profiles:
        scores = [s for s in (oracle.score(profile, post, cases.STATISTICS) for post in posts) if s is not None]
        edges = [e for s in scores for e in (s, math.nextafter(s, 2), math.nextafter(s, 0))]
        out.append(draw(st.sampled_from([0.0, math.inf, *edges]) | st.floats(0, 1)))
    return out


@pytest.mark.parametrize("name", MATCHERS)
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_pairs_are_those_of_the_definition_bit_for_bit(name: str, data: st.DataObject) -> None:
    profiles = data.draw(st.lists(cases.profiles, max_size=12))
    posts = data.draw(st.lists(cases.posts, max_size=8))
    theta = data.draw(thresholds(profiles, posts))
    columns = cases.columns()
    matcher = MATCHERS[name](columns.profiles(profiles), np.array(theta, float))
    assert found(matcher.match(columns.vectors(posts))) == by_definition(profiles, theta, posts)


@pytest.fixture(scope="module")
def many() -> Many:
    """A crowd of which half have the very score of a post as threshold, so that no bound may be off by a little."""
    profiles, theta = cases.crowd(7, 1800, 40)
    posts = cases.stream(7, 40, 40, profiles)
    every = brute(profiles, np.zeros(len(profiles))).match(posts)
    picked = np.random.default_rng(7).permutation(len(every))
    rows, first = np.unique(every.rows[picked], return_index=True)
    exact = rows % 2 == 0
    theta[rows[exact]] = every.scores[picked][first][exact]
    right = [pair for pair in found(every) if pair[2] >= theta[pair[0]]]
    return profiles, theta, posts, right


@pytest.mark.parametrize("name", [*FAST, *LEFT_OUT])
def test_no_rule_alone_left_out_or_with_others_changes_the_pairs_of_a_crowd(name: str, many: Many) -> None:
    profiles, theta, posts, right = many
    build = {**MATCHERS, **LEFT_OUT}[name]
    assert len(right) > 1000
    assert found(build(profiles, theta).match(posts)) == right


@pytest.mark.parametrize("rule", igpt.RULES)
def test_every_rule_of_igpt_saves_looks(rule: str, many: Many) -> None:
    profiles, theta, posts, _ = many
    near = np.flatnonzero((profiles.alpha > 0.3) & (theta > 0.5))  # so that whole cells are out of the question
    profiles, theta = profiles.take(near), theta[near]
    build = partial(igpt.build, profiles, theta, largest_cell=30)
    if rule in igpt.INDIVIDUAL:
        assert candidates(build(rules=(rule,)), posts) < candidates(build(rules=()), posts)
    else:
        assert build(rules=("outer", rule)).match(posts).looked < build(rules=("outer",)).match(posts).looked


def candidates(matcher: Matcher, posts: Vectors) -> int:
    """How many subscribers are verified: those that are there still if thresholds fall after the part was built."""
    matcher._theta[:] = 0.0
    return len(matcher.match(posts))


def test_blocks_and_signs_save_looks(many: Many) -> None:
    profiles, theta, posts, right = many
    looked = {
        r: igpt_batch.build(profiles, theta, rules=r).match(posts).looked for r in ((), ("blocks",), ("postings",))
    }
    assert len(right) <= looked[("postings",)] < looked[("blocks",)] < looked[()]


def test_candidates_that_do_not_fit_are_taken_in_turns(many: Many, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles, theta, posts, right = many
    monkeypatch.setattr(igpt_batch, "MOST_CANDIDATES", 8192)
    matcher = igpt_batch.build(profiles, theta, rules=())
    assert matcher.match(posts).looked > 4 * 8192
    assert found(matcher.match(posts)) == right


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("seed", range(3))
def test_thresholds_may_rise_and_fall_and_subscribers_come_and_go(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    profiles, theta = cases.crowd(seed, 400, 15)
    posts = cases.stream(seed, 12, 15, profiles)
    matcher, right = MATCHERS[name](profiles, theta), brute(profiles, theta)
    most_parts, rebuilds = 1, 0
    for step in range(10):
        rows = rng.choice(len(matcher), rng.integers(1, 12), replace=False)
        fresh = np.where(rng.random(len(rows)) < 0.2, np.inf, matcher.theta[rows] + rng.normal(0, 0.3, len(rows)))
        fresh = np.maximum(np.nan_to_num(fresh, nan=0.2, posinf=np.inf), 0.0)
        more = cases.crowd(1000 * seed + step, int(rng.integers(0, 4)), 15)
        parts = len(matcher._parts)
        for each in (matcher, right):
            each.set_theta(rows, fresh)
            each.add(*more)
        most_parts = max(most_parts, len(matcher._parts))
        rebuilds += len(matcher._parts) < parts
        assert len(matcher) == len(right)
        assert found(matcher.match(posts)) == found(right.match(posts))
    assert most_parts > 1
    assert rebuilds > 0


@pytest.mark.parametrize("name", MATCHERS)
def test_a_matcher_begins_with_nobody_and_grows(name: str) -> None:
    profiles, theta = cases.crowd(3, 50, 6)
    posts = cases.stream(3, 6, 6, profiles)
    matcher = MATCHERS[name](profiles.take(np.arange(0)), np.empty(0))
    assert found(matcher.match(posts)) == []
    matcher.add(profiles, theta)
    assert found(matcher.match(posts)) == found(brute(profiles, theta).match(posts)) != []
    assert found(matcher.match(posts.take(np.arange(0)))) == []


@pytest.mark.parametrize("name", MATCHERS)
def test_all_on_one_spot_with_one_word_are_all_found(name: str) -> None:
    columns = cases.columns()
    profile = oracle.Taste(180.0, 12.0, frozenset((5,)), 0.4, 1.0, 1)
    post = oracle.Post(0, 0, -180.0, 12.0, (5, 5))
    matcher = MATCHERS[name](columns.profiles([profile] * 150), np.full(150, 1.0))
    assert found(matcher.match(columns.vectors([post] * 3))) == [(r, p, 1.0) for r in range(150) for p in range(3)]
