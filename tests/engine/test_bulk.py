"""Subscriptions in bulk mean what the same ones mean when they come one by one."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.kernels.keyword_codes import are_plain
from nearcast.engine.op_encoding import encode_ops
from nearcast.engine.op_resolution import by_id
from nearcast.storage.subscriptions.subscription_set import Versions
from tests.kinds.relevance.test_bulk import raw_ops as records

LATIN = [chr(code) for code in range(0xC0, 0x180)]
NO_LETTERS = "×÷Ŀŀ"


def raw_ops(column: str, texts: list[str]) -> pa.Table:
    count = len(texts)
    base = {"op": ["subscribe"] * count, "id": list(range(count)), "id_text": pa.nulls(count, pa.string())}
    rest = {"ts": pa.nulls(count, pa.int64()), "sql": pa.nulls(count, pa.string())}
    return pa.table({**base, **rest, column: texts})


def plain(texts: list[str]) -> list[bool]:
    array = pa.array(texts)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[: len(texts) + 1]
    return are_plain(np.frombuffer(array.buffers()[2] or b"", np.uint8), offsets).tolist()


@pytest.mark.parametrize("keep_accents", [False, True])
def test_a_text_of_latin_letters_digits_and_spaces_is_the_same_subscription_as_its_sql(keep_accents: bool) -> None:
    tokenizer = Tokenizer(keep_accents=keep_accents)
    texts = ["coffee", "b2b 42", "  rain  ", *(f"a{letter}b {letter}" for letter in LATIN if letter not in NO_LETTERS)]
    assert all(plain(texts))
    bulk, refused = encode_ops(raw_ops("text", texts), tokenizer)
    one_by_one, _ = encode_ops(
        raw_ops("sql", [f"SELECT * FROM stream WHERE text CONTAINS '{text}'" for text in texts]), tokenizer
    )
    assert not len(refused)
    assert bulk["code"].to_pylist() == one_by_one["code"].to_pylist()
    assert bulk["digest"].to_pylist() == one_by_one["digest"].to_pylist()


@pytest.mark.parametrize(
    "text", ["Coffee", "wi-fi", "a×b", "a÷b", "aŀb", "Ŀb", "夜", "кофе", "#rain", '"a b"', "a\tb", "ƀ"]
)
def test_a_text_with_anything_else_is_not_plain(text: str) -> None:
    assert plain(["tea", text, "rain"]) == [True, False, True]


@dataclass
class Standing:
    """Stands in for the subscriptions of a state: the newest version of each id that has one."""

    versions: dict[int, int]

    def newest(self, keys: np.ndarray) -> Versions:
        assert (keys[1:] > keys[:-1]).all()
        seq = np.array([self.versions.get(int(key), -1) for key in keys], np.int64)
        return Versions(seq, keys + np.uint64(1), seq + 100)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=20), st.dictionaries(st.integers(0, 12), st.integers(0, 50)))
def test_ops_are_taken_id_by_id_where_an_id_comes_again(ids: list[int], known: dict[int, int]) -> None:
    keys = np.array(ids, np.uint64)
    order, starts, versions = by_id(keys, Standing(known))  # type: ignore[arg-type]
    expected = [i for i in sorted(set(ids)) if ids.count(i) > 1 or i in known]
    groups = [order[begin:end].tolist() for begin, end in pairwise(starts)]
    assert groups == [[at for at, other in enumerate(ids) if other == each] for each in expected]
    assert versions.seq.tolist() == [known.get(each, -1) for each in expected]
    assert versions.digest.tolist() == [each + 1 for each in expected]


BOX = {"min_lon": 0.0, "min_lat": 0.0, "max_lon": 1.0, "max_lat": 1.0}
CIRCLE = {"lon": 0.0, "lat": 0.0, "radius_km": 1.0}
TRIANGLE = {"polygon": "POLYGON((0 0, 1 0, 1 1, 0 0))"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"overlaps": "flood OR rain"}, "OVERLAPS takes plain words; for OR use CONTAINS"),
        ({"overlaps": "flood (rain)"}, "OVERLAPS takes plain words; for ( use CONTAINS"),
        ({"overlaps": '"flash flood'}, 'this phrase has no closing "'),
        ({**BOX, **CIRCLE}, "a query has one region"),
        ({**BOX, **TRIANGLE}, "a query has one region"),
        ({**CIRCLE, **TRIANGLE}, "a query has one region"),
        ({"lon": 0.0, "lat": 0.0, "k": 1.5}, "k is not a whole number"),
        ({"lon": 0.0, "lat": 91.0, "k": 3}, "k asks for the nearest to a place"),
        ({"text": "flood", "for_seconds": 1e-9}, "for_seconds is not a length of time"),
        ({"text": ""}, "there is no word in it"),
        ({"text": "  "}, "there is no word in it"),
        ({"text": "\u3000"}, "there is no word in it"),
        ({"overlaps": ""}, "there is no word in it"),
        ({"text": "…"}, "there is no word in …"),
        ({"overlaps": " ".join(f"w{i}" for i in range(65))}, "this expression becomes more than 64 alternatives"),
        ({"overlaps": " ".join(f"W{i}" for i in range(65))}, "this expression becomes more than 64 alternatives"),
    ],
)
def test_columns_that_make_no_sense_are_refused_alone_and_for_the_first_reason(
    record: dict[str, Any], reason: str
) -> None:
    ops, rejects = encode_ops(records([{"text": "flood"}, record, {"text": "rain"}]), Tokenizer())
    assert ops["id"].to_pylist() == [0, 2]
    (told,) = rejects["reason"].to_pylist()
    assert told.startswith(reason)


@pytest.mark.parametrize(
    "words", [" ".join(f"w{i % 64}" for i in range(200)), '"flash flood" rain', "#Flood rain", "洪水 Rain", "a-b c"]
)
def test_overlaps_in_a_column_is_overlaps_in_sql(words: str) -> None:
    sql = f"SELECT * FROM stream WHERE text OVERLAPS '{words}'"
    ops, rejects = encode_ops(records([{"overlaps": words}, {"sql": sql}]), Tokenizer())
    assert not len(rejects)
    first, second = ops["digest"].to_pylist()
    assert first == second


@pytest.mark.parametrize(("west", "east"), [(170, 180), (-180, -170), (180, 180), (180, -180), (-180, 180)])
def test_a_rectangle_at_the_antimeridian_in_columns_is_the_one_in_sql(west: float, east: float) -> None:
    columns = {"min_lon": float(west), "min_lat": 0.0, "max_lon": float(east), "max_lat": 1.0}
    sql = f"SELECT * FROM stream WHERE loc INSIDE RECT({west}, 0, {east}, 1)"
    ops, rejects = encode_ops(records([columns, {"sql": sql}]), Tokenizer())
    assert not len(rejects)
    first, second = ops["digest"].to_pylist()
    assert first == second
