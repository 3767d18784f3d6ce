"""Keyword lists that grow while posts are routed: against the definition, and within their bounds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.partitioning import learned_words as lists
from nearcast.partitioning.learned_words import ANYWHERE, LearnedWords
from nearcast.partitioning.partition import BY_POST, BY_QUERY, SPACE, Partition
from nearcast.partitioning.routing_table import RoutingTable
from tests.partitioning.routers.conformance import prints_of
from tests.partitioning.routers.made import partition
from tests.partitioning.routers.twin import keywords_of, leaves_of
from tests.partitioning.test_routing_table import partitions
from tests.storage import cases
from tests.storage.cases import TAGS, TERMS, Post, columns_of

some_posts = st.lists(cases.posts, min_size=1, max_size=12)
any_word = st.sampled_from((*TERMS, *TAGS))


def pairs(learned: LearnedWords) -> dict[tuple[int, int], int]:
    return dict(
        zip(zip(learned.leaf.tolist(), learned.term.tolist(), strict=True), learned.count.tolist(), strict=True)
    )


def made_of(*triples: tuple[int, int, int]) -> LearnedWords:
    leaf, term, count = zip(*triples, strict=True)
    return LearnedWords.of(np.array(leaf, np.int32), np.array(term, np.uint64), np.array(count))


def textual(made: Partition, node: int) -> bool:
    """Whether the words of posts decide in a node: without any keyword their fingerprints do."""
    return made.kind[node] == BY_POST and any(keywords_of(made, leaf) for leaf in leaves_of(made, node))


def stored(table: RoutingTable, posts: list[Post]) -> np.ndarray:
    columns = columns_of(posts)
    return table.store(columns.lon, columns.lat, columns.terms, columns.offsets, prints_of(columns))


def learn(table: RoutingTable, posts: list[Post]) -> LearnedWords:
    columns = columns_of(posts)
    return table.learned(columns.terms, columns.offsets, stored(table, posts))


@settings(max_examples=80, deadline=None)
@given(partitions(), some_posts, st.lists(any_word, max_size=3))
def test_leaves_learn_the_words_asked_for_that_they_have_not_had(
    made: Partition, posts: list[Post], asked: list[int]
) -> None:
    table = RoutingTable(made)
    if asked:
        table = table.taught(made_of(*((ANYWHERE, word, 1) for word in asked)))
    nodes = {leaf: node for node in range(made.nodes) for leaf in leaves_of(made, node)}
    known = {leaf: set(keywords_of(made, leaf)) for leaf in nodes}
    words = set(asked).union(*(known[leaf] for leaf in nodes if textual(made, nodes[leaf])))
    expected: Counter[tuple[int, int]] = Counter()
    for post, leaf in zip(posts, stored(table, posts).tolist(), strict=True):
        if textual(made, nodes[leaf]):
            expected.update((leaf, word) for word in (set(post.terms) - {0}) & words - known[leaf])
    assert pairs(learn(table, posts)) == expected


@settings(max_examples=60, deadline=None)
@given(partitions(), some_posts)
def test_what_was_learned_is_known_from_then_on_and_changes_nothing_else(made: Partition, posts: list[Post]) -> None:
    table = RoutingTable(made)
    found = learn(table, posts)
    taught = table.taught(found)
    assert taught.layout(3) == RoutingTable(taught.partition).layout(3) == table.layout(3)
    for leaf in range(made.leaves):
        more = {term for at, term in pairs(found) if at == leaf}
        assert keywords_of(taught.partition, leaf) == sorted({*keywords_of(made, leaf), *more})
    leaves = stored(table, posts)  # as the posts were stored
    columns = columns_of(posts)
    assert not len(taught.learned(columns.terms, columns.offsets, leaves))
    assert not len(RoutingTable(taught.partition).learned(columns.terms, columns.offsets, leaves))


def test_a_list_has_a_bound_and_the_most_frequent_words_fill_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST", 4)
    made = partition([0], [(BY_POST, [[10, 20], [30]])], 2)
    more = made_of(*((0, word, word) for word in range(1, 10)), (0, 10, 99), (1, 5, 1), (ANYWHERE, 77, 1))
    taught = RoutingTable(made).taught(more).partition
    assert [keywords_of(taught, leaf) for leaf in (0, 1)] == [[8, 9, 10, 20], [5, 30]]
    full = RoutingTable(partition([0], [(BY_POST, [[1, 2, 3, 4, 5], []])], 2)).taught(made_of((0, 9, 5), (1, 9, 5)))
    assert [keywords_of(full.partition, leaf) for leaf in (0, 1)] == [[1, 2, 3, 4, 5], [9]]


def test_only_leaves_where_posts_decide_can_be_taught() -> None:
    made = partition([0, 1, 2, 2], [(SPACE, [[]]), (BY_QUERY, [[1], [2]]), (BY_POST, [[3], []])], 2)
    table = RoutingTable(made)
    taught = table.taught(made_of((0, 9, 1), (1, 9, 1), (4, 9, 1), (99, 9, 1)))
    assert [keywords_of(taught.partition, leaf) for leaf in range(5)] == [[], [1], [2], [3], [9]]
    assert table.taught(LearnedWords.nothing()) is table
    blank = RoutingTable(partition([0], [(SPACE, [[]])], 1))
    assert blank.taught(made_of((0, 9, 1), (ANYWHERE, 9, 1))) is blank


def test_pairs_are_united_with_their_counts() -> None:
    one, other = made_of((3, 7, 2), (1, 5, 1), (3, 7, 1)), made_of((3, 7, 5), (2, 1, 1))
    assert pairs(LearnedWords.united((one, other, LearnedWords.nothing()))) == {(1, 5): 1, (2, 1): 1, (3, 7): 8}
    assert not len(LearnedWords.united(()))


def test_a_post_is_sent_by_words_that_were_learned() -> None:
    made = partition([0], [(BY_POST, [[10], [20]])], 2)
    table = RoutingTable(made)
    here = dict(lon=np.zeros(1), lat=np.zeros(1), terms=np.array([33], np.uint64), offsets=np.arange(2))
    assert table.store(**here).tolist() == [0]
    assert table.taught(made_of((1, 33, 1))).store(**here).tolist() == [1]
