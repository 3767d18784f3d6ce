"""The oracle itself, held to cases that were worked out by hand."""

import math

import pytest

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.language import parse
from tests.oracles.searches import nearest_rows, range_rows, term_counts

TOKENIZER = Tokenizer()
MINUTE = 60_000_000
DEGREE_KM = 6371.0088 * math.pi / 180

#  minutes   0         10        20        30 (the clock)
#  ids       1         10        "10", 2   3
POSTS = [
    {"id": 1, "ts": 0, "lon": 0.0, "lat": 0.0, "text": "Flood in the subway, flood!", "price": 3},
    {"id": 10, "ts": 10 * MINUTE, "lon": 1.0, "lat": 0.0, "text": "flash #flood 🌊🌊", "price": 7},
    {"id": "10", "ts": 20 * MINUTE, "lon": -1.0, "lat": 0.0, "text": "subway flash", "topic": "a"},
    {"id": 2, "ts": 20 * MINUTE, "lon": 0.0, "lat": 1.0, "text": None},
    {"id": 3, "ts": 30 * MINUTE, "lon": 180.0, "lat": 0.0, "text": "Café"},
]
CLOCK = 30 * MINUTE


def ask(answer, sql, posts=POSTS, clock=CLOCK):
    return answer(posts, parse(sql, TOKENIZER).query, clock, TOKENIZER)


def ids(answer, sql, posts=POSTS):
    return [row["id"] for row in ask(answer, sql, posts)]


@pytest.mark.parametrize(
    ("rest", "found"),
    [
        ("", [3, 2, "10", 10, 1]),
        ("LIMIT 2", [3, 2]),
        ("LIMIT 0", []),
        ("WHERE loc INSIDE RECT(170, -1, -1, 1)", [3, "10"]),
        ("WHERE loc INSIDE RECT(0, 0, 1, 0)", [10, 1]),
        ("WHERE text CONTAINS 'flood'", [10, 1]),
        ("WHERE text CONTAINS '#flood'", [10]),
        ("WHERE text CONTAINS '\"flash flood\"'", [10]),
        ("WHERE text CONTAINS '\"flood 🌊\"'", [10]),
        ("WHERE text CONTAINS 'NOT flood'", [3, 2, "10"]),
        ("WHERE text OVERLAPS 'cafe subway'", [3, "10", 1]),
        ("WHERE price < 7", [1]),
        ("WHERE price IS NULL AND topic <> 'b'", ["10"]),
        ("WHERE time AFTER '20 mins ago'", [3, 2, "10"]),
        ("WHERE time AFTER '20.0001 mins ago'", [3, 2, "10", 10]),
        ("WHERE time BETWEEN '1970-01-01T00:10:00Z' AND '10 mins ago'", [2, "10", 10]),
        ("WHERE time BETWEEN 0 AND 600000 AND time AFTER 0", [10]),
        ("WHERE text CONTAINS 'flood AND NOT flood'", []),
    ],
)
def test_a_range_search_finds_what_meets_all_conditions_newest_first(rest, found):
    assert ids(range_rows, f"SELECT * FROM stream {rest}") == found


@pytest.mark.parametrize(
    ("where", "point", "k", "found"),
    [
        ("", "0, 0", 9, [1, 2, 10, "10", 3]),  # three posts at one degree: numbers by value, then strings
        ("", "0, 0", 2, [1, 2]),
        ("", "-179, 0", 2, [3, "10"]),
        ("", "77, 90", 1, [2]),
        ("", "77, -90", 4, [1, 3, 10, "10"]),  # all of the equator is equally far from a pole
        ("WHERE text CONTAINS 'flood'", "2, 0", 9, [10, 1]),
        ("WHERE text CONTAINS 'drought'", "2, 0", 9, []),
        ("WHERE time AFTER '20 mins ago' AND loc INSIDE RECT(-2, -2, 2, 2)", "0, 0", 9, [2, "10"]),
    ],
)
def test_a_nearest_search_finds_the_k_nearest_of_those(where, point, k, found):
    sql = f"SELECT * FROM stream {where} ORDER BY DISTANCE(loc, POINT({point})) LIMIT {k}"
    assert ids(nearest_rows, sql) == found


def test_a_nearest_row_has_its_distance():
    sql = "SELECT id, topic FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 5"
    rows = ask(nearest_rows, sql)
    assert [list(row) for row in rows] == [["id", "topic", "distance_km"]] * 5
    assert [row["topic"] for row in rows] == [None, None, None, "a", None]
    assert [row["distance_km"] / DEGREE_KM for row in rows] == pytest.approx([0, 1, 1, 1, 180])


def test_rows_have_all_that_the_post_has_or_the_columns_that_were_asked_for():
    assert ask(range_rows, "SELECT * FROM stream WHERE topic = 'a'") == [POSTS[2]]
    assert ask(range_rows, "SELECT price, ts FROM stream WHERE topic = 'a'") == [{"price": None, "ts": 20 * MINUTE}]


@pytest.mark.parametrize(
    ("k", "where", "terms"),
    [
        (
            99,
            "",
            "flash 2, flood 2, subway 2, #flood 1, cafe 1, in 1, the 1, 🌊 1",
        ),
        (2, "", "flash 2, flood 2"),
        (9, "WHERE text CONTAINS 'flash'", "flash 2, #flood 1, flood 1, subway 1, 🌊 1"),
        (9, "WHERE time AFTER '10 minutes ago'", "cafe 1"),
        (9, "WHERE loc INSIDE RECT(0, 1, 0, 1)", ""),
    ],
)
def test_a_term_counts_once_a_post_and_ties_go_by_term(k, where, terms):
    counts = ask(term_counts, f"SELECT TopK(text, {k}) FROM stream {where}")
    assert ", ".join(f"{word} {count}" for word, count in counts) == terms


def test_the_window_of_a_report_ends_at_its_beat():
    sql = "SELECT TopK(text) FROM stream WHERE time AFTER '10 minutes ago' SYNC 10 minutes"
    #  beat      window     posts
    #  0         (-10, 0]   1
    #  10        (0, 10]    10
    #  20        (10, 20]   "10", 2
    reports = {beat: dict(ask(term_counts, sql, clock=beat * MINUTE)) for beat in (-10, 0, 10, 20, 30, 40)}
    assert reports == {
        -10: {},
        0: {"flood": 1, "in": 1, "the": 1, "subway": 1},
        10: {"flash": 1, "flood": 1, "#flood": 1, "🌊": 1},
        20: {"subway": 1, "flash": 1},
        30: {"cafe": 1},
        40: {},
    }


def test_several_posts_of_one_id_are_several_posts():
    moved = [{"id": 1, "ts": ts, "lon": lon, "lat": 0.0, "text": "a"} for ts, lon in ((1, 5.0), (2, 5.0), (2, -5.0))]
    places = [(row["ts"], row["lon"]) for row in ask(range_rows, "SELECT * FROM stream", moved)]
    assert places == [(2, -5.0), (2, 5.0), (1, 5.0)]
    nearest = ask(nearest_rows, "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 3", moved)
    assert [(row["ts"], row["lon"]) for row in nearest] == places
    assert ask(term_counts, "SELECT TopK(text) FROM stream", moved) == [("a", 3)]


def test_no_posts_give_no_rows():
    assert ask(range_rows, "SELECT * FROM stream", []) == []
    assert ask(nearest_rows, "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(0, 0)) LIMIT 3", []) == []
    assert ask(term_counts, "SELECT TopK(text) FROM stream", []) == []
