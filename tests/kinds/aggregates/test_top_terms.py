"""What is left out before counts are added up is never among the most frequent."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kinds.aggregates.group_by import groups_of, merge
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.spellings import NO_SPELLING
from nearcast.kinds.aggregates.top_terms import likely, reached_by
from nearcast.storage.posts.values import WHOLE

Counts = dict[int, dict[int, int]]  # of each group, of each term
TERMS = st.integers(1, 12).map(lambda n: (n << 60 | n) % (1 << 64)) | st.sampled_from([7 << 48, 7 << 48 | 1, 2**64 - 1])
PART = st.dictionaries(st.integers(0, 3), st.dictionaries(TERMS, st.integers(1, 40) | st.just(1), max_size=12))


def groups(counts: Counts) -> Groups:
    size = len(counts)
    words = [(at, term, posts) for at, each in enumerate(counts.values()) for term, posts in each.items()]
    return groups_of(
        Shape(("g",), (), True),
        np.full((size, 1), WHOLE, np.uint8),
        np.array(list(counts), np.int64).reshape(size, 1),
        np.ones(size, np.int64),
        np.zeros((size, 0, 3), np.int64),
        np.zeros((size, 0, 6)),
        (
            np.array([at for at, _, _ in words], np.int64),
            np.array([term for _, term, _ in words], np.uint64),
            np.array([posts for _, _, posts in words], np.int64),
        ),
        NO_SPELLING,
    )


def top(found: Groups, k: int) -> dict[int, list[tuple[int, int]]]:
    """Of each group, the k most frequent terms, ties by term."""
    out: dict[int, list[tuple[int, int]]] = {value: [] for value in found.values[:, 0].tolist()}
    of = found.values[:, 0][found.term_group].tolist()
    for group, term, posts in zip(of, found.term.tolist(), found.term_posts.tolist(), strict=True):
        out[group].append((-posts, term))
    return {group: sorted(terms)[:k] for group, terms in out.items()}


@settings(deadline=None, max_examples=300)
@given(st.lists(PART, min_size=1, max_size=5), st.integers(1, 6))
def test_the_most_frequent_terms_are_those_of_all_counts(parts: list[Counts], k: int) -> None:
    sums: dict[int, Counter[int]] = {}
    for part in parts:
        for group, counts in part.items():
            sums.setdefault(group, Counter()).update(counts)
    expected = {group: sorted((-posts, term) for term, posts in counts.items())[:k] for group, counts in sums.items()}
    kept = likely([groups(part) for part in parts], k)
    assert top(merge([groups({}), *kept]), k) == expected


def test_terms_that_are_rare_everywhere_are_left_out() -> None:
    frequent = {n << 48: 100 for n in range(1, 11)}
    rare = {n << 48: 1 for n in range(100, 5_000)}
    kept = likely([groups({0: frequent | rare}), groups({0: rare})], 10)
    assert [len(part.term) for part in kept] == [10, 0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20))), st.integers(0, 5))
def test_a_count_that_so_many_terms_reach(counted: list[tuple[int, int]], k: int) -> None:
    of, counts = (np.array([each[at] for each in counted], np.int64) for at in range(2))
    for group, least in enumerate(reached_by(of, counts, 4, k).tolist()):
        greatest = sorted((n for g, n in counted if g == group), reverse=True)
        kth = greatest[k - 1] if 0 < k <= len(greatest) else 0
        assert least == (kth if kth > 1 else 0)
