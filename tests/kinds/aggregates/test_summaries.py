"""Summaries of frequent terms stay within their bounds, however they were made."""

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.storage.posts.term_summaries import (
    Summaries,
    frequent,
    leading,
    leading_exactly,
    merge,
    streamed,
    summed_up,
)

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


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), max_size=9), min_size=1, max_size=4),
    st.integers(0, 4),
    st.sets(st.integers(1, 9)),
    st.randoms(use_true_random=False),
)
@settings(max_examples=200, deadline=None)
def test_what_leads_is_what_sorting_finds(
    many: list[list[tuple[int, int]]], k: int, stop: set[int], dice: Random
) -> None:
    """Of groups in any order, without stop words, ties with the last included; those above the next are certain."""
    held = [list(dict(each).items()) for each in many]
    rows = [row for each in held for row in each]
    begins = np.cumsum([0, *map(len, held)])
    counts = np.array([n for _, n in rows], np.int64)
    asked = list(range(len(held)))
    dice.shuffle(asked)
    found = leading_exactly(
        (frozen(begins), frozen(of([term for term, _ in rows])), frozen(counts)), np.array(asked), k, of(sorted(stop))
    )
    columns = (each.tolist() for each in (found.of, found.terms, found.counts, found.certain))
    got = sorted(zip(*columns, strict=True))
    group = np.repeat(np.arange(len(held)), np.diff(begins))
    summary = summed_up(len(rows) + 1, group, of([term for term, _ in rows]), counts, len(held))
    same = leading(summary, np.array(asked), k, of(sorted(stop)))
    columns = (each.tolist() for each in (same.of, same.terms, same.counts, same.certain))
    assert got == sorted(zip(*columns, strict=True))
    right = []
    for place, which in enumerate(asked):
        ranked = sorted((n for term, n in held[which] if term not in stop), reverse=True)
        least, following = (*ranked[k - 1 : k], 0)[0], (*ranked[k:], 0)[0]
        right += [(place, t, n, n > following) for t, n in held[which] if k and t not in stop and n >= least]
    assert got == sorted(right) and not found.errors.any()


@given(counters, st.lists(terms, min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_the_greatest_are_kept_and_ties_are_broken_by_term(m: int, streams: list[list[int]], left_out: int) -> None:
    """By sorting, of exact counts; and groups that are picked from a summary are those of the summary."""
    counted = [sorted(Counter(stream).items()) for stream in streams]
    rows = [(group, term, n) for group, each in enumerate(counted) for term, n in each]
    group, term, n = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    summary = summed_up(m, group, of(term.tolist()), n, len(streams))
    kept = list(zip(summary.group.tolist(), summary.terms.tolist(), summary.counts.tolist(), strict=True))
    best = [sorted(each, key=lambda pair: (-pair[1], pair[0])) for each in counted]
    assert kept == [(group, *pair) for group, each in enumerate(best) for pair in sorted(each[:m])]
    assert summary.rest.tolist() == [each[m][1] if len(each) > m else 0 for each in best]
    picked = [group for group in reversed(range(len(streams))) if group != left_out]
    into = np.array([picked.index(group) if group in picked else -1 for group in range(len(streams))])
    fewer = merge([summary], [into], len(picked))
    again = zip(fewer.group.tolist(), fewer.terms.tolist(), fewer.counts.tolist(), strict=True)
    assert sorted((picked[to], term, n) for to, term, n in again) == [row for row in kept if row[0] in picked]
    assert fewer.rest.tolist() == [summary.rest[group] for group in picked]
