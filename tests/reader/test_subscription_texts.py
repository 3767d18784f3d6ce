"""The text of a subscription that came as columns means what the columns mean."""

from typing import Any

import pytest

from nearcast.common.kinds import kind_coded
from nearcast.engine.op_encoding import encode_ops
from nearcast.reader.subscription_list import Subscriptions
from tests.kinds.relevance.test_bulk import GOOD, TOKENIZER, raw_ops, rows_of

WORDS = "ramen sushi coffee #flood flood x1"


def texts_of(records: list[dict[str, Any]]) -> list[str]:
    listed = Subscriptions.__new__(Subscriptions)
    rows = rows_of(records)
    listed.__dict__ |= {
        "parts": [],
        "_dictionary": {term: word for word, term in TOKENIZER.tokens(WORDS)},
    }
    kinds = encode_ops(raw_ops(records), TOKENIZER)[0]["asks"].to_pylist()
    return [listed._written(kind_coded(kind), rows, row) for row, kind in enumerate(kinds)]


TIMED = {name: value for name, value in GOOD.items() if name != "window_posts"}
BULK: list[dict[str, Any]] = [
    GOOD,
    {**GOOD, "lon": 0.1 + 0.2, "lat": -1e-07, "alpha": 1 / 3, "reach_km": 2 / 3},
    {**GOOD, "alpha": 0, "k": 1, "window_posts": 1, "words": "#flood"},
    {**TIMED, "window_seconds": 14400},
    {**TIMED, "window_seconds": 0.000001, "for_seconds": 60},
    {**GOOD, "text": "coffee AND NOT flood", "min_lon": 170, "min_lat": -1, "max_lon": -170, "max_lat": 2},
    {"text": "coffee"},
    {"lon": 3, "lat": 4, "k": 7},
    {"lon": 0.1 + 0.2, "lat": -1e-07, "k": 7},
    {"lon": 0.1 + 0.2, "lat": 1 / 3, "radius_km": 2 / 3, "for_seconds": 1234567.891},
    {"min_lon": -1 / 3, "min_lat": -1e-07, "max_lon": 0.1 + 0.2, "max_lat": 2 / 3},
    {"polygon": "POLYGON((0.30000000000000004 0, 1 0, 1 0.3333333333333333, 0.30000000000000004 0))"},
    {"window_seconds": 60, "sync_seconds": 10, "k": 3, "text": "x1"},
]


@pytest.mark.parametrize("record", BULK)
def test_the_text_is_the_same_subscription_as_the_columns(record: dict[str, Any]) -> None:
    (text,) = texts_of([record])
    ops, rejects = encode_ops(raw_ops([record, {"sql": text}]), TOKENIZER)
    assert rejects["reason"].to_pylist() == []
    first, second = ops["digest"].to_pylist()
    assert first == second, text


def test_what_it_looks_like() -> None:
    assert texts_of([{**GOOD, "words": "ramen"}, {**TIMED, "words": "ramen", "window_seconds": 60, "reach_km": 5}]) == [
        "SELECT * FROM stream ORDER BY RELEVANCE(POINT(1, 2), 'ramen', 0.5) DESC LIMIT 20 WINDOW 1000 POSTS",
        "SELECT * FROM stream ORDER BY RELEVANCE(POINT(1, 2), 'ramen', 0.5, 5 km) DESC LIMIT 20 WINDOW 60 SECONDS",
    ]


def test_a_word_that_no_post_has_shown_is_its_number() -> None:
    (text,) = texts_of([{**GOOD, "words": "unseen"}])
    assert f"'word{TOKENIZER.term('unseen'):016x}'" in text
