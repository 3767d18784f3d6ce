"""Partial aggregates of segments, added up, against the oracle that looks at every post."""

import gc
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from _pytest.monkeypatch import MonkeyPatch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.common.post_schema import ATTRIBUTE_KINDS
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates import group_by as module
from nearcast.kinds.aggregates.answer_rows import rows_of, shape_of
from nearcast.kinds.aggregates.group_by import aggregate, merge, nothing, search_groups
from nearcast.kinds.aggregates.group_rows import aggregate_rows_of
from nearcast.kinds.aggregates.groups import Groups
from nearcast.kinds.aggregates.query import AggregateQuery, Having, Measure, Ordering, Output
from nearcast.language.encode import encode_query
from nearcast.sources.raw import json_text
from nearcast.storage.posts import coded_columns as columns
from nearcast.storage.posts import shortcuts
from nearcast.storage.posts.coded_columns import Kept
from nearcast.storage.posts.post_layout import lay_out, place_order
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import search_range
from tests.oracles import aggregates as oracle
from tests.oracles.aggregate_cases import NOON, Post, aggregates, posts, random_posts
from tests.reader.searched_state import with_words

TOKENIZER = Tokenizer()
CASES = settings(max_examples=100, deadline=None)


def kind_of(value: Any) -> str:
    kinds = {bool: "b", int: "i", float: "f", str: "s", datetime: "t"}
    return kinds.get(type(value), "j")


def table_of(some: list[Post]) -> pa.Table:
    """Posts as the columns of the model."""
    ids = [post["id"] for post in some]
    columns: dict[str, Any] = {
        "id": pa.array([n if isinstance(n, int) else hash(n) for n in ids], pa.int64()),
        "id_text": pa.array([None if isinstance(n, int) else n for n in ids], pa.string()),
        "text": pa.array([post.get("text") or "" for post in some], pa.string()),
    }
    columns |= {name: pa.array([post[name] for post in some]) for name in ("ts", "lon", "lat")}
    for name in sorted({name for post in some for name in post} - {"id", "ts", "lon", "lat", "text"}):
        values = [post.get(name) for post in some]
        for kind, type_ in ATTRIBUTE_KINDS.items():
            if any(each is not None and kind_of(each) == kind for each in values):
                own = [each if each is not None and kind_of(each) == kind else None for each in values]
                told = [json_text(each) if each is not None and kind == "j" else each for each in own]
                columns[f"{name}:{kind}"] = pa.array(told, type_)
    return pa.table(columns)


def segment_of(some: list[Post], sealed: bool = False) -> PostSegment:
    """In memory; a sealed one has inverted lists."""
    if not sealed:
        return PostSegment.of(with_words(table_of(some)))
    table = with_words(table_of(some))
    order = place_order(table)
    arrays = {name: frozen(a) if isinstance(a, np.ndarray) else a for name, a in lay_out(table, order, True)[0].items()}
    names = [name for name in table.column_names if ":" in name]
    return PostSegment(Path(), arrays, table.select(names).take(pa.array(order)))


def words_of(some: Iterable[Post]) -> dict[int, str]:
    return {term: word for post in some for word, term in TOKENIZER.tokens(post.get("text") or "")}


def answer(parts: list[list[Post]], query: AggregateQuery) -> list[dict[str, Any]]:
    question, shape = Question.of(encode_query(query, clock(parts))), shape_of(query)
    found = [search_groups(segment_of(part), question, shape)[0] for part in parts if part]
    return rows(query, merge([nothing(shape), *found]), [post for part in parts for post in part])


def rows(query: AggregateQuery, groups: Groups, some: list[Post]) -> list[dict[str, Any]]:
    known = words_of(some)
    spelled = rows_of(query, groups, lambda terms: pa.array([known[term] for term in terms.tolist()], pa.string()))
    return spelled.to_pylist()


def no_words(terms: np.ndarray) -> pa.StringArray:
    assert not len(terms)
    return pa.array([], pa.string())


def clock(parts: list[list[Post]]) -> int:
    return max((post["ts"] for part in parts for post in part), default=NOON)


def agrees(found: Any, value: Any) -> bool:
    """Whether a value is the one expected; a column of mixed values tells all of them as text, one of whole numbers and
    fractions as doubles.
    """
    if isinstance(found, float) and isinstance(value, int):
        return found == float(value)
    if not isinstance(found, str) or isinstance(value, str) or value is None:
        return bool(found == value) and (found is None) == (value is None)
    if isinstance(value, bool):
        return found == str(value).lower()
    if isinstance(value, datetime):
        return datetime.fromisoformat(found) == value
    return float(found) == value if isinstance(value, float) else Fraction(found) == value


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, value in other.items():
            assert agrees(one[name], value), (name, one, other)


@CASES
@given(st.lists(posts(nasty=True), min_size=1, max_size=3), aggregates())
def test_segments_added_up_answer_as_looking_at_every_post_does(parts: list[list[Post]], query: AggregateQuery) -> None:
    every = [post for part in parts for post in part]
    same(answer(parts, query), oracle.aggregate(every, query, clock(parts), TOKENIZER))


@CASES
@given(st.lists(posts(nasty=True), min_size=1, max_size=3), aggregates())
def test_so_do_rows_of_several_segments_that_are_grouped_together(
    parts: list[list[Post]], query: AggregateQuery
) -> None:
    query = replace(query, outputs=tuple(each for each in query.outputs if not is_topk(each)) or (COUNT,))
    every = [post for part in parts for post in part]
    question = Question.of(encode_query(query, clock(parts)))
    segments = [segment_of(part) for part in parts if part]
    groups = aggregate_rows_of([(each, search_range(each, question).rows) for each in segments], shape_of(query))
    same(rows(query, groups, every), oracle.aggregate(every, query, clock(parts), TOKENIZER))


def is_topk(output: Output) -> bool:
    return isinstance(output.value, Measure) and output.value.function == "topk"


METHODS = {"time first", "attribute first", "lists together", "count", "whole columns"}


def test_so_do_segments_of_which_everything_is_kept() -> None:
    """Whole columns, posts in order of time, and lists together, as large segments have them that are asked a lot."""
    tried: set[str] = set()

    @CASES
    @given(st.lists(posts(at_most=200), min_size=1, max_size=2), aggregates())
    @example([random_posts(Random(1), 60)], AggregateQuery(outputs=(Output("n", Measure("count")),)))
    def in_any_case(parts: list[list[Post]], query: AggregateQuery) -> None:
        every = [post for part in parts for post in part]
        segments = [segment_of(part, sealed=True) for part in parts if part]
        question = Question.of(encode_query(query, clock(parts)))
        for _ in range(2):
            found = [search_groups(segment, question, shape_of(query)) for segment in segments]
            groups = merge([nothing(shape_of(query)), *(each for each, _ in found)])
            same(rows(query, groups, every), oracle.aggregate(every, query, clock(parts), TOKENIZER))
            tried.update(looked.method for _, looked in found)

    with MonkeyPatch.context() as patch:
        patch.setattr(shortcuts, "SMALL", 1)
        patch.setattr(shortcuts, "FREQUENT", -1)
        patch.setattr(shortcuts, "CHECK", 1e9)
        patch.setattr(shortcuts, "READ_POST", 1e9)
        patch.setattr(columns, "WORTH", 10**9)
        patch.setattr(columns, "PASSES", 0)
        in_any_case()
    assert tried >= METHODS


# -- what the random cases do not reach --------------------------------------------------------------------------------


def numbers(values: list[Any]) -> list[Post]:
    return [
        {"id": n, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "", "price": each, "shop": n % 2}
        for n, each in enumerate(values)
    ]


def one(function: str, values: list[Any]) -> Any:
    query = AggregateQuery(outputs=(Output("x", Measure(function, "price")),))
    (row,) = answer([numbers(values[::2]), numbers(values[1::2])], query)
    return row["x"]


LARGE = 2**63 - 1
EARLY = datetime(1960, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("sum", [LARGE, 1, -1], LARGE),
        ("sum", [LARGE, 1], 2.0**63),
        ("sum", [-LARGE, -1], -(2**63)),
        ("sum", [2**53, 1, 1, 1], 2**53 + 3),
        ("sum", [1e16, 1.0, -1e16], 1.0),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [1e308, 1e308], inf),
        ("sum", [inf, 1.0], inf),
        ("sum", [inf, -inf], None),
        ("sum", [5.0, 5], 10.0),
        ("sum", ["a", None], None),
        ("avg", [LARGE, LARGE], float(LARGE)),
        ("avg", [1, 2, 2], 5 / 3),
        ("avg", [inf, -inf], None),
        ("min", [2**53 + 1, 2**53 + 2], 2**53 + 1),
        ("max", [LARGE, LARGE - 1], LARGE),
        ("max", [LARGE - 1, 5.0], float(LARGE - 1)),
        ("min", [-0.0, 3], 0.0),
        ("min", [inf], inf),
        ("max", [-inf], -inf),
        ("max", ["z", True], None),
        ("min", [LARGE, EARLY, 10**18], 10**18),
        ("max", [LARGE, EARLY, -(10**18)], EARLY),
        ("min", [EARLY, "z"], EARLY),
        ("count", ["z", True, None, 1, 2.5], 4),
    ],
)
def test_numbers_are_added_up_and_compared_exactly(function: str, values: list[Any], expected: Any) -> None:
    for some in (values, values[::-1]):
        found = one(function, some)
        assert found == expected and type(found) is type(expected), some


def test_sums_do_not_depend_on_the_order_of_posts() -> None:
    random = Random(7)
    values = [random.uniform(-1, 1) * 10.0 ** random.randrange(-8, 9) for _ in range(300)]
    found = {one("sum", random.sample(values, len(values))) for _ in range(5)}
    assert found == {float(sum(map(Fraction, values)))}


COUNT = Output("n", Measure("count"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], pa.int64()),
        ([1.5, 2.0], pa.float64()),
        ([1, 2.5], pa.float64()),
        ([2**60 + 1, 2.5], pa.float64()),
        ([2**60 + 1, 5.0], pa.int64()),
        (["a", None], pa.string()),
        ([True, False], pa.bool_()),
        ([datetime(2026, 5, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
        ([1, "a"], pa.string()),
        ([True, "a"], pa.string()),
        ([None], pa.null()),
    ],
)
def test_a_column_has_the_type_of_its_values(values: list[Any], kind: pa.DataType) -> None:
    query = AggregateQuery(outputs=(Output("price", "price"), COUNT), group_by=("price",))
    groups = aggregate(segment_of(numbers(values)), None, shape_of(query))
    table = rows_of(query, groups, no_words)
    assert table.schema.field("price").type == kind and table.schema.field("n").type == pa.int64()


def test_whole_numbers_that_are_no_doubles_are_told_exactly_where_all_extremes_are_whole() -> None:
    query = AggregateQuery(outputs=(Output("x", Measure("max", "price")),), group_by=("shop",))
    assert [row["x"] for row in answer([numbers([2**60 + 1, 5.0])], query)] == [2**60 + 1, 5]
    assert [row["x"] for row in answer([numbers([2**60 + 1, 5.5])], query)] == [2.0**60, 5.5]


def test_mixed_values_are_told_as_text() -> None:
    values = [2, 2.5, "two", True, datetime(2026, 5, 1, 12, tzinfo=UTC), None]
    query = AggregateQuery(outputs=(Output("price", "price"), COUNT), group_by=("price",))
    told = [row["price"] for row in answer([numbers(values)], query)]
    assert told == ["2", "2.5", "2026-05-01T12:00:00Z", "two", "true", None]


@pytest.mark.parametrize("by", [("price",), ("price", "shop"), ("shop", "price")])
@pytest.mark.parametrize("cut", [8, 1])
def test_too_many_groups_are_an_error_that_says_what_to_do(by: tuple[str, ...], cut: int) -> None:
    query = AggregateQuery(outputs=(*(Output(name, name) for name in by), COUNT), group_by=by)
    some = numbers(list(range(8)))
    with MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_GROUPS", 7)
        with pytest.raises(BadInput, match="more than 7 groups: GROUP BY fewer"):
            answer([some[at : at + cut] for at in range(0, 8, cut)], query)
        assert len(answer([some[:7]], query)) == 7


def test_stop_words_are_left_out_of_topk_and_not_of_counts() -> None:
    some = [{"id": n, "ts": NOON, "lon": 0.0, "lat": 0.0, "text": "the flood the rain"} for n in range(3)]
    query = AggregateQuery(outputs=(Output("t", Measure("topk", "text", 2)), COUNT))
    groups = aggregate(segment_of(some), None, shape_of(query))
    stop = np.array([term for _, term in TOKENIZER.tokens("the")], np.uint64)
    known = words_of(some)
    spell = lambda terms: pa.array([known[term] for term in terms.tolist()], pa.string())  # noqa: E731
    (row,) = rows_of(query, groups, spell, stop).to_pylist()
    assert row == {"t": [{"term": "flood", "count": 3}, {"term": "rain", "count": 3}], "n": 3}


def test_no_posts_without_group_by_are_one_row_and_with_it_none() -> None:
    outputs = (COUNT, Output("s", Measure("sum", "price")), Output("t", Measure("topk", "text", 3)))
    alone = AggregateQuery(outputs=outputs)
    assert answer([[]], alone) == [{"n": 0, "s": None, "t": []}]
    assert answer([[]], replace(alone, having=(Having(Measure("count"), ">", 0),))) == []
    assert answer([[]], replace(alone, order=(Ordering(Measure("count")),), limit=5)) == [{"n": 0, "s": None, "t": []}]
    assert answer([[]], replace(alone, outputs=(*outputs, Output("price", "price")), group_by=("price",))) == []


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_what_is_kept_is_made_when_it_has_paid_and_the_least_used_goes_first() -> None:
    kept, segment = Kept(1000), segment_of(numbers([1, 2]))
    made: list[str] = []

    def make(name: str, size: int = 50) -> Any:
        made.append(name)
        return np.zeros(size)  # 400 bytes

    assert kept.get(segment, "a", 4, 10, lambda: make("a")) is None
    assert kept.get(segment, "a", 4, 10, lambda: make("a")) is None and made == []
    first = kept.get(segment, "a", 4, 10, lambda: make("a"))
    assert kept.get(segment, "a") is first and made == ["a"]
    kept.get(segment, "b", 1, 1, lambda: make("b"))
    assert kept.get(segment, "a") is first and kept.nbytes == 800
    kept.get(segment, "c", 1, 1, lambda: make("c"))
    assert kept.nbytes == 800 and kept.get(segment, "b") is None and kept.get(segment, "a") is first
    assert len(kept.get(segment, "huge", 1, 1, lambda: make("huge", 100))) == 100
    assert kept.get(segment, "huge") is None and kept.nbytes == 800
    del segment
    gc.collect()
    assert kept.nbytes == 0
