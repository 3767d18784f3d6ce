"""Tables of mistakes: what the message says, and exactly which characters the caret stands under.

In each text the guilty characters are between « and », which are taken out before parsing.
"""

import time

import pytest

from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Rect
from nearcast.common.queries import Statement, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import check_search, check_subscription, parse, parse_contains

TOKENIZER = Tokenizer()
W = "SELECT * FROM stream WHERE "
N = "SELECT * FROM stream"
REGIONS = {"downtown": Rect(1.0, 2.0, 3.0, 4.0)}

SYNTAX = [
    ("«»", "the query is empty", "expected EXPLAIN or SELECT"),
    ("«SELCT» * FROM stream", "SELCT does not belong here", "did you mean SELECT?"),
    ("SELECT * «FORM» stream", "FORM does not belong here", "expected FROM; did you mean FROM?"),
    ("SELECT «FROM» stream", "FROM does not", "expected * or a column's name"),
    ("SELECT * FROM «steam»", "steam does not", "did you mean stream?"),
    (
        "SELECT * FROM stream «WHER» a = 1",
        "WHER does not",
        "WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, FOR, SYNC, WINDOW or the end; did you mean WHERE?",
    ),
    ("SELECT * FROM stream WHERE text «CONTIANS» 'flood'", "CONTIANS", "CONTAINS or OVERLAPS; did you mean CONTAINS?"),
    (W + "loc «INSDE» RECT(1, 2, 3, 4)", "INSDE does not belong here", "expected INSIDE; did you mean INSIDE?"),
    (W + "text CONTAINS «'»flood", "has no closing '", ""),
    (W + "text CONTAINS«»", "ends too early", "expected a string in quotes"),
    (W + "a = 1 «OR» b = 2", "conditions are joined by AND; OR works inside CONTAINS", "expected AND"),
    (W + "«(»a = 1)", "without brackets", "loc, text, time or an attribute's name"),
    (W + "«NOT» a = 1", "without brackets or NOT", ""),
    (W + "«limit» = 1", "limit does not belong here", "goes in backticks: `limit`"),
    (W + "topic = «flood»", "words go in quotes", "a string in quotes"),
    (W + "a «LIKE» 'x'", "LIKE does not", "BETWEEN"),
    (W + "a «~» 'x'", "~ does not belong here", "=, <>"),
    (W + "a IN («)»", ") does not", "a number, a string in quotes"),
    (W + "time «BEFORE» '2026-01-01'", "BEFORE", "expected AFTER or BETWEEN"),
    ("SELECT TopK(text) FROM stream «SYNK» 1 minute", "SYNK does not", "did you mean SYNC?"),
    ("SELECT TopK(text) FROM stream SYNC 1«»", "ends too early", "a unit such as hours or km"),
    ("SELECT * FROM stream FOR 72«»", "ends too early", "a unit such as hours or km"),
    ("SELECT * FROM stream; «SELECT» 1", "SELECT does not", "the end"),
]
R = "ORDER BY RELEVANCE(POINT(1, 2), 'x', 0.5) DESC LIMIT 5"
D = "ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 5"
MEANING = [
    (f"{W}«score» > 0.5 {R}", "score is worked out for the answer", "`score` in backticks"),
    (f"{W}a = 1 AND «Distance_km» < 5 {D}", "distance_km is worked out for the answer", "an attribute's name"),
    (W + "loc INSIDE «dwontown»", "no region dwontown", "did you mean downtown?"),
    (W + "loc INSIDE «RCT»(1, 2, 3, 4)", "no region RCT", "did you mean RECT?"),
    (W + "loc INSIDE «RECT»(1, 2, 3)", "RECT has 3 of its values", "RECT(min_lon, min_lat, max_lon, max_lat)"),
    (W + "loc INSIDE RECT(1, 2, 3, «90.5»)", "no such latitude", "from -90 to 90"),
    (W + "loc INSIDE RECT(«-181», 2, 3, 4)", "no such longitude", "from -180 to 180"),
    (W + "loc INSIDE RECT(1, 2, 3, «-4»)", "second latitude is below its first", "min_lat <= max_lat"),
    (W + "loc INSIDE RECT(1, «'2'», 3, 4)", "plain number", "a number"),
    (W + "loc INSIDE RECT(1, «2 km», 3, 4)", "plain number", "a number"),
    (W + "loc INSIDE RECT(1, 2, «*», 4)", "plain number", "a number"),
    (W + "loc INSIDE CIRCLE(1, 2, 3«)»", "no unit", "km or m"),
    (W + "loc INSIDE CIRCLE(1, 2, 3 «miles»)", "not in miles", "km or m"),
    (W + "loc INSIDE CIRCLE(1, 2, «-3» km)", "no such radius", "from 0 up"),
    (W + "loc INSIDE CIRCLE(1, 2, «1e999» km)", "no such radius", "from 0 up"),
    (W + "loc INSIDE CIRCLE(1, «1e999», 1 km)", "no such latitude", ""),
    (W + "loc INSIDE POLYGON(«'CIRCLE'»)", "WKT", ""),
    (W + "loc INSIDE POLYGON(«5»)", "WKT in quotes", ""),
    (W + "loc INSIDE downtown AND «loc INSIDE» downtown", "one region", "one loc INSIDE"),
    (W + "time AFTER '72 «huors» ago'", "huors is no unit of time", "did you mean hours?"),
    (W + "time AFTER '72 hours«'»", "ends in ago", ""),
    (W + "time AFTER «'yesterday'»", "not a time", "'72 hours ago' or an ISO 8601 time"),
    (W + "time AFTER «'40000-01-01'»", "not a time", ""),
    (W + "time AFTER '«1.2.3» hours ago'", "is no number", ""),
    (W + "time AFTER «1e18»", "no such time", "1 to 9999"),
    (W + "time BETWEEN '2026-01-02' AND «'2026-01-01'»", "before", "the later time last"),
    (W + "time BETWEEN '1 hour ago' AND «'2 hours ago'»", "before", "the later time last"),
    (W + "time AFTER '2026-01-02' AND «time AFTER» '2026-01-01'", "given twice", ""),
    (W + "price = «NULL»", "NULL", "IS NULL"),
    (W + "price = «1e999»", "too large", ""),
    (W + "«lon» < 5", "part of the place", "loc INSIDE"),
    (W + "«`text`» = 'x'", "no attribute", ""),
    ("SELECT id, «ID» FROM stream", "given twice", ""),
    ("SELECT «loc» FROM stream", "two columns", "lon, lat"),
    ("SELECT id AS «x» FROM stream", "keeps its name", ""),
    ("SELECT * FROM stream LIMIT «2.5»", "whole number", ""),
    ("SELECT * FROM stream LIMIT «-1»", "whole number", ""),
    ("SELECT * FROM stream LIMIT 1 «LIMIT» 2", "LIMIT is given twice", ""),
    ("SELECT * FROM stream FOR 72 «HUORS»", "no unit of time", "did you mean hours?"),
    ("SELECT * FROM stream FOR «0» HOURS", "no time at all", "greater than 0"),
    ("SELECT * FROM stream FOR «1e30» HOURS", "no such length", ""),
    ("SELECT * FROM stream ORDER BY «time»", "newest first", "time DESC"),
    ("SELECT * FROM stream ORDER BY «price» DESC", "newest first", "time DESC"),
    ("SELECT * FROM stream ORDER BY time DESC, «id»", "newest first", "time DESC"),
    (W + "a = '«\ud800»'", "half a character", ""),
    ("SELECT * FROM stream ORDER BY «DISTENCE»(loc, POINT(1, 2)) LIMIT 1", "no function", "did you mean DISTANCE?"),
    (f"{N} «ORDER» BY DISTANCE(loc, POINT(1, 2))", "needs a LIMIT that says how many", "LIMIT 10 at the end"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(1, 2)) «DESC» LIMIT 1", "nearest come first", "ASC, or nothing"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(1, 2)), «id» LIMIT 1", "ties by id", "and nothing more"),
    (f"{N} ORDER BY time DESC, «DISTANCE»(loc, POINT(1, 2)) LIMIT 1", "newest first", "and nothing more"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT «0»", "whole number", "from 1 up"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT «2.5»", "whole number", "from 1 up"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT «1e3»", "whole number", "from 1 up"),
    (f"{N} ORDER BY «DISTANCE»(loc) LIMIT 1", "DISTANCE has 1 of its values", "DISTANCE(loc, POINT(lon, lat))"),
    (f"{N} ORDER BY «DISTANCE»() LIMIT 1", "DISTANCE has 0 of its values", "DISTANCE(loc, POINT(lon, lat))"),
    (f"{N} ORDER BY DISTANCE(«lok», POINT(1, 2)) LIMIT 1", "a post's place", "did you mean loc?"),
    (f"{N} ORDER BY DISTANCE(«POINT»(1, 2), loc) LIMIT 1", "a post's place", "DISTANCE(loc, POINT(lon, lat))"),
    (f"{N} ORDER BY DISTANCE(loc, «PONT»(1, 2)) LIMIT 1", "no point", "POINT(lon, lat); did you mean POINT?"),
    (f"{N} ORDER BY DISTANCE(loc, «here») LIMIT 1", "no point", "POINT(lon, lat)"),
    (f"{N} ORDER BY DISTANCE(loc, «5 km») LIMIT 1", "no point", "POINT(lon, lat)"),
    (f"{N} ORDER BY DISTANCE(loc, «POINT»(1)) LIMIT 1", "POINT has 1 of its values", "POINT(lon, lat)"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(«-180.1», 2)) LIMIT 1", "no such longitude", "from -180 to 180"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(48.8, «122»)) LIMIT 1", "no such latitude", "longitude comes first"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(«'1'», 2)) LIMIT 1", "plain number", "a number"),
    ("SELECT «TopX»(text) FROM stream", "no function TopX", "did you mean TopK?"),
    ("SELECT «TopK»() FROM stream", "TopK has 0 values", "TopK(text, 10), or TopK(text)"),
    ("SELECT «TopK»(text, 1, 2) FROM stream", "TopK has 3 values", "TopK(text, 10), or TopK(text)"),
    ("SELECT TopK(«10», text) FROM stream", "counts the words of text", "expected text"),
    ("SELECT TopK(«topic», 10) FROM stream", "counts the words of text", "expected text"),
    ("SELECT TopK(«texts», 10) FROM stream", "counts the words of text", "did you mean text?"),
    ("SELECT TopK(«*») FROM stream", "counts the words of text", "expected text"),
    ("SELECT TopK(text, «0») FROM stream", "whole number of terms", "from 1 up"),
    ("SELECT TopK(text, «-1») FROM stream", "whole number of terms", "from 1 up"),
    ("SELECT TopK(text, «1.5») FROM stream", "whole number of terms", "from 1 up"),
    ("SELECT TopK(text, «'10'») FROM stream", "whole number of terms", "from 1 up"),
    ("SELECT TopK(text, «10 km») FROM stream", "whole number of terms", "from 1 up"),
    ("SELECT TopK(text) AS «words» FROM stream", "two columns, term and count", "FROM"),
    ("SELECT TopK(text) FROM stream «LIMIT» 5", "said in the TopK itself", "TopK(text, 10)"),
    ("SELECT TopK(text) FROM stream «ORDER» BY count DESC", "most frequent first", "no ORDER BY"),
    ("SELECT TopK(text) FROM stream «ORDER» BY DISTANCE(loc, POINT(1, 2))", "most frequent first", "no ORDER BY"),
    ("SELECT TopK(text) FROM stream SYNC 1 min «SYNC» 1 min", "SYNC is given twice", "one SYNC"),
    ("SELECT TopK(text) FROM stream SYNC «0» minutes", "no time at all", "greater than 0"),
    ("SELECT TopK(text) FROM stream SYNC «-1» minutes", "no such length", "from 0"),
    ("SELECT TopK(text) FROM stream SYNC 1 «minuet»", "no unit of time", "did you mean minute?"),
]
KINDS = [
    (
        "SELECT * FROM stream ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 1 «SYNC» 1 minute",
        "(SYNC) of anything but aggregates and TopK",
    ),
    ("SELECT * FROM stream «SYNC» 1 minute", "(SYNC) of anything but aggregates and TopK"),
]
WORDS = [
    (W + "text CONTAINS «''»", "no word", ""),
    (W + "text CONTAINS «'  '»", "no word", ""),
    (W + "text CONTAINS 'flood «!!!»'", "no word in !!!", "letters or digits"),
    (W + "text CONTAINS 'it''s «''!!!»'", "no word in", ""),
    (W + "text CONTAINS '«https://example.org/x» flood'", "no word in", ""),
    (W + "text CONTAINS 'flood «AND»'", "AND needs a word after it", ""),
    (W + "text CONTAINS '«OR» flood'", "OR needs a word before it", ""),
    (W + "text CONTAINS 'flood AND «OR» drill'", "OR needs a word before it", ""),
    (W + "text CONTAINS '(flood «NOT»)'", "NOT needs a word after it", ""),
    (W + "text CONTAINS 'flood («)»'", "no word", ""),
    (W + "text CONTAINS 'flood «(»drill'", "never closed", ""),
    (W + "text CONTAINS 'flood«)»'", "never opened", ""),
    (W + "text CONTAINS 'flood «\"»flash'", 'no closing "', ""),
    (W + "text OVERLAPS 'flood «OR» drill'", "OVERLAPS takes plain words", ""),
    (W + "text OVERLAPS 'flood «(»drill)'", "OVERLAPS takes plain words", ""),
    (W + "text OVERLAPS «''»", "no word", ""),
    (W + "a=1 AND text OVERLAPS «'" + " ".join(f"w{i}" for i in range(65)) + "'»", "more than 64 alternatives", ""),
]


def error_of(sql):
    with pytest.raises(QueryError) as caught:
        parse(sql, TOKENIZER, REGIONS)
    return str(caught.value)


def split(marked):
    """The text without its marks, and the characters between them."""
    before, rest = marked.split("«")
    guilty, after = rest.split("»")
    return before + guilty + after, len(before), guilty


@pytest.mark.parametrize(
    ("marked", "says", "hints"),
    [*SYNTAX, *MEANING, *WORDS, *((text, says + " is not in this version yet", "") for text, says in KINDS)],
)
def test_an_error_points_at_the_word(marked, says, hints):
    sql, start, guilty = split(marked)
    message, line, carets, *rest = error_of(sql).split("\n")
    assert says in message and message.endswith(f"(line 1, column {start + 1})")
    if len(sql) <= 120:
        assert line == "  " + sql.replace("\ud800", "\ufffd")
        assert carets == " " * (start + 2) + "^" * max(1, len(guilty))
    else:
        assert carets.strip() == "^" * len(carets.strip()) and line[carets.index("^")] == (guilty or " ")[0]
    assert hints in "".join(rest)


@pytest.mark.parametrize(
    ("before", "line_before", "margin"),
    [
        ("", W, " " * len(W)),
        ("SELECT *\nFROM stream\n", "WHERE ", "      "),
        ("SELECT *\r\nFROM stream -- 'x\r\n", "  WHERE ", "        "),
        ("SELECT *\n\n", "\tFROM stream\tWHERE ", "\t           \t      "),
        ("SELECT *\n", "FROM stream WHERE topic = '🌊' AND ", " " * 35),  # the wave is two columns wide
        ("SELECT *\n", "FROM stream WHERE topic = '東e\u0301' AND ", " " * 36),  # and an accent of its own none
    ],
)
def test_the_caret_keeps_its_place(before, line_before, margin):
    sql = f"{before}{line_before}text CONTAINS 'flood !!!' LIMIT 1\r\n;"
    expected_line = f"{line_before}text CONTAINS 'flood !!!' LIMIT 1"
    message, line, carets, _ = error_of(sql).split("\n")
    number, column = before.count("\n") + 1, len(line_before) + len("text CONTAINS 'flood ") + 1
    assert message.endswith(f"(line {number}, column {column})")
    assert line == "  " + expected_line
    assert carets == "  " + margin + " " * len("text CONTAINS 'flood ") + "^^^"


@pytest.mark.parametrize(("text", "carets"), [("", "^"), ("  ", "^"), ("flood !!!", "      ^^^"), ("(flood", "^")])
def test_an_expression_by_itself_is_pointed_into_as_well(text, carets):
    with pytest.raises(QueryError) as caught:
        parse_contains(text, TOKENIZER)
    assert str(caught.value).split("\n")[1:3] == [f"  {text}", f"  {carets}"]


def test_a_long_line_is_shown_around_the_word():
    sql = (
        W
        + " AND ".join(f"a{i} = {i}" for i in range(1000))
        + " AND text CONTIANS 'flood' AND "
        + "b = 1 AND " * 100
        + "c = 1"
    )
    message, line, carets, _ = error_of(sql).split("\n")
    assert f"column {sql.index('CONTIANS') + 1})" in message
    assert line.startswith("  …") and line.endswith("…") and len(line) < 130
    assert line[carets.index("^") : len(carets)] == "CONTIANS"


@pytest.mark.parametrize(
    "sql",
    [
        W + "text CONTAINS '" + "(" * 10_000 + "flood" + ")" * 10_000 + "'",
        W + "text CONTAINS '" + "NOT (" * 10_000 + "flood" + ")" * 10_000 + "'",
        W + "(" * 10_000 + "a = 1" + ")" * 10_000,
        "SELECT " + "f(" * 10_000 + ")" * 10_000 + " FROM stream",
        W + "loc INSIDE " + "RECT(" * 10_000 + ")" * 10_000,
        W + "text CONTAINS '" + " ".join(f"(x{i} OR y{i})" for i in range(3_000)) + "'",
        W + "text CONTAINS '" + "flood " * 170_000 + "'",
        W + "text CONTAINS '" + "東" * 300_000 + "'",
        W + "a = '" + "''" * 500_000,
        W + "a = '" + "x" * 1_000_000 + "' b",
        W + " AND ".join(["a = 1"] * 100_000),
        W + "a" * 1_000_000,
        W + "a = " + "1" * 1_000_000,
    ],
    ids=lambda sql: f"{sql[27:50]}...{len(sql)}",
)
def test_a_monstrous_query_is_refused_soon(sql):
    start = time.monotonic()
    assert len(error_of(sql)) < 1_000
    assert time.monotonic() - start < 10


def test_a_long_query_may_still_be_right():
    words = " ".join(f"w{i}" for i in range(2_000))
    query = parse(f"{W}text CONTAINS '{words}' AND topic = '{'x' * 1_000_000}'", TOKENIZER).query
    assert len(query.text.parts) == 2_000 and len(query.predicates[0].values[0]) == 1_000_000


def test_fifty_brackets_deep_is_fine():
    text = "".join(f"w{i} {'AND' if i % 2 else 'OR'} (" for i in range(50)) + "flood" + ")" * 50
    assert parse(f"{W}text CONTAINS '{text}'", TOKENIZER).query.text is not None


NEAREST = "ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 3"
HOURLY = "FROM stream WHERE time AFTER '1 hour ago'"


def checked(check, sql):
    statement = parse(sql, TOKENIZER)
    check(statement)
    return statement


@pytest.mark.parametrize(
    ("check", "marked", "says"),
    [
        (check_subscription, "SELECT * FROM stream «LIMIT» 5", "LIMIT is for searches"),
        (check_subscription, W + "time AFTER «'72 hours ago'»", "looks ahead, so nothing in it can be so long ago"),
        (check_subscription, W + "time BETWEEN '2026-01-01' AND «'1 hour ago'»", "end it with FOR"),
        (check_search, W + "a = 1 «FOR» 72 HOURS", "FOR is for subscriptions"),
        (check_subscription, W + f"time AFTER «'1 hour ago'» {NEAREST}", "looks ahead"),
        (check_search, f"SELECT * FROM stream {NEAREST} «FOR» 72 HOURS", "FOR is for subscriptions"),
        (check_subscription, "SELECT «TopK»(text) FROM stream SYNC 1 minute", "window, and this one has none"),
        (check_subscription, f"SELECT «TopK»(text) {HOURLY}", "reports on a beat, and this one has none"),
        (check_subscription, "SELECT TopK(text) FROM stream WHERE time AFTER «'2026-01-01'» SYNC 1 min", "fixed time"),
        (check_subscription, "SELECT TopK(text) FROM stream WHERE time AFTER «1000» SYNC 1 min", "fixed time"),
        (check_subscription, "SELECT TopK(text) FROM stream WHERE time AFTER «'0 min ago'» SYNC 1 min", "no length"),
        (check_subscription, f"SELECT TopK(text) {HOURLY} AND «time BETWEEN» 1 AND 2 SYNC 1 min", "FOR ends the"),
        (check_subscription, f"SELECT TopK(text) {HOURLY} AND «time BETWEEN» '1 day ago' AND 2 SYNC 1 min", "slides"),
        (check_search, f"SELECT TopK(text) {HOURLY} SYNC 1 minute «FOR» 72 HOURS", "FOR is for subscriptions"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_why(check, marked, says):
    sql, start, guilty = split(marked)
    with pytest.raises(QueryError) as caught:
        checked(check, sql)
    message, _, carets, *_ = str(caught.value).split("\n")
    assert says in message and carets == " " * (start + 2) + "^" * len(guilty)


def test_the_same_text_serves_both_where_both_make_sense():
    sql = W + "loc INSIDE RECT(1, 2, 3, 4) AND time BETWEEN '2026-01-01' AND '2026-02-01' AND time AFTER '2026-01-02'"
    assert checked(check_subscription, sql) == checked(check_search, sql)
    assert checked(check_subscription, sql + " FOR 2 days").query.life is not None
    assert checked(check_search, sql + " LIMIT 5").query.limit == 5
    assert checked(check_search, f"{sql} {NEAREST}") == checked(check_subscription, f"{sql} {NEAREST}")
    assert checked(check_subscription, f"{sql} {NEAREST} FOR 2 days").query.life is not None
    sql = f"SELECT TopK(text, 3) {HOURLY} AND text CONTAINS 'flood' SYNC 90 seconds"
    assert checked(check_search, sql) == checked(check_subscription, sql)
    assert checked(check_subscription, sql + " FOR 2 days").query.sync == 90_000_000


@pytest.mark.parametrize("where", ["", "WHERE time AFTER '2026-01-01'", "WHERE time BETWEEN 1 AND '1 hour ago'"])
def test_a_search_for_frequent_terms_may_ask_about_any_time(where):
    assert checked(check_search, f"SELECT TopK(text) FROM stream {where}").query.sync is None


def test_a_statement_without_text_is_checked_too():
    with pytest.raises(QueryError, match="looks ahead"):
        check_subscription(Statement(RangeQuery(after=TimeBound(ago=1)), False, ""))
    with pytest.raises(QueryError, match="looks ahead"):
        check_subscription(Statement(NearestQuery(lon=0, lat=0, k=1, until=TimeBound(ago=1)), False, ""))
    hour = TimeBound(ago=1)
    for query, says in (
        (TermsQuery(sync=1), "window, and this one has none"),
        (TermsQuery(after=hour), "beat, and this one has none"),
        (TermsQuery(after=TimeBound(at=1), sync=1), "fixed time"),
        (TermsQuery(after=TimeBound(ago=0), sync=1), "no length"),
        (TermsQuery(after=hour, until=TimeBound(at=1), sync=1), "slides"),
    ):
        with pytest.raises(QueryError, match=says):
            check_subscription(Statement(query, False, ""))
    check_subscription(Statement(TermsQuery(after=hour, sync=1), False, ""))
