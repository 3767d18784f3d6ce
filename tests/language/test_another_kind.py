"""A kind of question of another package is read, checked and encoded as ours are, and no line of `src/` knows it."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from nearcast.common import kinds
from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Rect
from nearcast.common.op_schema import NEAREST, NEVER, RANGE, SEARCH
from nearcast.common.queries import Predicate, Query
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.op_encoding import encode_ops
from nearcast.language import check_attributes, check_search, check_subscription, encode_query, parse
from tests.language.spread_out.query import SpreadQuery

TOKENIZER = Tokenizer()
N = "SELECT * FROM stream"
CODE = 41


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(kinds.ENVIRONMENT, "tests.language.spread_out:KIND")
    kinds.kinds.cache_clear()
    yield
    monkeypatch.undo()
    kinds.kinds.cache_clear()


def asked(sql: str) -> Query:
    return parse(sql, TOKENIZER).query


def error_of(sql: str) -> str:
    with pytest.raises(QueryError) as caught:
        check_subscription(parse(sql, TOKENIZER))
    return str(caught.value)


def encoded(records: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    names = {"op": pa.string(), "id": pa.int64(), "id_text": pa.string(), "ts": pa.int64(), "sql": pa.string()}
    names |= {name: pa.float64() for name in ("apart_km", "k", "lon", "lat")}
    rows = [{"op": "subscribe", "id": n, **record} for n, record in enumerate(records)]
    raw = pa.table({name: pa.array([row.get(name) for row in rows], type_) for name, type_ in names.items()})
    ops, rejects = encode_ops(raw, TOKENIZER)
    return ops.to_pylist(), rejects["reason"].to_pylist()


def test_a_function_in_the_select_asks_for_it() -> None:
    where = "WHERE loc INSIDE RECT(1, 2, 3, 4) AND a = 1"
    query = SpreadQuery(km=5.0, region=Rect(1.0, 2.0, 3.0, 4.0), predicates=(Predicate("a", "=", (1,)),))
    assert asked(f"SELECT Spread(5 km) FROM stream {where}") == query
    assert asked(f"select spread(5000 m) from stream {where} FOR 1 second") == SpreadQuery(
        **vars(query) | {"life": 10**6}
    )


def test_a_function_in_the_order_asks_for_it() -> None:
    assert asked(f"{N} ORDER BY SPREAD(5 km) LIMIT 3") == SpreadQuery(km=5.0, k=3)
    assert asked(f"{N} ORDER BY time DESC").kind == "range"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT Spraed(5 km) FROM stream",
            "a column, TopK, Count, Sum, Avg, Min, Max or Spread; did you mean Spread?",
        ),
        (f"{N} ORDER BY SPRAED(5 km)", "DESC or SPREAD(5 km); did you mean SPREAD?"),
        (f"{N} ORDER BY price DESC", "nearest first, most relevant first or farthest apart first, in no other order"),
        ("SELECT Spread() FROM stream", "Spread has one value"),
        ("SELECT Spread(5) FROM stream", "the spread has no unit"),
        ("SELECT Spread(0 km) FROM stream", "these posts are not apart"),
        ("SELECT Spread(5 km) FROM stream WHERE time AFTER '1 hour ago'", "a subscription looks ahead"),
        (f"{N} WHERE apart_km > 3 ORDER BY SPREAD(5 km) LIMIT 3", "apart_km is worked out for the answer"),
        (f"{N} ORDER BY SPREAD(5 km)", "asks for the k farthest apart and needs a LIMIT"),
        ("SELECT Spread(5 km) FROM stream GROUP BY a", "GROUP BY has no meaning in this question"),
        ("SELECT Spread(5 km) FROM stream SYNC 1 minute", "SYNC has no meaning in this question"),
        ("SELECT APPROXIMATE Spread(5 km) FROM stream", "APPROXIMATE is for TopK and Count"),
        ("SELECT Count(id), Spread(5 km) FROM stream", "Spread does not stand beside aggregates"),
        ("SELECT Count(id) FROM stream HAVING Spread(5 km) > 3", "Spread does not stand beside aggregates"),
        ("SELECT Count(id) FROM stream ORDER BY SPREAD(5 km)", "groups have no spread, only posts have"),
        ("SELECT Count(id) FROM stream WINDOW 3 POSTS", "WINDOW is for the most relevant"),
    ],
)
def test_mistakes_are_pointed_at(sql: str, message: str) -> None:
    assert message in error_of(sql)


def test_a_clause_that_another_kind_has_it_can_have_too() -> None:
    assert asked("SELECT Spread(5 km) FROM stream WINDOW 3 POSTS") == SpreadQuery(km=5.0)


def test_it_is_checked_as_all_are() -> None:
    statement = parse("SELECT Spread(5 km) FROM stream WHERE b = 2 FOR 1 day", TOKENIZER)
    check_subscription(statement)
    with pytest.raises(QueryError, match="no post has an attribute b"):
        check_attributes(statement, ["a"])
    with pytest.raises(QueryError, match="FOR is for subscriptions"):
        check_search(statement)


def test_its_columns_are_those_that_are_for_all_kinds() -> None:
    found = encode_query(SpreadQuery(km=5.0, k=3))
    assert (found["asks"], found["k"], found["columns"], found["window"]) == (CODE, 3, '{"km": 5.0}', 0)
    (search,), _ = encoded([{"op": "search", "sql": "SELECT Spread(5 km) FROM stream"}])
    assert (search["op"], search["asks"], search["window"]) == (SEARCH, CODE, NEVER)


def test_bulk_columns_are_the_same_subscription_as_their_sql() -> None:
    bulk, text, other = encoded([{"apart_km": 5.0}, {"sql": f"{N} ORDER BY SPREAD(5 km) LIMIT 7"}, {"apart_km": 6.0}])[
        0
    ]
    names = ("asks", "k", "columns", "digest")
    assert [bulk[name] for name in names] == [text[name] for name in names]
    assert bulk["digest"] != other["digest"]


def test_its_bulk_rows_do_not_mix_with_those_of_other_kinds() -> None:
    records = [{"apart_km": 5.0}, {"k": 2.0, "lon": 1.0, "lat": 2.0}, {"apart_km": 5.0, "k": 4.0}, {"apart_km": -1.0}]
    ops, reasons = encoded([*records, {"sql": N}])
    found = [(op["asks"], op["k"], op["at_lon"], op["columns"]) for op in ops]
    far = '{"km": 5.0}'
    assert found == [(CODE, 7, 0.0, far), (NEAREST, 2, 1.0, None), (CODE, 4, 0.0, far), (RANGE, 0, 0.0, None)]
    assert reasons == ["apart_km is negative"]


def test_without_it_the_same_text_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT Spread(5 km) FROM stream"
    assert asked(sql) == SpreadQuery(km=5.0)
    monkeypatch.delenv(kinds.ENVIRONMENT)
    kinds.kinds.cache_clear()
    with pytest.raises(QueryError, match="there is no function Spread"):
        parse(sql, TOKENIZER)


def test_the_questions_of_all_kinds_are_read_without_compiled_kernels() -> None:
    code = """
import sys
import nearcast.language
from nearcast.common.kinds import kinds
print([kind.query.functions for kind in kinds()] and [name for name in ("numba", "pyspark") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
