"""Summaries of frequent terms stay within their bounds, however they were made."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.cache.space_saving import Summaries, frequent, merge, streamed, summed_up

terms = st.lists(st.integers(1, 12), max_size=60)
counters = st.integers(1, 8)


def of(stream: list[int]) -> np.ndarray:
    return np.array(stream, np.uint64)


def exact(m: int, stream: list[int]) -> Summaries:
    counted = Counter(stream)
    keys = sorted(counted)
    return summed_up(m, np.zeros(len(keys), np.int64), of(keys), np.array([counted[key] for key in keys], np.int64), 1)


def check_bounds(summary: Summaries, stream: list[int], k: int) -> None:
    """The four guarantees of the module's docstring, and what `frequent` says of the k most frequent."""
    truth = Counter(stream)
    kept = dict(
        zip(summary.terms.tolist(), zip(summary.counts.tolist(), summary.errors.tolist(), strict=True), strict=True)
    )
    rest = int(summary.rest[0])
    assert int(summary.total[0]) == len(stream)
    assert len(kept) == len(summary.terms) <= summary.m
    assert rest * summary.m <= len(stream)
    for term, (count, error) in kept.items():
        assert count - error <= truth[term] <= count
        assert error <= rest
    assert all(n <= rest for term, n in truth.items() if term not in kept)

    best = frequent(summary, 0, k)
    assert len(best.terms) == min(k, len(kept))
    assert best.bound == rest and (best.errors <= best.bound).all()
    assert all(a >= b for a, b in pairwise(best.counts.tolist()))
    ordered = sorted(truth.values(), reverse=True)
    kth = ordered[k - 1] if len(ordered) >= k else 0
    for term, certain in zip(best.terms.tolist(), best.certain.tolist(), strict=True):
        assert truth[term] * summary.m >= kth * summary.m - len(stream)  # the theorem the right way round
        if certain:
            assert sum(n > truth[term] for n in truth.values()) < k
            assert sum(n >= truth[term] for n in truth.values()) <= k


@given(counters, terms, st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_a_stream_is_summed_up_within_the_bounds(m: int, stream: list[int], k: int) -> None:
    check_bounds(streamed(m, of(stream)), stream, k)


@given(counters, terms, st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_exact_counts_are_summed_up_without_error(m: int, stream: list[int], k: int) -> None:
    summary = exact(m, stream)
    assert not summary.errors.any()
    check_bounds(summary, stream, k)


@given(counters, st.lists(st.tuples(terms, st.booleans()), min_size=1, max_size=5), st.integers(1, 4), st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_bounds_survive_merging(m: int, parts: list[tuple[list[int], bool]], k: int, at_once: bool) -> None:
    made = [exact(m, part) if known else streamed(m, of(part)) for part, known in parts]
    here = np.zeros(1, np.int64)
    if at_once:
        merged = merge(made, [here] * len(made), 1)
    else:
        merged = made[0]
        for part in made[1:]:
            merged = merge([merged, part], [here, here], 1)
    check_bounds(merged, [term for part, _ in parts for term in part], k)


@given(counters, st.lists(st.lists(terms, min_size=3, max_size=3), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_each_group_is_merged_for_itself(m: int, parts: list[list[list[int]]]) -> None:
    made = []
    for part in parts:
        rows = [(group, term, n) for group, stream in enumerate(part) for term, n in sorted(Counter(stream).items())]
        group, term, n = (np.array([row[i] for row in rows], np.int64) for i in range(3))
        made.append(summed_up(m, group, term.astype(np.uint64), n, 3))
    merged = merge(made, [np.array([1, -1, 0])] * len(made), 2)
    for to, source in ((0, 2), (1, 0)):
        mine = merged.group == to
        one = Summaries(
            m, np.zeros(int(mine.sum()), np.int64), merged.terms[mine], merged.counts[mine], merged.errors[mine],
            merged.rest[to : to + 1], merged.total[to : to + 1],
        )  # fmt: skip
        check_bounds(one, [term for part in parts for term in part[source]], 2)


@pytest.mark.parametrize("m", [1, 3, 1000])
def test_nothing_is_summed_up_as_nothing(m: int) -> None:
    for summary in (streamed(m, of([])), exact(m, []), merge([exact(m, [])], [np.zeros(1, np.int64)], 1)):
        assert not len(summary.terms) and summary.rest.tolist() == [0] and not len(frequent(summary, 0, 3).terms)


def test_terms_that_stand_out_are_certain_and_ties_are_not() -> None:
    best = frequent(exact(4, [1] * 9 + [2] * 5 + [3] * 5 + [4] * 2 + [5]), 0, 2)
    assert best.terms.tolist() == [1, 2] and best.counts.tolist() == [9, 5]
    assert best.certain.tolist() == [True, False]
