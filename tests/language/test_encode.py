"""The columns of an encoded query."""

import json

import pyarrow as pa
import pytest

from nearcast.common.errors import QueryError
from nearcast.common.expressions import Literal, Phrase
from nearcast.common.geo.shapes import CIRCLE, EVERYWHERE, POLYGON, RECT
from nearcast.common.op_schema import BEGINNING, NEAREST, NEVER, QUERY_FIELDS, RANGE, TERMS
from nearcast.common.queries import TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import decode_code, encode_conditions, encode_query, parse

TOKENIZER = Tokenizer()
LAST, NEGATIVE = 1 << 62, 1 << 63
FLOOD, SUBWAY, DRILL = map(TOKENIZER.term, ("flood", "subway", "drill"))
SECOND = 1_000_000
DAY = 86_400 * SECOND


def encoded(where="", clock=None):
    sql = f"SELECT * FROM stream {'WHERE ' if where else ''}{where}"
    return encode_query(parse(sql, TOKENIZER).query, clock)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM stream WHERE loc INSIDE RECT(1, 2, 3, 4) AND text CONTAINS 'flood' AND new = true",
        "SELECT Count(id), shop FROM stream WHERE time AFTER '5 mins ago' GROUP BY shop ORDER BY shop LIMIT 3",
        "SELECT id FROM stream WHERE text CONTAINS 'flood' ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 3",
    ],
)
def test_conditions_are_encoded_as_in_a_whole_query(sql):
    query = parse(sql, TOKENIZER).query
    whole, part = encode_query(query, DAY), encode_conditions(query, DAY)
    assert part == {name: whole[name] for name in part}
    asked = {"columns", "asks", "k", "at_lon", "at_lat", "window", "sync", "words", "scoring"}
    assert whole.keys() - part.keys() == asked


def test_a_query_for_everything():
    assert encoded() == {
        "region_kind": EVERYWHERE,
        "min_lon": -180.0,
        "min_lat": -90.0,
        "max_lon": 180.0,
        "max_lat": 90.0,
        "shape": [],
        "code": [],
        "since": BEGINNING,
        "until": NEVER,
        "life": NEVER,
        "predicates": None,
        "columns": None,
        "asks": RANGE,
        "k": 0,
        "at_lon": 0.0,
        "at_lat": 0.0,
        "window": 0,
        "sync": 0,
        "words": [],
        "scoring": [],
    }


def test_the_nearest_carry_their_place():
    sql = "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(2.5, -3)) LIMIT 7"
    found = encode_query(parse(sql, TOKENIZER).query)
    assert (found["asks"], found["k"], found["at_lon"], found["at_lat"]) == (NEAREST, 7, 2.5, -3.0)


@pytest.mark.parametrize(
    ("region", "kind", "shape"),
    [
        ("RECT(170, -1, -170, 2)", RECT, []),
        ("CIRCLE(1, 2, 500 m)", CIRCLE, [1.0, 2.0, 0.5]),
        ("POLYGON('POLYGON((0 0, 1 0, 1 1, 0 0))')", POLYGON, [3.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0]),
    ],
)
def test_regions(region, kind, shape):
    fields = encoded(f"loc INSIDE {region}")
    assert (fields["region_kind"], fields["shape"]) == (kind, shape)
    if kind == RECT:
        assert [fields[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat")] == [170.0, -1.0, -170.0, 2.0]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("flood", [1 | LAST, FLOOD]),
        ("NOT flood", [1 | LAST | NEGATIVE, FLOOD]),
        ("NOT drill flood", [1, FLOOD, 1 | LAST | NEGATIVE, DRILL]),
        ('"flood subway" AND NOT drill', [2, FLOOD, SUBWAY, 1 | LAST | NEGATIVE, DRILL]),
        ("flood OR subway drill", [1 | LAST, FLOOD, 1, SUBWAY, 1 | LAST, DRILL]),
        ("flood OR NOT flood", []),
    ],
)
def test_words(text, code):
    fields = encoded(f"text CONTAINS '{text}'")
    assert fields["code"] == code
    assert (fields["since"], fields["until"]) == (BEGINNING, NEVER)


def test_a_code_can_be_read_back():
    code = encoded("text CONTAINS '\"flood subway\" AND NOT drill OR NOT flood'")["code"]
    assert decode_code(code) == ((Literal((FLOOD, SUBWAY)), Literal((DRILL,), True)), (Literal((FLOOD,), True),))
    assert decode_code([]) == ((),)


@pytest.mark.parametrize(
    "where",
    [
        "text CONTAINS 'flood AND NOT flood'",
        "text CONTAINS 'flood' AND text CONTAINS 'NOT flood'",
        "time AFTER '2026-01-03' AND time BETWEEN '2026-01-01' AND '2026-01-02'",
        "time AFTER '2026-01-01' AND time BETWEEN '2026-01-01' AND '2026-01-01'",
    ],
)
def test_what_nothing_can_match_has_an_empty_time(where):
    fields = encoded(where)
    assert (fields["since"], fields["until"]) == (0, 0)


@pytest.mark.parametrize(
    ("where", "since", "until"),
    [
        ("time AFTER '1970-01-02'", DAY + 1, NEVER),
        ("time BETWEEN '1970-01-02' AND '1970-01-03'", DAY, 2 * DAY + 1),
        ("time BETWEEN '1970-01-02' AND '1970-01-02'", DAY, DAY + 1),
        ("time BETWEEN '1970-01-02' AND '1970-01-04' AND time AFTER '1970-01-03'", 2 * DAY + 1, 3 * DAY + 1),
        ("time BETWEEN '1969-12-31' AND '1970-01-01'", -DAY, 1),
        ("time AFTER '1 day ago'", 9 * DAY + 1, NEVER),
        ("time BETWEEN '2 days ago' AND '1 day ago'", 8 * DAY, 9 * DAY + 1),
    ],
)
def test_times_are_half_open(where, since, until):
    fields = encoded(where, clock=10 * DAY)
    assert (fields["since"], fields["until"]) == (since, until)


def test_a_relative_time_needs_the_clock():
    with pytest.raises(ValueError, match="clock"):
        encode_query(RangeQuery(after=TimeBound(ago=1)))


def test_every_kind_is_encoded_by_what_it_asks_of_a_post():
    where = (
        "WHERE loc INSIDE CIRCLE(1, 2, 3 km) AND text CONTAINS 'flood' AND a = 1 AND time AFTER '1 day ago' FOR 1 day"
    )
    ranged = encode_query(parse(f"SELECT id FROM stream {where}", TOKENIZER).query, 10 * DAY)
    by_distance = f"{where} ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 3"
    nearest = encode_query(parse(f"SELECT id FROM stream {by_distance}", TOKENIZER).query, 10 * DAY)
    assert nearest == ranged | {"asks": NEAREST, "k": 3, "at_lon": 1.0, "at_lat": 2.0}
    terms = parse(f"SELECT TopK(text) FROM stream {where} SYNC 1 minute", TOKENIZER).query
    reported = {"asks": TERMS, "k": 10, "window": DAY, "sync": 60 * SECOND}
    assert encode_query(terms, 10 * DAY) == ranged | {"columns": None} | reported


def test_a_window_that_slides_does_not_bound_the_posts_of_a_subscription():
    window = parse("SELECT TopK(text) FROM stream WHERE time AFTER '1 day ago' SYNC 1 minute", TOKENIZER).query
    assert encode_query(window) == encoded() | {"asks": TERMS, "k": 10, "window": DAY, "sync": 60 * SECOND}
    assert encode_query(window, 10 * DAY)["since"] == 9 * DAY + 1
    with pytest.raises(ValueError, match="clock"):
        encode_query(NearestQuery(lon=0, lat=0, k=1, after=TimeBound(ago=1)))
    with pytest.raises(ValueError, match="clock"):
        encode_query(TermsQuery(until=TimeBound(ago=1)))


def test_predicates_columns_and_life():
    sql = "SELECT id, `größe` FROM stream WHERE price < 5 AND a IN ('it''s', 2.5, TRUE) AND b IS NULL FOR 3 seconds"
    fields = encode_query(parse(sql, TOKENIZER).query)
    assert json.loads(fields["predicates"]) == [
        ["price", "<", [5]],
        ["a", "in", ["it's", 2.5, True]],
        ["b", "is_null", []],
    ]
    assert json.loads(fields["columns"]) == ["id", "größe"]
    assert fields["life"] == 3 * SECOND


def test_the_values_fit_their_columns():
    rows = [encoded("text CONTAINS 'NOT flood OR subway' AND loc INSIDE CIRCLE(1, 2, 3 km) AND a = 'x'"), encoded()]
    table = pa.Table.from_pylist(rows, pa.schema(QUERY_FIELDS))
    assert table.to_pylist() == rows


def test_a_phrase_too_long_for_its_header_is_refused():
    with pytest.raises(QueryError, match="at most 65,535 words"):
        encode_query(RangeQuery(text=Phrase((1,) * 65_536, ("a",) * 65_536)))
