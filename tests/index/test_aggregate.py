"""Partial aggregates of segments, added up, against the oracle that looks at every post."""

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.index import aggregate as module
from nearcast.index.aggregate import aggregate, merge, nothing, search_groups
from nearcast.index.answers import rows_of, shape_of
from nearcast.index.columns import Kept
from nearcast.index.posts import PostSegment
from nearcast.index.question import Question
from nearcast.language.encode import encode_query
from nearcast.model.errors import BadInput
from nearcast.model.posts import ATTRIBUTE_KINDS
from nearcast.model.queries import AggregateQuery, Having, Measure, Ordering, Output
from nearcast.sources.raw import json_text
from nearcast.text.tokenizer import Tokenizer
from tests.oracles import aggregates as oracle
from tests.oracles.aggregate_cases import NOON, Post, aggregates, posts, random_posts
from tests.reader.searched_state import with_words

TOKENIZER = Tokenizer()
CASES = settings(max_examples=150, deadline=None)


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


def segment_of(some: list[Post]) -> PostSegment:
    return PostSegment.of(with_words(table_of(some)))


def words_of(some: Iterable[Post]) -> dict[int, str]:
    return {term: word for post in some for word, term in TOKENIZER.tokens(post.get("text") or "")}


def answer(parts: list[list[Post]], query: AggregateQuery) -> list[dict[str, Any]]:
    known = words_of(post for part in parts for post in part)
    question, shape = Question.of(encode_query(query, clock(parts))), shape_of(query)
    found = [search_groups(segment_of(part), question, shape)[0] for part in parts if part]
    groups = merge([nothing(shape), *found])
    return rows_of(query, groups, lambda terms: pa.array([known[term] for term in terms.tolist()], pa.string())).to_pylist()


def clock(parts: list[list[Post]]) -> int:
    return max((post["ts"] for part in parts for post in part), default=NOON)


def agrees(found: Any, value: Any) -> bool:
    """Whether a value is the one expected; a column of mixed values tells all of them as text."""
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
