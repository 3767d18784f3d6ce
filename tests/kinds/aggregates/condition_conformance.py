"""The suite that every index of standing aggregates inherits: on any conditions and posts it gives the brute-force
pairs, each once, however its queries came and went.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.common.expressions import And, Not, Or
from nearcast.common.geo.shapes import Circle, Polygon, Rect
from nearcast.common.post_schema import ATTRIBUTE_KINDS, attribute_column
from nearcast.kinds.aggregates.condition_index import EachPair, Seen, StandingIndex
from nearcast.storage.subscriptions.rows import Rows
from tests.storage import cases
from tests.storage.cases import TERMS, Post, Subscription, columns_of, phrase, rows_of, word

Pairs = Counter[tuple[int, int]]  # (post, seq of the query)
Value = Any
MOMENTS = ("2024-01-01", "2024-06-01T12:00:00", "1969-12-31T23:59:59.999999")
ANYTHING, NOWHERE = Subscription(0), Post(0.0, 0.0)
inherited = [HealthCheck.differing_executors, HealthCheck.too_slow]


@dataclass(frozen=True)
class Query:
    """Conditions; `predicates` as in an encoded query."""

    subscription: Subscription = ANYTHING
    predicates: tuple[tuple[str, str, tuple[Value, ...]], ...] = ()


@dataclass(frozen=True)
class Told:
    """A post and its attributes: name → value; a pair (kind, value) where the value alone does not tell."""

    post: Post = NOWHERE
    attributes: tuple[tuple[str, Value], ...] = ()


def conditions(queries: list[Query], first_seq: int = 0) -> Rows:
    rows = rows_of([query.subscription for query in queries], first_seq)
    texts = [json.dumps([[n, op, list(v)] for n, op, v in q.predicates]) if q.predicates else None for q in queries]
    return Rows(**{**rows.__dict__, "predicates": pa.array(texts, pa.string())})


def attributes_of(told: list[Told]) -> pa.Table:
    """One column a kind, each value in the column of its own kind."""
    kinds = {bool: "b", int: "i", float: "f", str: "s"}
    columns: dict[str, list[Value]] = {}
    for at, each in enumerate(told):
        for name, value in each.attributes:
            kind, bare = value if isinstance(value, tuple) else (kinds[type(value)], value)
            columns.setdefault(attribute_column(name, kind), [None] * len(told))[at] = bare
    arrays = {name: pa.array(values, ATTRIBUTE_KINDS[name[-1]]) for name, values in columns.items()}
    return pa.table({"": pa.nulls(len(told)), **arrays})


def pairs(index: StandingIndex, told: list[Told]) -> Pairs:
    found = index.match(columns_of([each.post for each in told]), attributes_of(told))
    assert found.candidates >= len(found.posts)
    seqs = index.rows.seq[found.rows]
    return Counter(zip(found.posts.tolist(), seqs.tolist(), strict=True))


# -- random ones -------------------------------------------------------------------------------------------------------

names = st.sampled_from(("price", "topic", "user", "naïve name"))
numbers = st.sampled_from(
    (0, 1, 5, -3, 5.0, 5.5, -0.0, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 2**63, 1e300, float(2**63))
)
strings = st.sampled_from(("", "5", "a", "ab", "b", "é", *MOMENTS, "20240101"))
literals = st.one_of(numbers, numbers, strings, st.booleans())
comparisons = st.tuples(names, st.sampled_from(("=", "=", "=", "<>", "<", "<=", ">", ">=")), st.tuples(literals))
between = st.tuples(names, st.just("between"), st.one_of(st.tuples(numbers, numbers), st.tuples(strings, strings)))
lists = st.tuples(names, st.sampled_from(("in", "not_in")), st.lists(literals, min_size=1, max_size=4).map(tuple))
nulls = st.tuples(names, st.sampled_from(("is_null", "is_not_null")), st.just(()))


def comparable(predicate: tuple[str, str, tuple[Value, ...]]) -> bool:
    """Arrow has no order of truth values."""
    return predicate[1] in ("=", "<>", "in", "not_in") or not any(isinstance(each, bool) for each in predicate[2])


predicates = st.lists(st.one_of(comparisons, comparisons, between, lists, nulls).filter(comparable), max_size=3)
queries = st.builds(Query, cases.subscriptions, predicates.map(tuple))
values = st.one_of(
    numbers.filter(lambda v: not (isinstance(v, int) and not -(2**63) <= v < 2**63)),
    st.just(float("nan")),
    strings,
    st.booleans(),
    strings.map(lambda text: ("j", text)),
    st.sampled_from((0, -1, 1704067200000000, 1717243200000000)).map(lambda moment: ("t", moment)),
)
told = st.builds(Told, cases.posts, st.dictionaries(names, values, max_size=4).map(lambda d: tuple(d.items())))


def crowd(seed: int, count: int, posts_count: int) -> tuple[list[Query], list[Told]]:
    """Many of both, as in the paper: a range, words, a topic, a price, each there or not."""
    random = np.random.default_rng(seed)
    subscriptions, posts = cases.crowd(seed, count, posts_count)

    def some_predicates() -> tuple[tuple[str, str, tuple[Value, ...]], ...]:
        out: list[tuple[str, str, tuple[Value, ...]]] = []
        if random.random() < 0.5:
            out.append(("topic", "=", (int(random.integers(8)),)))
        if random.random() < 0.4:
            low = float(random.integers(100))
            out.append(("price", "between", (low, low + float(random.integers(20)))))
        if random.random() < 0.1:
            out.append(("user", "in", ("a", "b")))
        return tuple(out)

    made = [
        Query(Subscription(each.id, each.region if random.random() < 0.6 else None, each.text), some_predicates())
        for each in subscriptions
    ]
    written = [
        Told(post, (("topic", int(random.integers(8))), ("price", float(random.integers(120))), ("user", "a")))
        for post in posts
    ]
    return made, written


class StandingIndexSuite:
    """Inherit it and say which index."""

    index: type[StandingIndex]

    def built(self, rows: Rows, seen: Seen) -> StandingIndex:
        return self.index.build(rows, seen)

    def check(self, wanted: list[Query], posts: list[Told], seen: Seen | None = None) -> Pairs:
        """That queries give the right pairs, which are returned."""
        rows = conditions(wanted)
        right = pairs(EachPair(rows), posts)
        for known in (Seen.nothing(), Seen.of(columns_of([p.post for p in posts]), attributes_of(posts))):
            assert pairs(self.built(rows, known), posts) == right
        return right

    # -- random queries and posts --------------------------------------------------------------------------------------

    @settings(max_examples=40, suppress_health_check=inherited)
    @given(st.lists(queries, max_size=14), st.lists(told, max_size=14))
    def test_any_conditions_give_the_brute_force_pairs(self, wanted: list[Query], posts: list[Told]) -> None:
        self.check(wanted, posts)

    @settings(max_examples=15, suppress_health_check=inherited)
    @given(
        st.lists(st.lists(queries, max_size=5), min_size=1, max_size=4),
        st.lists(st.lists(st.integers(0, 25), max_size=8), min_size=4, max_size=4),
        st.lists(told, max_size=10),
    )
    def test_queries_that_come_and_go_give_the_same_pairs(
        self, batches: list[list[Query]], dropped: list[list[int]], posts: list[Told]
    ) -> None:
        index = self.built(conditions([]), Seen.nothing())
        right: StandingIndex = EachPair(conditions([]))
        seq = 0
        for batch, gone in zip(batches, dropped, strict=False):
            rows, seqs = conditions(batch, seq), np.array(gone, np.int64)
            seq += len(batch)
            index, right = index.insert(rows).remove(seqs), right.insert(rows).remove(seqs)
            assert pairs(index, posts) == pairs(right, posts)

    @pytest.mark.parametrize("seed", [1, 2])
    def test_a_crowd_of_queries_gives_the_brute_force_pairs(self, seed: int) -> None:
        wanted, posts = crowd(seed, 300, 200)
        rows = conditions(wanted)
        seen = Seen.of(columns_of([each.post for each in posts]), attributes_of(posts))
        right = pairs(EachPair(rows), posts)
        assert len(right) > 300
        assert pairs(self.built(rows, seen), posts) == right
        half = np.arange(0, 300, 2)
        halved = self.built(rows.take(half), seen).insert(rows.take(half + 1)).remove(rows.seq[::3])
        assert pairs(halved, posts) == Counter({pair: n for pair, n in right.items() if pair[1] % 3})

    # -- edges ---------------------------------------------------------------------------------------------------------

    def test_no_posts_and_no_queries_give_no_pairs(self) -> None:
        assert not self.check([], [])
        assert not self.check([], [Told()])
        assert not self.check([Query()], [])
        assert self.check([Query()], [Told()]) == Counter({(0, 0): 1})

    def test_a_value_is_found_whatever_its_kind_is_written_as(self) -> None:
        written = (5, 5.0, "5", True, 0.0, -0.0, 2**53, 2**53 + 1, float(2**53), float("nan"), ("j", "5"), ("t", 5))
        posts = [Told(attributes=(("x", value),)) for value in written] + [Told()]
        asked = (5, 5.0, "5", True, 0, -0.0, 2**53, 2**53 + 1, float(2**53), 2**63, "1970-01-01T00:00:00.000005Z")
        wanted = [Query(predicates=(("x", op, (value,)),)) for value in asked for op in ("=", "<>", "in", "not_in")]
        found = self.check(wanted, posts)
        assert {post for post, query in found if query == 0} == {0, 1}  # x = 5
        assert {post for post, query in found if query == 28} == {7, 8}  # x = 2^53 + 1, and as doubles 2^53

    def test_the_order_of_strings_and_of_times_are_two_things(self) -> None:
        values = ("2023", "2024-02-30", "2024-07", "x", ("t", 1704067200000000), ("t", 1717243200000001), 2024)
        posts = [Told(attributes=(("x", value),)) for value in values] + [Told()]
        wanted = [
            Query(predicates=(("x", op, (moment,)),))
            for moment in ("2024-06-01", "2024-01-01T00:00:00Z", "u", "")
            for op in ("<", "<=", ">", ">=")
        ]
        wanted += [Query(predicates=(("x", "between", ("2024-01-01", "2024-06-01T12:00:00.000001")),))]
        wanted += [Query(predicates=(("x", ">", ("2023-12-31",)), ("x", "<", ("v",))))]
        assert len(self.check(wanted, posts)) > 20

    def test_a_contradiction_is_true_of_nothing(self) -> None:
        never = [
            (("x", "=", (5,)), ("x", "=", (6,))),
            (("x", "=", (5,)), ("x", "is_null", ())),
            (("x", ">", (7,)), ("x", "<", (3,))),
            (("x", "between", (9, 1)),),
            (("x", ">", (1,)), ("x", "<", ("a",))),
            (("x", "in", (1, 2)), ("x", "not_in", (1, 2))),
        ]
        posts = [Told(attributes=(("x", value),)) for value in (1, 2, 5, 6, 4.5, "a")] + [Told()]
        assert not self.check([Query(predicates=each) for each in never], posts)

    def test_an_attribute_that_no_post_has_is_null(self) -> None:
        wanted = [Query(predicates=(("x", op, (1,) * (op == "=")),)) for op in ("=", "is_null", "is_not_null")]
        assert self.check(wanted, [Told(), Told()]) == Counter({(0, 1): 1, (1, 1): 1})

    def test_regions_over_the_antimeridian_and_the_poles_are_regions_like_others(self) -> None:
        regions = [
            Rect(170, -10, -170, 10), Rect(-180, -90, 180, 90), Rect(180, 0, 180, 0), Rect(0, 90, 0, 90),
            Circle(180, 0, 50), Circle(0, 90, 500), Rect(-180, 80, 180, 90), Rect(0.1, 0, 0, 1),
            Polygon((((179.0, -1.0), (180.0, -1.0), (180.0, 1.0), (179.0, 1.0)),)),
        ]  # fmt: skip
        places = [(180.0, 0.0), (-180.0, 0.0), (0.0, 90.0), (13.0, 90.0), (0.0, -90.0), (-170.0, 10.0), (0.05, 0.5)]
        wanted = [Query(Subscription(0, region), (("x", "=", (at % 2,)),)) for at, region in enumerate(regions * 2)]
        posts = [Told(Post(*place), (("x", x),)) for place in places for x in (0, 1)]
        assert {query % len(regions) for _, query in self.check(wanted, posts)} == set(range(len(regions)))

    def test_many_ranges_at_one_place_are_all_found(self) -> None:
        regions = [Rect(10 - d / 50, 10 - d / 60, 10 + d / 70, 10 + d / 80) for d in range(60)] + [
            Rect(9, 9, 11, 11)
        ] * 20
        posts = [Told(Post(10 + d / 100, 10 - d / 100)) for d in range(-12, 12)]
        assert len(self.check([Query(Subscription(0, region)) for region in regions], posts)) > 500

    def test_words_in_any_expression_are_found(self) -> None:
        texts = [
            word(TERMS[0]), And((word(TERMS[0]), word(TERMS[1]))), Or((word(TERMS[0]), word(TERMS[1]))),
            Or((word(TERMS[0]), Not(word(TERMS[1])))), Not(word(TERMS[0])), phrase(TERMS[0], TERMS[1]),
            Or((And((word(TERMS[0]), word(TERMS[2]))), And((word(TERMS[1]), word(TERMS[2]))))),
        ]  # fmt: skip
        words = ((), (TERMS[0],), (TERMS[0], TERMS[1]), (TERMS[1], TERMS[0]), (TERMS[2], TERMS[1], TERMS[0]) * 20)
        wanted = [Query(Subscription(0, None, text)) for text in texts]
        found = self.check(wanted, [Told(Post(0, 0, 5, each)) for each in words])
        assert set(found.values()) == {1}
        assert {query for _, query in found} == set(range(len(texts)))

    def test_one_post_may_concern_more_queries_than_there_is_room_for(self) -> None:
        rows = conditions([Query(predicates=(("x", "=", (1,)),))] * 3000)
        index = self.built(rows, Seen.nothing())
        found = pairs(index, [Told(), Told(attributes=(("x", 1),)), Told(attributes=(("x", 1),))])
        assert found == Counter({(post, row): 1 for post in (1, 2) for row in range(3000)})
