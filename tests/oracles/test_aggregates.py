"""The oracle of aggregates, held to cases that were worked out by hand and to DuckDB; its SQL, held to the parser."""

from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.query import AggregateQuery, Measure
from nearcast.language import check_search, parse
from tests.oracles.aggregate_cases import aggregates, posts, random_posts, sql_of
from tests.oracles.aggregate_report_cases import spelled_rows
from tests.oracles.aggregates import EPOCH, aggregate, geohash
from tests.oracles.duck import Duck, Inexpressible
from tests.oracles.report_cases import MINUTE, post

TOKENIZER = Tokenizer()
Post = dict[str, Any]

#  minutes from the epoch  0     1     10        61
#  ids                     1     2     3, 4, 5   6 (the clock)
POSTS: list[Post] = [
    {"id": 1, "ts": 0, "lon": 0.0, "lat": 0.0, "text": "Flood, flood", "price": 5, "kind": "b"},
    {"id": 2, "ts": 1 * MINUTE, "lon": 1.0, "lat": 0.0, "text": "the flood", "price": 5.0, "kind": "a"},
    {"id": 3, "ts": 10 * MINUTE, "lon": 2.0, "lat": 0.0, "text": "the rain", "price": "5", "kind": "b"},
    {"id": 4, "ts": 10 * MINUTE, "lon": 3.0, "lat": 0.0, "text": None, "price": True, "kind": "b"},
    {"id": "5", "ts": 10 * MINUTE, "lon": 4.0, "lat": 0.0, "text": "", "price": float("nan")},
    {"id": 6, "ts": 61 * MINUTE, "lon": 5.0, "lat": 0.0, "text": "é🌊", "price": 2.5, "kind": None, "weekday": 9},
]
CLOCK = 61 * MINUTE


def ask(sql: str, posts: list[Post] = POSTS, **more: Any) -> list[dict[str, Any]]:
    query = parse(sql, TOKENIZER).query
    assert isinstance(query, AggregateQuery)
    clock = max((post["ts"] for post in posts), default=0)
    return aggregate(posts, query, clock, TOKENIZER, **more)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("Count(id), Count(price), Count(kind), Count(nothing) FROM stream", "6 5 4 0"),
        ("Sum(price), Avg(price), Min(price), Max(price) FROM stream", "12.5 4.166666666666667 2.5 5"),
        ("Sum(kind), Avg(nothing), Min(kind), Max(nothing) FROM stream", "- - - -"),
        ("Sum(price) FROM stream WHERE kind = 'b'", "5"),
        ("Min(ts), Max(ts), Min(hour), Max(minute) FROM stream", "0m 61m 0m 61m"),
        ("price, Count(id) FROM stream GROUP BY price", "2.5 1; 5 2; 5 1; True 1; - 1"),
        ("price, Count(id) FROM stream GROUP BY price ORDER BY price DESC", "True 1; 5 1; 5 2; 2.5 1; - 1"),
        ("kind, Count(id) FROM stream GROUP BY kind ORDER BY Count(id) DESC", "b 3; - 2; a 1"),
        ("kind, Count(id) FROM stream GROUP BY kind ORDER BY Avg(price)", "- 2; a 1; b 3"),
        ("kind, Count(id) FROM stream GROUP BY kind ORDER BY Max(nothing) DESC", "a 1; b 3; - 2"),
        ("kind, Count(id) FROM stream GROUP BY kind ORDER BY Count(id) LIMIT 2", "a 1; - 2"),
        ("Count(id), weekday, kind FROM stream GROUP BY weekday, kind", "1 4 a; 3 4 b; 1 4 -; 1 9 -"),
        ("Count(id), hour FROM stream GROUP BY hour", "5 0m; 1 60m"),
        ("Count(id), length FROM stream GROUP BY length", "2 0; 1 2; 1 8; 1 9; 1 12"),
        ("Count(id), cell FROM stream WHERE loc INSIDE RECT(0, 0, 1, 0) GROUP BY cell", "1 s0000; 1 s008n"),
        ("Count(id), kind FROM stream GROUP BY kind HAVING Count(id) > 1 AND Avg(price) < 5", "2 -"),
        ("Count(id), kind FROM stream GROUP BY kind HAVING Sum(price) <> 5", "2 -"),
        ("Count(id) FROM stream HAVING Min(ts) < '1970-01-01T00:00:01Z'", "6"),
        ("Count(id) FROM stream HAVING Count(id) < 6", ""),
        ("TopK(text, 2), kind FROM stream GROUP BY kind", "[flood:1,the:1] a; [flood:1,rain:1] b; [e:1,🌊:1] -"),
        ("TopK(text), Count(id) FROM stream WHERE kind = 'nobody'", "[] 0"),
        ("Count(id), Sum(price) FROM stream WHERE time AFTER '60 minutes ago'", "4 2.5"),
        ("Count(id), Sum(price) FROM stream WHERE time AFTER '60.001 minutes ago'", "5 7.5"),
        ("Count(id) FROM stream WHERE price = 5", "2"),
        ("Count(id) FROM stream WHERE price = '5'", "1"),
        ("Count(id) FROM stream WHERE price IN (TRUE, '5', 1)", "2"),
        ("Count(id) FROM stream WHERE price NOT IN ('6', 5)", "2"),
        ("Count(id) FROM stream WHERE weekday = 4", "5"),
        ("Count(id) FROM stream WHERE hour = '1970-01-01T01:00:00Z'", "1"),
        ("Count(id) FROM stream WHERE hour BETWEEN '1969-12-31' AND '1970-01-01T02:59:59+02:00'", "5"),
        ("Count(id) FROM stream WHERE date IS NULL", "0"),
    ],
)  # fmt: skip
def test_what_aggregates_mean(sql: str, rows: str) -> None:
    assert spelled_rows(ask(f"SELECT {sql}")) == rows


@pytest.mark.parametrize(
    ("values", "total", "mean"),
    [
        ([1e16, 1.0, -1e16], 1.0, 1 / 3),
        ([0.1] * 10, 1.0, 0.1),
        ([2**53, 1], 2**53 + 1, float(2**52)),
        ([2**62, 2**62 - 1], 2**63 - 1, float(2**62)),
        ([2**62, 2**62], 2.0**63, float(2**62)),
        ([-(2**63)], -(2**63), -(2.0**63)),
        ([float("inf"), 1], float("inf"), float("inf")),
        ([float("inf"), float("-inf"), 1], None, None),
        ([True, "5", [7]], None, None),
        ([], None, None),
    ],
)
def test_sums_and_means_are_rounded_once(values: list[Any], total: Any, mean: Any) -> None:
    (row,) = ask("SELECT Sum(v), Avg(v) FROM stream", [post(n, 0, v=value) for n, value in enumerate(values)])
    assert row == {"sum(v)": total, "avg(v)": mean}
    assert type(row["sum(v)"]) is type(total)


def test_a_number_is_less_than_any_time() -> None:
    stream = [post(n, 0, v=value) for n, value in enumerate([EPOCH, 10**18, EPOCH + timedelta(minutes=7), 3, "a"])]
    assert spelled_rows(ask("SELECT Min(v), Max(v), Sum(v), Count(v) FROM stream", stream)) == f"3 7m {10**18 + 3} 5"


def test_stop_words_are_no_terms_and_a_tag_is_one_of_its_own() -> None:
    rows = ask("SELECT TopK(text), Count(*) FROM stream", [post(1, 0, "The #the flood")], stop_words=["THE"])
    assert spelled_rows(rows) == "[#the:1,flood:1] 1"


def test_json_text_is_a_string_and_5_is_5_but_not_true() -> None:
    stream = [post(n, 0, v=value) for n, value in enumerate([[1, 5.0], "[1,5.0]", 1, 1.0, True, -0.0, 0, False])]
    assert spelled_rows(ask("SELECT v, Count(id) FROM stream GROUP BY v", stream)) == (
        "-0.0 2; 1 2; [1,5.0] 2; False 1; True 1"
    )


@pytest.mark.parametrize(
    ("lon", "lat", "name"),
    [
        (10.40744, 57.64911, "u4pru"), (-5.60302734375, 42.60498046875, "ezs42"), (0.0, 0.0, "s0000"),
        (-1e-300, -1e-300, "7zzzz"), (180.0, 90.0, "zzzzz"), (-180.0, -90.0, "00000"), (180.0, -90.0, "pbpbp"),
    ],
)  # fmt: skip
def test_cells_are_geohashes(lon: float, lat: float, name: str) -> None:
    assert geohash(lon, lat, 5) == name


# -- beside DuckDB -----------------------------------------------------------------------------------------------------


def exact_in_doubles(query: AggregateQuery, posts: list[Post]) -> bool:
    """Whether the sums that are asked for are what DuckDB makes of them: a whole one of more than 53 bits is not."""
    asked = [each.value for each in (*query.outputs, *query.having, *query.order)]
    summed = {each.of for each in asked if isinstance(each, Measure) and each.function in ("sum", "avg")}
    given = [[post.get(name) for post in posts] for name in summed]
    return all(sum(abs(each) for each in values if type(each) is int) < 2**53 for values in given)


def check(duck: Duck, posts: list[Post], query: AggregateQuery, **more: Any) -> None:
    note(sql_of(query))
    assume(exact_in_doubles(query, posts))
    clock = max((post["ts"] for post in posts), default=0)
    try:
        rows = duck.rows(query, clock, **more)
    except Inexpressible:
        assume(False)
    assert rows == aggregate(posts, query, clock, TOKENIZER, **more)


stops = st.sampled_from([(), ("the", "FLOOD")])


@given(posts=posts(), query=aggregates(), stop_words=stops)
def test_duckdb_says_the_same_of_a_few_posts(posts: list[Post], query: AggregateQuery, stop_words: Any) -> None:
    check(Duck(posts, TOKENIZER), posts, query, stop_words=stop_words)


@cache
def many() -> tuple[Duck, list[Post]]:
    made = random_posts(Random(1), 400)
    return Duck(made, TOKENIZER), made


@given(query=aggregates(), stop_words=stops)
def test_duckdb_says_the_same_of_many_posts(query: AggregateQuery, stop_words: Any) -> None:
    check(*many(), query, stop_words=stop_words)


REAL = {
    "noaa_storms": [
        "SELECT Count(id), Avg(length), event_type FROM stream GROUP BY event_type",
        "SELECT Count(id) AS n, state, event_type FROM stream WHERE text CONTAINS 'tree OR trees' "
        "GROUP BY state, event_type HAVING Count(id) > 3 ORDER BY n DESC, Avg(length) DESC LIMIT 20",
        "SELECT TopK(text, 5), Max(ts), weekday FROM stream WHERE loc INSIDE RECT(-100, 30, -80, 40) GROUP BY weekday",
        "SELECT Count(source), date FROM stream WHERE source = 'Law Enforcement' GROUP BY date",
        "SELECT Count(*), cell FROM stream WHERE loc INSIDE CIRCLE(-97.5, 35.5, 400 km) GROUP BY cell",
        "SELECT Sum(length), Min(length), Max(length), hour FROM stream "
        """WHERE text CONTAINS '"flash flood" AND NOT trees' GROUP BY hour ORDER BY Max(length) DESC, hour LIMIT 50""",
        "SELECT Count(id), Min(ts), Max(ts) FROM stream WHERE time AFTER '30 days ago'",
    ],
    "osm_notes": [
        "SELECT Count(id), Avg(length), country FROM stream GROUP BY country",
        "SELECT Count(id), opened_day, weekday FROM stream "
        "GROUP BY opened_day, weekday ORDER BY Count(id) DESC LIMIT 9",
        "SELECT TopK(text), country FROM stream WHERE text CONTAINS 'mapsme OR maps' GROUP BY country",
        "SELECT Count(closing_comment), Min(opened_day), closing_comment FROM stream "
        "WHERE loc INSIDE CIRCLE(10, 50, 900 km) GROUP BY closing_comment ORDER BY closing_comment DESC LIMIT 30",
        "SELECT TopK(text, 20), Count(id) FROM stream WHERE country IN ('France', 'Deutschland') AND length > 100",
        "SELECT Count(id), cell FROM stream WHERE loc INSIDE RECT(170, -60, -60, 60) "
        "GROUP BY cell HAVING Count(id) > 2",
        "SELECT Count(id), minute FROM stream WHERE date BETWEEN '2013-05-01' AND '2013-06-01' GROUP BY minute",
    ],
}  # fmt: skip


def real_posts(path: Path, name: str, count: int) -> list[Post]:
    table = pq.read_table(path / f"{name}.parquet").slice(0, count)
    return table.set_column(table.schema.get_field_index("ts"), "ts", table["ts"].cast(pa.int64())).to_pylist()


@pytest.mark.parametrize("name", REAL)
def test_duckdb_says_the_same_of_real_posts(shared_data: Path, name: str) -> None:
    made = real_posts(shared_data, name, 4000)
    duck = Duck(made, TOKENIZER)
    for sql in REAL[name]:
        query = parse(sql, TOKENIZER).query
        assert isinstance(query, AggregateQuery)
        clock = max(each["ts"] for each in made)
        rows = aggregate(made, query, clock, TOKENIZER)
        assert rows, sql
        assert duck.rows(query, clock) == rows, sql


# -- as text -----------------------------------------------------------------------------------------------------------


@given(query=aggregates())
def test_the_text_of_an_aggregate_means_it(query: AggregateQuery) -> None:
    statement = parse(sql_of(query), TOKENIZER)
    check_search(statement)
    assert statement.query == query
