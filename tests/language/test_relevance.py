"""Tables of what ORDER BY RELEVANCE means, as a search and as a subscription, and of what makes no sense.

In each text of a mistake the guilty characters are between « and », which are taken out before parsing.
"""

from math import asin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.common.errors import QueryError
from nearcast.common.expressions import Phrase
from nearcast.common.geo.distance import EARTH_RADIUS_KM
from nearcast.common.geo.shapes import Rect
from nearcast.common.op_schema import BEGINNING, NEVER, RELEVANT
from nearcast.common.queries import Predicate, Statement, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.relevance.query import HALF_WORLD_KM, RelevantQuery
from nearcast.language import check_search, check_subscription, encode_query, parse

TOKENIZER = Tokenizer()
HOUR = 3600 * 1_000_000
N = "SELECT * FROM stream"
BY = "ORDER BY RELEVANCE(POINT(151.2, -33.87), 'ramen sushi', 0.6) DESC"
STANDING = f"{N} {BY} LIMIT 20 WINDOW 4 HOURS"


def terms(*words: str) -> tuple[int, ...]:
    return tuple(sorted(TOKENIZER.term(word) for word in words))


def query(sql: str) -> RelevantQuery:
    found = parse(sql, TOKENIZER).query
    assert isinstance(found, RelevantQuery)
    return found


BASE = {"lon": 151.2, "lat": -33.87, "words": terms("ramen", "sushi"), "alpha": 0.6, "k": 20}


@pytest.mark.parametrize(
    ("sql", "meaning"),
    [
        (f"{N} {BY} LIMIT 20", RelevantQuery(**BASE)),
        (f"{N} {BY} LIMIT 20 WINDOW 1000000 POSTS", RelevantQuery(**BASE, window_posts=1_000_000)),
        (f"{N} {BY} WINDOW 1 post LIMIT 20", RelevantQuery(**BASE, window_posts=1)),
        (f"{N} {BY} LIMIT 20 WINDOW 4 HOURS", RelevantQuery(**BASE, window=4 * HOUR)),
        (f"{N} {BY} LIMIT 20 WINDOW 0.5 hours FOR 2 HOURS", RelevantQuery(**BASE, window=HOUR // 2, life=2 * HOUR)),
        (
            f"SELECT id, time FROM stream WHERE loc INSIDE RECT(1, 2, 3, 4) AND text CONTAINS 'ramen' AND price < 5 "
            f"AND time AFTER '1 hour ago' {BY} LIMIT 20",
            RelevantQuery(
                **BASE,
                region=Rect(1.0, 2.0, 3.0, 4.0),
                text=Phrase(terms("ramen"), ("ramen",)),
                predicates=(Predicate("price", "<", (5,)),),
                after=TimeBound(ago=HOUR),
                columns=("id", "ts"),
            ),
        ),
        (
            f'{N} order by relevance(point(-180, 90), "Ramen", 0, 5 km) desc limit 1',
            RelevantQuery(lon=-180.0, lat=90.0, words=terms("ramen"), alpha=0.0, k=1, reach_km=5.0),
        ),
        (
            f"{N} ORDER BY RELEVANCE(POINT(0, 0), 'x', 1e0, 500 m) DESC LIMIT 1",
            RelevantQuery(lon=0.0, lat=0.0, words=terms("x"), alpha=1.0, k=1, reach_km=0.5),
        ),
    ],
)
def test_what_it_means(sql, meaning):
    assert query(sql) == meaning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ramen", ("ramen",)),
        ("ramen ramen Ramen!", ("ramen",)),
        ("sushi, ramen", ("ramen", "sushi")),
        ('"flash flood"', ("flash", "flood")),
        ("wi-fi", ("wi", "fi")),
        ("flood #flood", ("flood", "#flood")),
        ("#flood", ("flood", "#flood")),
        ("sand and(or)not", ("sand", "and", "or", "not")),
        ("東京", ("東", "京")),
        ("it''s", ("it", "s")),
    ],
)
def test_words_are_cut_as_the_text_of_a_post(text, words):
    assert query(f"{N} ORDER BY RELEVANCE(POINT(1, 2), '{text}', 0.5) DESC LIMIT 1").words == terms(*words)


def test_without_a_reach_it_is_half_the_world():
    assert query(f"{N} {BY} LIMIT 1").reach_km == HALF_WORLD_KM == 2.0 * EARTH_RADIUS_KM * asin(1.0)
    assert round(HALF_WORLD_KM) == 20_015


CALL = "ORDER BY RELEVANCE(POINT(1, 2), 'ramen', 0.5{}) DESC LIMIT 5"
MISTAKES = [
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', 0.5) «ASC» LIMIT 5", "no least relevant", "expected DESC"),
    (f"{N} ORDER BY «RELEVANCE»(POINT(1, 2), 'x', 0.5) LIMIT 5", "no least relevant", "expected DESC"),
    (f"{N} ORDER BY «RELEVENCE»(POINT(1, 2), 'x', 0.5) DESC LIMIT 5", "no function RELEVENCE", "mean RELEVANCE?"),
    (f"{N} «ORDER» BY RELEVANCE(POINT(1, 2), 'x', 0.5) DESC", "needs a LIMIT", "expected LIMIT 20"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', 0.5) DESC LIMIT «0»", "whole number of posts", "from 1 up"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', 0.5) DESC LIMIT «2.5»", "whole number of posts", "from 1 up"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', 0.5) DESC, «id» LIMIT 5", "ties by time and id", "nothing more"),
    (f"{N} ORDER BY «RELEVANCE»(POINT(1, 2), 'x') DESC LIMIT 5", "has 2 of its values", "RELEVANCE(POINT(lon, lat)"),
    (f"{N} ORDER BY «RELEVANCE»() DESC LIMIT 5", "has 0 of its values", "RELEVANCE(POINT(lon, lat)"),
    (f"{N} ORDER BY «RELEVANCE»(POINT(1, 2), 'x', 0, 1 km, 2) DESC LIMIT 5", "has 5 of its values", "10 km"),
    (f"{N} ORDER BY RELEVANCE(«loc», 'x', 0.5) DESC LIMIT 5", "this is no point", "POINT(lon, lat)"),
    (f"{N} ORDER BY RELEVANCE(«PIONT»(1, 2), 'x', 0.5) DESC LIMIT 5", "this is no point", "mean POINT?"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, «91»), 'x', 0.5) DESC LIMIT 5", "no such latitude", "-90 to 90"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), «x», 0.5) DESC LIMIT 5", "stand in quotes", "'ramen sushi'"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), «0.5», 'x') DESC LIMIT 5", "stand in quotes", "'ramen sushi'"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), «''», 0.5) DESC LIMIT 5", "no word", "a word"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), «'!!! https://x.org'», 0.5) DESC LIMIT 5", "no word", "a word"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'it''s «OR» x', 0.5) DESC LIMIT 5", "for OR use CONTAINS", "a word"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), '«NOT» x', 0.5) DESC LIMIT 5", "for NOT use CONTAINS", "a word"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', «1.01») DESC LIMIT 5", "part of the score", "from 0"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', «-0.1») DESC LIMIT 5", "part of the score", "to 1"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', «5 km») DESC LIMIT 5", "plain number", "from 0"),
    (f"{N} ORDER BY RELEVANCE(POINT(1, 2), 'x', 0.5, 5«)» DESC LIMIT 5", "the reach has no unit", "km or m"),
    (f"{N} {CALL.format(', 5 «miles»')}", "a reach is in km or m, not in miles", "km or m"),
    (f"{N} {CALL.format(', «0 km»')}", "it cannot be 0", "greater than 0"),
    (f"{N} {CALL.format(', «1e-323 m»')}", "it cannot be 0", "greater than 0"),
    (f"{N} {CALL.format(', «-5» km')}", "no such reach", "from 0 up"),
    (f"{N} {CALL.format(', «1e999» km')}", "no such reach", "from 0 up"),
    (f"{N} {CALL.format(', «*»')}", "this is no reach", "km or m"),
    (f"{N} {BY} LIMIT 5 WINDOW «0» POSTS", "whole number of posts", "from 1 up"),
    (f"{N} {BY} LIMIT 5 WINDOW «1.5» POSTS", "whole number of posts", "from 1 up"),
    (f"{N} {BY} LIMIT 5 WINDOW «0» HOURS", "no time at all", "greater than 0"),
    (f"{N} {BY} LIMIT 5 WINDOW 4 «huors»", "huors is no unit of a window", "did you mean hours?"),
    (f"{N} {BY} LIMIT 5 WINDOW 400 «postst»", "no unit of a window", "did you mean posts?"),
    (f"{N} {BY} LIMIT 5 WINDOW 400«»", "ends too early", "a unit"),
    (f"{N} {BY} LIMIT 5 «WINDW» 4 HOURS", "WINDW does not belong here", "did you mean WINDOW?"),
    (f"{N} {BY} LIMIT 5 WINDOW 4 HOURS «WINDOW» 5 POSTS", "WINDOW is given twice", "one WINDOW"),
    (f"{N} {BY} LIMIT 5 WINDOW 4 HOURS «SYNC» 1 minute", "kept at all times", "no SYNC"),
    (f"{N} {BY} LIMIT 5 «HAVING» a > 1", "condition on groups", "GROUP BY"),
    (
        f"{N} WHERE time AFTER '1 hour ago' {BY} LIMIT 5 «WINDOW» 5 POSTS",
        "so does the time in the WHERE",
        "either WINDOW or time",
    ),
    ("SELECT TopK(text) FROM stream «WINDOW» 4 HOURS", "WINDOW is for the most relevant", "time AFTER '4 hours ago'"),
    ("SELECT Count(id) FROM stream «WINDOW» 4 HOURS", "WINDOW is for the most relevant", "time AFTER '4 hours ago'"),
    (f"{N} «WINDOW» 1000000 POSTS", "WINDOW is for the most relevant", "time AFTER '4 hours ago'"),
    (f"{N} ORDER BY DISTANCE(loc, POINT(1, 2)) LIMIT 5 «WINDOW» 5 POSTS", "WINDOW is for the most", "time AFTER"),
    ("SELECT Count(id) FROM stream ORDER BY «RELEVANCE»(POINT(1, 2), 'x', 1) DESC", "groups have no relevance", ""),
    (
        f"{N} ORDER BY «price» DESC",
        "most relevant first, in no other order",
        "RELEVANCE(POINT(lon, lat), 'words', 0.5)",
    ),
]


def pointed_at(marked: str, outcome) -> str:
    """The message about `marked`, which must point at the characters between « and »."""
    sql = marked.replace("«", "").replace("»", "")
    with pytest.raises(QueryError) as caught:
        outcome(sql)
    message, _, carets, *_ = str(caught.value).split("\n")
    guilty = marked[marked.index("«") + 1 : marked.index("»")]
    assert f"(line 1, column {marked.index('«') + 1})" in message
    assert carets.count("^") == max(1, len(guilty))
    return str(caught.value)


@pytest.mark.parametrize(("marked", "message", "hint"), MISTAKES)
def test_a_mistake_is_pointed_at(marked, message, hint):
    told = pointed_at(marked, lambda sql: parse(sql, TOKENIZER))
    assert message in told and hint in told.split("\n")[-1]


@pytest.mark.parametrize(
    ("check", "marked", "message", "hint"),
    [
        (check_subscription, f"{N} {BY} «LIMIT» 5", "this one has none", "WINDOW 1000000 POSTS or WINDOW 4 HOURS"),
        (
            check_subscription,
            f"{N} WHERE «time AFTER» '1 hour ago' {BY} LIMIT 5",
            "window that slides",
            "WINDOW 4 HOURS",
        ),
        (
            check_subscription,
            f"{N} WHERE «time AFTER» '2026-01-01' {BY} LIMIT 5",
            "window that slides",
            "WINDOW 4 HOURS",
        ),
        (check_subscription, f"{N} WHERE «time BETWEEN» 1 AND 2 {BY} LIMIT 5", "window that slides", "WINDOW 4 HOURS"),
        (check_search, f"{STANDING} «FOR» 1 HOUR", "FOR is for subscriptions", "nothing"),
    ],
)
def test_what_makes_no_sense_says_why(check, marked, message, hint):
    told = pointed_at(marked, lambda sql: check(parse(sql, TOKENIZER)))
    assert message in told and hint in told.split("\n")[-1]


@pytest.mark.parametrize("end", ["WINDOW 4 HOURS", "WINDOW 1 POSTS", "WINDOW 4 HOURS FOR 72 HOURS"])
def test_what_may_stand(end):
    check_subscription(parse(f"{N} WHERE price < 5 {BY} LIMIT 5 {end}", TOKENIZER))


@pytest.mark.parametrize("where", ["", "WHERE time AFTER '2 hours ago'", "WHERE time BETWEEN 1 AND 2"])
def test_what_may_be_asked_once(where):
    check_search(parse(f"{N} {where} {BY} LIMIT 5", TOKENIZER))
    check_search(parse(STANDING, TOKENIZER))


def test_a_statement_without_a_text_is_told_the_same():
    with pytest.raises(QueryError, match="this one has none"):
        check_subscription(Statement(RelevantQuery(**BASE), False, "made by hand"))


def test_its_place_words_and_profile_are_encoded():
    found = encode_query(query(f"{N} {BY} LIMIT 20 WINDOW 7 POSTS"))
    assert (found["asks"], found["k"], found["at_lon"], found["at_lat"]) == (RELEVANT, 20, 151.2, -33.87)
    assert (found["words"], found["scoring"]) == (list(BASE["words"]), [0.6, HALF_WORLD_KM, 7.0, 0.0])
    assert (found["since"], found["until"], found["code"]) == (BEGINNING, NEVER, [])


def test_a_window_of_time_bounds_the_posts_of_a_search_and_slides_with_a_subscription():
    asked = query(STANDING)
    assert (encode_query(asked)["since"], encode_query(asked)["scoring"][2:]) == (BEGINNING, [0.0, 4.0 * HOUR])
    assert (encode_query(asked, 10 * HOUR)["since"], encode_query(asked, 10 * HOUR)["until"]) == (6 * HOUR + 1, NEVER)
    assert encode_query(asked, BEGINNING + 5)["since"] == BEGINNING + 1


@given(
    st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 1), st.floats(1e-9, 1e9), st.integers(1, 10**17),
    st.none() | st.integers(1, 10**17), st.lists(st.sampled_from(["a", "b2", "ñandú", "#tag", "夜"]), min_size=1),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_what_is_read(lon, lat, alpha, reach, k, window, words):
    call = f"RELEVANCE(POINT({lon!r}, {lat!r}), '{' '.join(words)}', {alpha!r}, {reach!r} km)"
    ending = "" if window is None else f" WINDOW {window} POSTS"
    distinct = {term for word in words for _, term in TOKENIZER.tokens(word)}
    assert query(f"{N} ORDER BY {call} DESC LIMIT {k}{ending}") == RelevantQuery(
        lon=lon, lat=lat, words=tuple(sorted(distinct)), alpha=alpha, reach_km=reach, k=k, window_posts=window
    )
