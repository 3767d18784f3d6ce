"""A text read from a template means what it means."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Circle
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.language import parse
from nearcast.language import parser as parsing
from nearcast.language.syntax import read_select
from nearcast.language.templates import read_template

TOKENIZER = Tokenizer()
TEXTS = [
    "SELECT * FROM stream WHERE loc INSIDE RECT({n}, {m}, 10, 20) AND text CONTAINS {s}",
    "SELECT id, price2, `w 1` FROM stream WHERE price2 BETWEEN {n} AND {m} AND `w 1` IN ({s}, 'b', 3) LIMIT 10",
    "select TopK(text, 5) from stream where time after '3 days ago' and a1 <= {n}"
    " and loc inside CIRCLE(1,2,{m}km) SYNC 5min",
    "EXPLAIN SELECT * FROM stream WHERE text OVERLAPS {s} ORDER BY DISTANCE(loc, POINT({n},{m})) LIMIT 3 -- {n} '{m}'",
    "SELECT * FROM stream WHERE x = {s} AND y <> -.5e3 AND z IS NOT NULL FOR 72 HOURS;",
    "SELECT * FROM stream WHERE x NOT IN ({n},{m}) AND u = TRUE AND time BETWEEN {n} AND '2024-01-01'",
    "SELECT * FROM stream WHERE loc INSIDE POLYGON('POLYGON((0 0, {n} 0, 0 {m}, 0 0))')",
    "SELECT * FROM stream WHERE {n} = x AND {s}",
    "SELECT Count(id) AS n, TopK(text, {n}), t FROM stream WHERE p < {m} GROUP BY t HAVING n > {m} AND Max(p) <> {s}"
    " ORDER BY n DESC LIMIT {n} SYNC {m} mins",
    "SELECT APPROXIMATE TopK(text, {n}), Sum({m}) FROM stream",
    "SELECT * FROM stream WHERE a = {s} ORDER BY RELEVANCE(POINT({n}, {m}), {s}, 0.5, {n} km) DESC LIMIT 20"
    " WINDOW {m} POSTS",
]
numbers = st.one_of(
    st.integers(-200, 200).map(str), st.floats(-99, 99).map(repr), st.sampled_from(["1.", ".5", "+3", "1e2", "2E-1"])
)
words = st.text(st.characters(codec="utf-8", exclude_characters="'"), max_size=12)
strings = st.one_of(
    words.map(lambda word: f"'{word}'"), st.sampled_from(["''", "'a''b'", '"a ""b"" c"', "'0'", '"-- x"', "'`a`'"])
)


def outcome(sql: str) -> object:
    try:
        return parse(sql, TOKENIZER)
    except QueryError as error:
        return str(error)


@given(st.sampled_from(TEXTS), numbers, numbers, strings)
@settings(max_examples=300, deadline=None)
def test_the_same_meaning_and_the_same_mistakes(text: str, n: str, m: str, s: str) -> None:
    sql = text.format(n=n, m=m, s=s)
    quick = outcome(sql)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "read_template", lambda sql: None)
        patch.setattr(parsing, "_SHORT", -1)
        assert outcome(sql) == quick


def test_values_stand_where_they_stand() -> None:
    sql = "SELECT * FROM stream WHERE a = 'it''s' AND b = -12.5"
    read_template("SELECT * FROM stream WHERE a = 'x' AND b = 1")
    found, right = read_template(sql), read_select(sql)
    assert found is not None
    assert [each.values for each in found.where] == [each.values for each in right.where]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "sql", ["", "SELECT", "SELECT * FROM stream WHERE a = 'x", "'", "SELECT * FROM stream WHERE", "\ud800"]
)
def test_what_is_no_query_has_no_template(sql: str) -> None:
    assert read_template(sql) is None


def test_a_text_that_names_a_region_means_what_the_name_stands_for_now() -> None:
    sql = "SELECT Count(id) FROM stream WHERE loc INSIDE Here"
    meant = [parse(sql, TOKENIZER, {"Here": Circle(lon, 0.0, 1.0)}).query.region for lon in (1.0, 2.0)]
    assert meant == [Circle(1.0, 0.0, 1.0), Circle(2.0, 0.0, 1.0)]
    with pytest.raises(QueryError):
        parse(sql, TOKENIZER)


def test_words_are_cut_as_the_tokenizer_cuts_them_however_often_a_text_was_read() -> None:
    sql = "SELECT Count(id) FROM stream WHERE text CONTAINS 'café'"
    assert parse(sql, TOKENIZER) != parse(sql, Tokenizer(keep_accents=True))
