"""Tables of query texts and what they mean."""

import pytest

from nearcast.common.expressions import And, Not, Or, Phrase
from nearcast.common.geo.shapes import Circle, Polygon, Rect
from nearcast.common.queries import Predicate, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import parse, parse_contains, parse_region

TOKENIZER = Tokenizer()
HOUR = 3_600_000_000
MAY_1 = 1_777_593_600_000_000  # 2026-05-01T00:00:00Z


def word(text):
    return Phrase((TOKENIZER.term(text),), (text,))


def phrase(*words):
    return Phrase(tuple(TOKENIZER.term(each) for each in words), words)


FLOOD, SUBWAY, TUNNEL, DRILL = map(word, ("flood", "subway", "tunnel", "drill"))


def query(sql, regions=None):
    return parse(sql, TOKENIZER, regions).query


@pytest.mark.parametrize(
    ("rest", "meaning"),
    [
        ("", RangeQuery()),
        (" ; ", RangeQuery()),
        (" -- nothing more\n;", RangeQuery()),
        (" ORDER BY time DESC", RangeQuery()),
        (" order by TS desc", RangeQuery()),
        (" LIMIT 10", RangeQuery(limit=10)),
        (" FOR 72 HOURS", RangeQuery(life=72 * HOUR)),
        (" for 1 Week", RangeQuery(life=7 * 24 * HOUR)),
        (" FOR 1.5 mins LIMIT 3", RangeQuery(limit=3, life=90_000_000)),
        (
            " WHERE loc INSIDE RECT(-74.3, 40.5, -73.7, 40.9)"
            " AND text CONTAINS 'flood AND (subway OR tunnel) AND NOT drill'",
            RangeQuery(region=Rect(-74.3, 40.5, -73.7, 40.9), text=And((FLOOD, Or((SUBWAY, TUNNEL)), Not(DRILL)))),
        ),
        (
            " WHERE loc INSIDE CIRCLE(-0.12, 51.5, 2.5 km) AND text OVERLAPS 'coffee cafe espresso'\n"
            "   AND time AFTER '72 hours ago' AND price < 5",
            RangeQuery(
                region=Circle(-0.12, 51.5, 2.5),
                text=Or((word("coffee"), word("cafe"), word("espresso"))),
                predicates=(Predicate("price", "<", (5,)),),
                after=TimeBound(ago=72 * HOUR),
            ),
        ),
        (" where Text contains 'flood' and TEXT overlaps 'drill'", RangeQuery(text=And((FLOOD, DRILL)))),
    ],
)
def test_a_query_means_what_it_says(rest, meaning):
    assert query("SELECT * FROM stream" + rest) == meaning


@pytest.mark.parametrize(
    ("sql", "meaning"),
    [
        (
            "SELECT * FROM stream WHERE text CONTAINS 'flood' ORDER BY DISTANCE(loc, POINT(2.35, 48.86)) LIMIT 10",
            NearestQuery(lon=2.35, lat=48.86, k=10, text=FLOOD),
        ),
        (
            "select ID, price from STREAM order by distance(LOC, point(-180, +9e1)) asc limit +007",
            NearestQuery(lon=-180.0, lat=90.0, k=7, columns=("id", "price")),
        ),
        (
            "SELECT * FROM stream LIMIT 3 ORDER BY DISTANCE(loc, POINT(0, 0)) FOR 1 hour",
            NearestQuery(lon=0.0, lat=0.0, k=3, life=HOUR),
        ),
        (
            "SELECT * FROM stream WHERE loc INSIDE RECT(1, 2, 3, 4) AND price < 5 AND time AFTER '1 hour ago'"
            " AND time BETWEEN '2026-05-01' AND '2 hours ago' ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 1",
            NearestQuery(
                lon=1.0,
                lat=2.0,
                k=1,
                region=Rect(1.0, 2.0, 3.0, 4.0),
                predicates=(Predicate("price", "<", (5,)),),
                after=TimeBound(ago=HOUR),
                since=TimeBound(at=MAY_1),
                until=TimeBound(ago=2 * HOUR),
            ),
        ),
    ],
)
def test_the_nearest_are_ordered_by_distance_and_counted_by_limit(sql, meaning):
    assert query(sql) == meaning


@pytest.mark.parametrize(
    ("sql", "meaning"),
    [
        ("SELECT TopK(text) FROM stream", TermsQuery(k=10)),
        ("select topk(TEXT, 1000) from stream", TermsQuery(k=1000)),
        ("SELECT TopK(`text`, +3) FROM stream FOR 1 hour", TermsQuery(k=3, life=HOUR)),
        (
            "SELECT TopK(text, 10) FROM stream WHERE loc INSIDE RECT(1, 2, 3, 4) AND time AFTER '1 hour ago'"
            " SYNC 1 minute",
            TermsQuery(k=10, region=Rect(1.0, 2.0, 3.0, 4.0), after=TimeBound(ago=HOUR), sync=HOUR // 60),
        ),
        (
            "SELECT TopK(text, 2) FROM stream WHERE text CONTAINS 'flood' AND open = TRUE"
            " AND time BETWEEN '2026-05-01' AND '2026-05-01' SYNC 0.5 secs",
            TermsQuery(
                k=2,
                text=FLOOD,
                predicates=(Predicate("open", "=", (True,)),),
                since=TimeBound(at=MAY_1),
                until=TimeBound(at=MAY_1),
                sync=500_000,
            ),
        ),
    ],
)
def test_frequent_terms_are_a_topk_of_the_text(sql, meaning):
    assert query(sql) == meaning


@pytest.mark.parametrize(
    ("region", "meaning"),
    [
        ("RECT(170, -10, -170, 10)", Rect(170.0, -10.0, -170.0, 10.0)),
        ("rect(-1.5e1,-90,+15.,.5)", Rect(-15.0, -90.0, 15.0, 0.5)),
        ("CIRCLE(1, 2, 500 m)", Circle(1.0, 2.0, 0.5)),
        ("CIRCLE(1, 2, 0KM)", Circle(1.0, 2.0, 0.0)),
        ("POLYGON('POLYGON((0 0, 1 0, 1 1, 0 0))')", Polygon((((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)),))),
        ("downtown", Rect(1.0, 2.0, 3.0, 4.0)),
        ("`by the sea`", Circle(5.0, 6.0, 7.0)),
    ],
)
def test_a_region_is_a_shape_or_a_name(region, meaning):
    regions = {"downtown": Rect(1.0, 2.0, 3.0, 4.0), "by the sea": Circle(5.0, 6.0, 7.0)}
    assert query(f"SELECT * FROM stream WHERE loc INSIDE {region}", regions).region == meaning
    assert parse_region(region, regions) == meaning


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        ("price = 5", Predicate("price", "=", (5,))),
        ("price <> -5.0", Predicate("price", "<>", (-5.0,))),
        ("price!=1e3", Predicate("price", "<>", (1000.0,))),
        ("price <= 9223372036854775807", Predicate("price", "<=", (2**63 - 1,))),
        ("price >= 9223372036854775808", Predicate("price", ">=", (2.0**63,))),
        ("price > .5", Predicate("price", ">", (0.5,))),
        ("topic = 'it''s'", Predicate("topic", "=", ("it's",))),
        ('topic = "say ""no"""', Predicate("topic", "=", ('say "no"',))),
        ("topic = ''", Predicate("topic", "=", ("",))),
        ("open = true", Predicate("open", "=", (True,))),
        ("price BETWEEN 1 AND 2.5", Predicate("price", "between", (1, 2.5))),
        ("topic IN ('a', 2, FALSE)", Predicate("topic", "in", ("a", 2, False))),
        ("topic NOT IN ('a')", Predicate("topic", "not_in", ("a",))),
        ("price IS NULL", Predicate("price", "is_null")),
        ("price is not null", Predicate("price", "is_not_null")),
        ("`odd name; AND` = 1", Predicate("odd name; AND", "=", (1,))),
        ("`limit` = 1", Predicate("limit", "=", (1,))),
        ("`time` = 'noon'", Predicate("time", "=", ("noon",))),
        ("Größe = 1", Predicate("Größe", "=", (1,))),
        ("inside = 1", Predicate("inside", "=", (1,))),
        ("textile = 1", Predicate("textile", "=", (1,))),
    ],
)
def test_conditions_on_attributes(condition, meaning):
    assert query(f"SELECT * FROM stream WHERE {condition} AND x = 1 LIMIT 2") == RangeQuery(
        predicates=(meaning, Predicate("x", "=", (1,))), limit=2
    )


@pytest.mark.parametrize(
    ("condition", "meaning"),
    [
        ("time AFTER '1 hour ago'", RangeQuery(after=TimeBound(ago=HOUR))),
        ("ts after '10 mins AGO'", RangeQuery(after=TimeBound(ago=HOUR // 6))),
        ("time AFTER '2026-05-01'", RangeQuery(after=TimeBound(at=MAY_1))),
        ("time AFTER '2026-05-01T02:00:00+02:00'", RangeQuery(after=TimeBound(at=MAY_1))),
        ("time AFTER '2026-05-01 00:00:00.000001Z'", RangeQuery(after=TimeBound(at=MAY_1 + 1))),
        ("time AFTER 1777593600000", RangeQuery(after=TimeBound(at=MAY_1))),
        (
            "time BETWEEN '2026-05-01' AND '2026-05-01T01:00Z' AND time AFTER '1 day ago'",
            RangeQuery(since=TimeBound(at=MAY_1), until=TimeBound(at=MAY_1 + HOUR), after=TimeBound(ago=24 * HOUR)),
        ),
        (
            "time BETWEEN '2 hours ago' AND '1 hour ago'",
            RangeQuery(since=TimeBound(ago=2 * HOUR), until=TimeBound(ago=HOUR)),
        ),
    ],
)
def test_times_are_relative_or_absolute(condition, meaning):
    assert query(f"SELECT * FROM stream WHERE {condition}") == meaning


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        ("*", None),
        ("id", ("id",)),
        ("ID, Text, time, lon, lat, price", ("id", "text", "ts", "lon", "lat", "price")),
        ("Topic, topic, `a,b`, count", ("Topic", "topic", "a,b", "count")),
    ],
)
def test_columns(items, columns):
    assert query(f"SELECT {items} FROM stream").columns == columns


@pytest.mark.parametrize(
    ("column", "order"),
    [("score", "RELEVANCE(POINT(1, 2), 'x', 0.5) DESC LIMIT 5"), ("distance_km", "DISTANCE(loc, POINT(1, 2)) LIMIT 5")],
)
def test_an_attribute_in_backticks_may_be_named_like_what_an_answer_is_ordered_by(column, order):
    (asked,) = query(f"SELECT * FROM stream WHERE `{column}` > 3 ORDER BY {order}").predicates
    assert (asked.name, asked.values) == (column, (3,))
    assert query(f"SELECT * FROM stream WHERE {column} > 3").predicates == (asked,)


def test_explain_asks_for_the_plan_only():
    explained = parse("EXPLAIN SELECT * FROM stream", TOKENIZER)
    assert explained.explain and explained.query == RangeQuery() and explained.sql == "EXPLAIN SELECT * FROM stream"
    assert not parse("SELECT * FROM stream", TOKENIZER).explain


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("flood", FLOOD),
        ("Flood subway", And((FLOOD, SUBWAY))),
        ("flood and subway", And((FLOOD, word("and"), SUBWAY))),
        ("flood OR subway tunnel", Or((FLOOD, And((SUBWAY, TUNNEL))))),
        ("NOT flood subway OR tunnel", Or((And((Not(FLOOD), SUBWAY)), TUNNEL))),
        ("flood AND NOT (subway OR tunnel)", And((FLOOD, Not(Or((SUBWAY, TUNNEL)))))),
        ("NOT NOT flood", FLOOD),
        ("NOT (NOT flood)", FLOOD),
        ("((flood)) (subway (tunnel))", And((FLOOD, SUBWAY, TUNNEL))),
        ("(flood OR subway) OR tunnel", Or((FLOOD, SUBWAY, TUNNEL))),
        ("flood(subway)tunnel", And((FLOOD, SUBWAY, TUNNEL))),
        ('"flash flood" AND NOT drill', And((phrase("flash", "flood"), Not(DRILL)))),
        ('"flood AND (subway"', phrase("flood", "and", "subway")),
        ("wi-fi", phrase("wi", "fi")),
        ("東京", phrase("東", "京")),
        ("#flood", word("#flood")),
        ("@flood, #flood!", And((word("@flood"), word("#flood")))),
        ('"#flood"', word("#flood")),
        ("#wi-fi", And((phrase("wi", "fi"), word("#wi")))),
        ('"flash #flood"', And((phrase("flash", "flood"), word("#flood")))),
    ],
)
def test_contains(text, meaning):
    assert query(f"SELECT * FROM stream WHERE text CONTAINS '{text}'").text == meaning
    assert parse_contains(text, TOKENIZER) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("flood", FLOOD),
        ("flood subway flood", Or((FLOOD, SUBWAY))),
        ('flood "subway tunnel"', Or((FLOOD, phrase("subway", "tunnel")))),
    ],
)
def test_overlaps(text, meaning):
    assert query(f"SELECT * FROM stream WHERE text OVERLAPS '{text}'").text == meaning


def test_strings_in_double_quotes_double_them_inside():
    sql = 'SELECT * FROM stream WHERE text CONTAINS "drill ""flash flood"""'
    assert query(sql).text == And((DRILL, phrase("flash", "flood")))
