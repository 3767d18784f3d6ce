"""The routing table says what a partition means: against the definition, cell by cell and leaf by leaf."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import BadInput
from nearcast.common.expressions import And, Not, Or
from nearcast.common.geo.shapes import Rect
from nearcast.common.kernels.mix import fingerprints
from nearcast.partitioning.partition import BY_POST, BY_QUERY, SPACE, Partition
from nearcast.partitioning.routers.uniform_grid import WORLD, over
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.storage.subscriptions.kernels.register import key_terms
from nearcast.storage.subscriptions.rows import Rows
from tests.partitioning.routers.conformance import filed_rows, hold, lists, prints_of, summary_of
from tests.partitioning.routers.made import partition
from tests.partitioning.routers.twin import cell, keywords_of, leaves_of
from tests.storage import cases
from tests.storage.cases import TAGS, TERMS, Post, Subscription, columns_of, word

NO_PLACE = np.empty(0)
EXTENTS = (WORLD, (-20.0, -10.0, 60.0, 75.0), (5.0, 5.0, 1e-6, 1e-6))


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    """Up to five by five cells, nodes of any kind and any shape, words that some leaves share and some miss."""
    words = st.lists(st.sampled_from((*TERMS, *TAGS)), max_size=6)
    cut = st.one_of(
        st.just((SPACE, [[]])),
        st.tuples(st.sampled_from((BY_QUERY, BY_POST)), st.lists(words, min_size=1, max_size=4)),
    )
    cuts = draw(st.lists(cut, min_size=1, max_size=5))
    side = draw(st.integers(1, 5))
    node = draw(st.lists(st.integers(0, len(cuts) - 1), min_size=side * side, max_size=side * side))
    return partition(node, cuts, draw(st.integers(1, 4)), draw(st.sampled_from(EXTENTS)))


def node_at(made: Partition, lon: float, lat: float) -> int:
    x, y = cell(made, lon, lat)
    return int(made.node[y * made.cells + x])


def touched(made: Partition, box: list[float]) -> set[int]:
    """The nodes of the cells from one corner of a box to the other; of two boxes, where it crosses the antimeridian."""
    west, south, east, north = box
    parts = [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]
    nodes = set()
    for a, b in parts:
        (x0, y0), (x1, y1) = cell(made, a, south), cell(made, b, north)
        nodes |= {int(made.node[y * made.cells + x]) for y in range(y0, y1 + 1) for x in range(x0, x1 + 1)}
    return nodes


class Discovered(dict[tuple[int, int], int]):
    """The leaf of each (node, term) as the table has used it: always the same, and an assigned one where there is."""

    def check(self, made: Partition, node: int, term: int, leaves: set[int]) -> None:
        """`leaves` must have the leaf of the term."""
        has = [leaf for leaf in leaves_of(made, node) if term in keywords_of(made, leaf)]
        expected = leaves_of(made, node)[0] if term == 0 else has[0] if has else self.get((node, term))
        if expected is None:  # by its hash: whichever it is, if there is just one to choose from
            if len(leaves) == 1:
                self[node, term] = next(iter(leaves))
            return
        assert expected in leaves, (node, term)


def terms_by_row(rows: Rows) -> list[set[int]]:
    filed, terms = key_terms(rows.code, rows.code_offsets)
    return [set(terms[filed == row].tolist()) for row in range(len(rows))]


some_posts = st.lists(cases.posts, min_size=1, max_size=12)
some_subscriptions = st.lists(cases.subscriptions, min_size=1, max_size=8)


@settings(max_examples=80)
@given(partitions(), some_posts, some_subscriptions)
def test_posts_and_queries_go_where_the_partition_says(
    made: Partition, posts: list[Post], subscriptions: list[Subscription]
) -> None:
    table, columns, rows = RoutingTable(made), columns_of(posts), filed_rows(subscriptions)
    leaf_of = Discovered()
    for box, terms, leaves in zip(rows.boxes.tolist(), terms_by_row(rows), lists(*table.leaves_of(rows)), strict=True):
        by_node = {node: {leaf for leaf in leaves if leaf in leaves_of(made, node)} for node in touched(made, box)}
        assert set(leaves) == set().union(*by_node.values()), "nothing but leaves of the nodes that it touches"
        for node, kept in by_node.items():
            if made.kind[node] != BY_QUERY:
                assert kept == set(leaves_of(made, node))
                continue
            assert 1 <= len(kept) <= len(terms)
            for term in terms:
                leaf_of.check(made, node, term, kept)
    stored = table.store(columns.lon, columns.lat, columns.terms, columns.offsets, prints_of(columns))
    matching = lists(*table.match(columns.lon, columns.lat, columns.terms, columns.offsets, stored))
    for post, storing, leaves in zip(posts, stored.tolist(), matching, strict=True):
        node = node_at(made, post.lon, post.lat)
        assert storing in leaves_of(made, node)
        words = set(post.terms) - {0}
        if made.kind[node] == BY_QUERY:
            assert set(leaves) <= set(leaves_of(made, node))
            assert len(leaves) <= len(words) + 1
            for term in (0, *words):
                leaf_of.check(made, node, term, set(leaves))
            continue
        assert leaves == [storing]
        known = [len(words & set(keywords_of(made, leaf))) for leaf in leaves_of(made, node)]
        if made.kind[node] == BY_POST and any(keywords_of(made, leaf) for leaf in leaves_of(made, node)):
            assert storing == leaves_of(made, node)[int(np.argmax(known))]


@settings(max_examples=60)
@given(partitions(), some_posts, some_subscriptions, st.integers(1, 6))
def test_any_partition_holds(made: Partition, posts: list[Post], subs: list[Subscription], workers: int) -> None:
    hold(made, filed_rows(subs), columns_of(posts), workers)


# -- one rule at a time ------------------------------------------------------------------------------------------------

A, B, C, D = TERMS[0], TERMS[3], TERMS[4], TERMS[5]


def routed(made: Partition, *posts: tuple[int, ...]) -> tuple[list[int], list[list[int]]]:
    """(storing leaf, matching leaves) of posts of these words."""
    columns = columns_of([Post(1.0, 1.0, n, words) for n, words in enumerate(posts)])
    table = RoutingTable(made)
    stored = table.store(columns.lon, columns.lat, columns.terms, columns.offsets, prints_of(columns))
    return stored.tolist(), lists(*table.match(columns.lon, columns.lat, columns.terms, columns.offsets, stored))


def test_a_post_goes_to_the_leaf_that_knows_most_of_its_words_and_of_equals_to_the_first() -> None:
    made = partition([0], [(BY_POST, [[A, B], [A, C], [D], [B, C]])], workers=2)
    cases_ = {(A, B): 0, (C, A): 1, (D, D, D, B, C): 3, (A,): 0, (C,): 1, (D,): 2, (11, 13): 0, (): 0, (B, C, D): 3}
    assert routed(made, *cases_)[0] == list(cases_.values())


def test_leaves_without_any_keywords_share_posts_evenly_and_duplicates_meet() -> None:
    made = partition([0], [(BY_POST, [[], [], [], []])], workers=2)
    stored, matching = routed(made, *[(A,)] * 400)
    assert min(np.bincount(stored)) > 70
    assert matching == [[leaf] for leaf in stored]
    again = columns_of([Post(1.0, 1.0, n, (B, C)) for n in range(400)])
    assert RoutingTable(made).store(again.lon, again.lat, prints=prints_of(again)).tolist() == stored


def test_a_query_without_words_is_kept_by_the_first_leaf_which_sees_all_posts_while_it_stands() -> None:
    made = partition([0], [(BY_QUERY, [[A], [B], [C]])], workers=3)
    table, posts = RoutingTable(made), columns_of([Post(1.0, 1.0, 0, (B,)), Post(1.0, 1.0, 1, ())])
    none, negative = Subscription(1, None, None), Subscription(2, Rect(0.0, 0.0, 2.0, 2.0), Not(word(A)))
    on_b, either = Subscription(3, None, word(B)), Subscription(4, None, Or((word(C), And((word(B), word(D))))))
    rows = filed_rows([none, negative, on_b, either])
    kept = lists(*table.leaves_of(rows))
    assert kept[:3] == [[0], [0], [1]]
    assert 2 in kept[3]
    stored = table.store(posts.lon, posts.lat, posts.terms, posts.offsets, prints_of(posts))

    def sees(*which: int) -> list[list[int]]:
        summary = summary_of(table, rows.take(np.array(which)))
        return [
            sorted(each)
            for each in lists(*table.match(posts.lon, posts.lat, posts.terms, posts.offsets, stored, summary))
        ]

    assert sees(2) == [[1], []]
    assert sees(0, 2) == [[0, 1], [0]]
    assert sees(1) == [[0], [0]]


def test_copies_of_a_post_with_other_words_are_stored_by_the_same_leaf_where_queries_decide() -> None:
    made = partition([0], [(BY_QUERY, [[A], [B], [C], []])], workers=3)
    columns = columns_of([Post(1.0, 1.0, n // 3, words) for n in range(90) for words in [((A,), (B,), ())[n % 3]]])
    ids = np.arange(90) // 3
    prints = fingerprints(ids, np.zeros(90, np.bool_), columns.ts, columns.lon, columns.lat)
    stored = RoutingTable(made).store(columns.lon, columns.lat, columns.terms, columns.offsets, prints).reshape(30, 3)
    assert (stored == stored[:, :1]).all()
    assert len(np.unique(stored)) == 4


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_another_number_of_workers_gets_the_leaves_by_load(workers: int) -> None:
    made = replace(over(NO_PLACE, NO_PLACE, 3, cells=2), load=np.array([5.0, 1.0, 3.0, 1.0]))
    owners = RoutingTable(made).owners(workers)
    if workers == 3:
        assert owners is not made.owner
        assert owners.tolist() == made.owner.tolist()
    else:
        heaviest = np.bincount(owners, weights=made.load, minlength=workers).max()
        assert heaviest == max(5.0, 10.0 / workers)


def test_the_layout_is_another_where_another_worker_would_keep_or_store_something() -> None:
    made = partition([0, 1, 2, 2], [(BY_QUERY, [[A], [B]]), (BY_POST, [[A], [B]]), (SPACE, [[]])], workers=2)

    def layout(changed: Partition, workers: int = 2) -> str:
        return RoutingTable(changed).layout(workers)

    assert layout(made) == layout(replace(made, name="other", load=made.load * 2))
    learned = partition([0, 1, 2, 2], [(BY_QUERY, [[A], [B]]), (BY_POST, [[A, C], [B]]), (SPACE, [[]])], workers=2)
    assert layout(made) == layout(learned), "words that posts have brought"
    moved = partition([0, 1, 2, 2], [(BY_QUERY, [[B], [A]]), (BY_POST, [[A], [B]]), (SPACE, [[]])], workers=2)
    elsewhere = replace(made, extent=(0.0, 0.0, 1.0, 1.0))
    others = [moved, replace(made, owner=1 - made.owner), elsewhere, replace(made, node=made.node[::-1])]
    assert len({layout(made), layout(made, 3), *map(layout, others)}) == 6


def test_a_router_of_an_older_version_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="older version"):
        RoutingTable.load(tmp_path / "000000000001.json")


def test_the_kinds_of_work_that_a_table_needs_are_told_by_its_nodes() -> None:
    def flags(*cuts: tuple[int, list[list[int]]]) -> tuple[bool, bool, bool]:
        table = RoutingTable(partition([0], cuts, workers=2))
        return table.textual, table.shares, table.hashes

    assert flags((SPACE, [[]])) == (False, False, False)
    assert flags((BY_POST, [[], []])) == (False, False, True)
    assert flags((BY_POST, [[A], []])) == (True, False, False)
    assert flags((BY_QUERY, [[], []])) == (True, True, True)
