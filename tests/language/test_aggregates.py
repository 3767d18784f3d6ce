"""Aggregates: what a SELECT about groups means, and what has no meaning."""

import pytest
from hypothesis import given, settings

from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Rect
from nearcast.common.queries import Predicate, Statement, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.query import AggregateQuery, Having, Measure, Ordering, Output
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import check_attributes, check_search, check_subscription, encode_query, parse
from tests.language.sql_writer import aggregates, write

TOKENIZER = Tokenizer()
R = Rect(1.0, 2.0, 3.0, 4.0)
MINUTE = 60_000_000
COUNT = Measure("count")
BY_TOPIC = (Output("topic", "topic"),)


def query(sql):
    return parse(sql, TOKENIZER, {"R": R}).query


def posts(name="count(id)"):
    return Output(name, COUNT)


# -- meaning -----------------------------------------------------------------------------------------------------------

IPHONE = query('SELECT * FROM stream WHERE text CONTAINS "iPhone"').text
STAR = [  # STAR §3.1, examples 1 to 4
    (
        'SELECT Count(id), Avg(length), date FROM stream WHERE loc INSIDE R AND text CONTAINS "iPhone" GROUP BY date',
        AggregateQuery(
            region=R,
            text=IPHONE,
            outputs=(posts(), Output("avg(length)", Measure("avg", "length")), Output("date", "date")),
            group_by=("date",),
        ),
    ),
    (
        'SELECT Count(id), topic, minute FROM stream WHERE loc INSIDE R AND time AFTER "10 mins ago"'
        " GROUP BY topic, minute ORDER BY Count(id) DESC",
        AggregateQuery(
            region=R,
            after=TimeBound(ago=10 * MINUTE),
            outputs=(posts(), *BY_TOPIC, Output("minute", "minute")),
            group_by=("topic", "minute"),
            order=(Ordering(COUNT, True),),
        ),
    ),
    (
        "SELECT TopK(text), topic FROM stream WHERE loc INSIDE R GROUP BY topic SYNC 1 minute",
        AggregateQuery(
            region=R,
            outputs=(Output("topk(text)", Measure("topk", "text", 10)), *BY_TOPIC),
            group_by=("topic",),
            sync=MINUTE,
        ),
    ),
    (
        'SELECT Count(id), streetName, minute FROM stream WHERE loc INSIDE R AND time AFTER "10 mins ago"'
        " GROUP BY streetName, minute SYNC 1 minute",
        AggregateQuery(
            region=R,
            after=TimeBound(ago=10 * MINUTE),
            outputs=(posts(), Output("streetName", "streetName"), Output("minute", "minute")),
            group_by=("streetName", "minute"),
            sync=MINUTE,
        ),
    ),
]


@pytest.mark.parametrize(("sql", "meaning"), STAR)
def test_stars_examples_mean_what_they_say(sql, meaning):
    assert query(sql) == meaning


@pytest.mark.parametrize(
    ("items", "outputs"),
    [
        ("Count(*)", (posts("count(*)"),)),
        ("COUNT( ID )", (posts(),)),
        ("count(`id`) AS n", (posts("n"),)),
        ("Count(streetName)", (Output("count(streetname)", Measure("count", "streetName")),)),
        (
            "Sum(Price), sum(price) AS low",
            (Output("sum(price)", Measure("sum", "Price")), Output("low", Measure("sum", "price"))),
        ),
        ("Min(time), Max(ts)", (Output("min(time)", Measure("min", "ts")), Output("max(ts)", Measure("max", "ts")))),
        ("Max(`time`)", (Output("max(time)", Measure("max", "time")),)),
        ("Avg(`odd name`) AS `a, b`", (Output("a, b", Measure("avg", "odd name")),)),
        ("TopK(text, 3), Count(id)", (Output("topk(text,3)", Measure("topk", "text", 3)), posts())),
        (
            "TopK(text), TopK(text,  +5)",
            (Output("topk(text)", Measure("topk", "text", 10)), Output("topk(text,+5)", Measure("topk", "text", 5))),
        ),
        ("Count(id), Count(*) AS again", (posts(), posts("again"))),
    ],
)
def test_columns_have_the_name_after_as_or_that_they_are_written_with(items, outputs):
    assert query(f"SELECT {items} FROM stream") == AggregateQuery(outputs=outputs)


N = AggregateQuery(outputs=(posts("n"), *BY_TOPIC), group_by=("topic",))


@pytest.mark.parametrize(
    ("rest", "more"),
    [
        ("", {}),
        ("HAVING Count(id) > 5", {"having": (Having(COUNT, ">", 5),)}),
        (
            "HAVING n != 5 AND Avg(price) < 3.5",
            {"having": (Having(COUNT, "<>", 5), Having(Measure("avg", "price"), "<", 3.5))},
        ),
        (
            "HAVING topic >= 'm' AND topic <> TRUE",
            {"having": (Having("topic", ">=", "m"), Having("topic", "<>", True))},
        ),
        ("HAVING Max(time) > '2026-05-01'", {"having": (Having(Measure("max", "ts"), ">", "2026-05-01"),)}),
        (
            "HAVING Min(sold) > '2026-05-01T12:00Z'",
            {"having": (Having(Measure("min", "sold"), ">", "2026-05-01T12:00Z"),)},
        ),
        ("ORDER BY n", {"order": (Ordering(COUNT),)}),
        ("order by Count(*) desc, topic asc", {"order": (Ordering(COUNT, True), Ordering("topic"))}),
        ("ORDER BY Sum(price) DESC LIMIT 3", {"order": (Ordering(Measure("sum", "price"), True),), "limit": 3}),
        ("SYNC 30 secs LIMIT 0 FOR 1 min", {"sync": MINUTE // 2, "limit": 0, "life": MINUTE}),
    ],
)
def test_groups_are_chosen_ordered_and_limited(rest, more):
    expected = AggregateQuery(**{**vars(N), **more})
    assert query(f"SELECT Count(id) AS n, topic FROM stream GROUP BY topic {rest}") == expected


@pytest.mark.parametrize(
    ("sql", "meaning"),
    [
        ("SELECT topic FROM stream GROUP BY topic", AggregateQuery(outputs=BY_TOPIC, group_by=("topic",))),
        (
            "SELECT topic AS t, `topic` FROM stream GROUP BY topic ORDER BY t",
            AggregateQuery(outputs=(Output("t", "topic"), *BY_TOPIC), group_by=("topic",), order=(Ordering("topic"),)),
        ),
        (
            "SELECT Count(id) AS topic, topic AS t FROM stream GROUP BY topic ORDER BY topic, t",
            AggregateQuery(
                outputs=(posts("topic"), Output("t", "topic")),
                group_by=("topic",),
                order=(Ordering(COUNT), Ordering("topic")),
            ),
        ),
        (
            "SELECT Count(id) FROM stream WHERE weekday = 6 AND hour BETWEEN '2026-05-01' AND '2026-05-02'",
            AggregateQuery(
                predicates=(
                    Predicate("weekday", "=", (6,)),
                    Predicate("hour", "between", ("2026-05-01", "2026-05-02")),
                ),
                outputs=(posts(),),
            ),
        ),
        (
            "SELECT Count(id) FROM stream HAVING Count(id) > 1",
            AggregateQuery(outputs=(posts(),), having=(Having(COUNT, ">", 1),)),
        ),
        ("SELECT TopK(text, 3) FROM stream", TermsQuery(k=3)),
        (
            "SELECT APPROXIMATE TopK(text, 3) FROM stream LIMIT 1",
            AggregateQuery(outputs=(Output("topk(text,3)", Measure("topk", "text", 3)),), limit=1, approximate=True),
        ),
        (
            "SELECT approximate TopK(text) AS words, Count(id) FROM stream",
            AggregateQuery(outputs=(Output("words", Measure("topk", "text", 10)), posts()), approximate=True),
        ),
        ("SELECT `approximate`, distinct FROM stream", RangeQuery(columns=("approximate", "distinct"))),
    ],
)
def test_which_kind_of_question_it_is(sql, meaning):
    assert query(sql) == meaning


@given(aggregates())
@settings(max_examples=200, deadline=None)
def test_every_aggregate_can_be_written_and_read_back(meaning):
    sql = write(meaning)
    assert parse(sql, TOKENIZER).query == meaning, sql


# -- mistakes ----------------------------------------------------------------------------------------------------------

C = "SELECT Count(id), topic FROM stream GROUP BY topic"


@pytest.mark.parametrize(
    ("marked", "says", "hints"),
    [
        ("SELECT «Cuont»(id) FROM stream", "no function Cuont", "Count, Sum, Avg, Min or Max; did you mean Count?"),
        ("SELECT «Median»(price) FROM stream", "no function Median", "expected a column, TopK, Count"),
        ("SELECT «DISTINCT» topic FROM stream", "DISTINCT is not offered", "GROUP BY"),
        ("SELECT Count(«distinct» user) FROM stream", "DISTINCT is not offered", "GROUP BY"),
        ("SELECT «APPROXIMATE» Sum(likes) FROM stream", "for TopK", "or no APPROXIMATE"),
        ("SELECT «APPROXIMATE» * FROM stream", "for TopK", "TopK(text, 10) in the SELECT"),
        ("SELECT «APPROXIMATE» topic FROM stream GROUP BY topic", "for TopK", ""),
        ("SELECT «APROXIMATE» TopK(text) FROM stream", "does not belong here", "did you mean APPROXIMATE?"),
        ("SELECT Count(id) «n» FROM stream", "n does not", "expected AS, FROM or ','"),
        ("SELECT «Count»() FROM stream", "Count has 0 values", "Count(id)"),
        ("SELECT «Sum»(a, b) FROM stream", "Sum has 2 values", "Sum(an attribute)"),
        ("SELECT Sum(«*») FROM stream", "Sum is of an attribute", "an attribute's name"),
        ("SELECT Sum(«5») FROM stream", "Sum is of an attribute", "an attribute's name"),
        ("SELECT Sum(«'price'») FROM stream", "Sum is of an attribute", "an attribute's name"),
        ("SELECT Sum(«Avg»(price)) FROM stream", "Sum is of an attribute", "an attribute's name"),
        ("SELECT Sum(«text») FROM stream", "text is none", "TopK(text), or Avg(length)"),
        ("SELECT Count(«`text`») FROM stream", "text is none", "TopK(text), or Avg(length)"),
        ("SELECT Avg(«id») FROM stream", "id is none", "Count(id)"),
        ("SELECT Max(«loc») FROM stream", "loc is none", "an attribute's name"),
        ("SELECT Min(«lat») FROM stream", "lat is none", "an attribute's name"),
        ("SELECT Avg(«time») FROM stream", "a Min and a Max, and no Avg", "Min(time)"),
        ("SELECT Count(«TS») FROM stream", "a Min and a Max, and no Count", "Count(id)"),
        ("SELECT TopK(«topic»), Count(id) FROM stream", "counts the words of text", "expected text"),
        ("SELECT TopK(text, «0»), Count(id) FROM stream", "whole number of terms", "from 1 up"),
        ("SELECT Count(id), «topic» FROM stream", "neither an aggregate nor in a GROUP BY", "expected GROUP BY topic"),
        ("SELECT TopK(text), «topic» FROM stream", "neither an aggregate nor in a GROUP BY", "expected GROUP BY topic"),
        ("SELECT Count(id), «topik» FROM stream GROUP BY topic", "nor in the GROUP BY", "did you mean topic?"),
        ("SELECT Count(id), «Topic» FROM stream GROUP BY topic", "nor in the GROUP BY", "did you mean topic?"),
        ("SELECT Count(id), «id» FROM stream", "groups are not by id", "Count(id)"),
        ("SELECT Count(id) FROM stream GROUP BY «topic»", "in the GROUP BY and not in the SELECT", "topic among"),
        ("SELECT Count(id), topic FROM stream GROUP BY topic, «minute»", "not in the SELECT", "minute among"),
        ("SELECT Count(id), topic FROM stream GROUP BY topic, «topic»", "given twice", "each attribute once"),
        ("SELECT Count(id), text FROM stream GROUP BY «text»", "groups are not by text", "TopK(text)"),
        ("SELECT Count(id), time FROM stream GROUP BY «time»", "the time itself", "minute, hour, date or weekday"),
        ("SELECT Count(id), loc FROM stream GROUP BY «loc»", "the place itself", "cell"),
        ("SELECT Count(id), lon FROM stream GROUP BY «lon»", "the place itself", "cell"),
        ("SELECT Count(id) FROM stream GROUP BY «Hour»(time)", "by attributes, as they are", "an attribute's name"),
        ("SELECT * FROM stream «GROUP» BY topic", "SELECT * asks for posts", "in place of *"),
        ("SELECT Count(id), «Count»(id) FROM stream", "column count(id) is given twice", "another name with AS"),
        ("SELECT Count(id) AS n, Sum(a) AS «n» FROM stream", "column n is given twice", "another name with AS"),
        ("SELECT Count(a), «count»(A) FROM stream", "column count(a) is given twice", "another name with AS"),
        ("SELECT * FROM stream «HAVING» Count(id) > 5", "this query has none", "a GROUP BY, or WHERE"),
        ("SELECT topic FROM stream «HAVING» Count(id) > 5", "this query has none", "a GROUP BY, or WHERE"),
        ("SELECT TopK(text) FROM stream «HAVING» Count(id) > 5", "a TopK alone has none", "a GROUP BY, or no HAVING"),
        ("SELECT * FROM stream WHERE «Count»(id) > 5", "one on groups, not on posts", "HAVING Count(…)"),
        (
            f"{C} HAVING «price» > 5",
            "neither a column of the answer nor in the GROUP BY",
            "an aggregate, its name (AS)",
        ),
        (f"{C} HAVING «TopK»(text) = 'a'", "a list of terms", "such as Count(id)"),
        (f"{C} HAVING Count(id) > «'many'»", "count(id) cannot be compared with this", "expected a number"),
        (f"{C} HAVING Count(id) > «TRUE»", "cannot be compared with this", "expected a number"),
        (f"{C} HAVING Sum(price) = «'2026-05-01'»", "sum(price) cannot", "expected a number"),
        (f"{C} HAVING Max(price) > «'a'»", "cannot be compared with this", "a number, or a time such as"),
        (f"{C} HAVING Max(time) > «5»", "max(time) cannot", "a time such as '2026-05-01T12:00:00Z'"),
        (f"{C} HAVING Count(id) > «NULL»", "nothing is equal to NULL", ""),
        (f"{C} HAVING Count(id) «BETWEEN» 1 AND 2", "BETWEEN does not", "=, <>, <"),
        (f"{C} HAVING Count(id) > 5 «OR» topic = 'a'", "joined by AND", "expected AND"),
        (f"{C} HAVING «Cuont»(id) > 5", "no function Cuont", "did you mean Count?"),
        (f"{C} ORDER BY «topik»", "neither a column of the answer nor in the GROUP BY", "did you mean topic?"),
        (f"{C} ORDER BY «time» DESC", "neither a column of the answer", "an aggregate, its name (AS)"),
        (f"{C} ORDER BY «TopK»(text)", "groups cannot be ordered", "such as Count(id)"),
        ("SELECT TopK(text) AS t, topic FROM stream GROUP BY topic ORDER BY «t»", "cannot be ordered", ""),
        (f"{C} ORDER BY «DISTANCE»(loc, POINT(1, 2)) LIMIT 1", "groups have no distance", "an aggregate"),
        (f"{C} ORDER BY «Sum»()", "Sum has 0 values", ""),
        ("SELECT * FROM stream ORDER BY «Count»(id) DESC", "is of groups, and this query gives posts", "in the SELECT"),
        (f"{C} LIMIT «-1»", "whole number of rows", "from 0 up"),
        (f"{C} SYNC «0» minutes", "no time at all", "greater than 0"),
        (f"{C} SYNC 1 «minuet»", "no unit of time", "did you mean minute?"),
        (f"{C} «GROUP» BY minute", "GROUP is given twice", "one GROUP"),
        ("SELECT Count(id) FROM stream WHERE loc INSIDE «r»", "no region r", "nearcast region add NAME"),
    ],
)
def test_an_error_points_at_the_word(marked, says, hints):
    before, rest = marked.split("«")
    guilty, after = rest.split("»")
    with pytest.raises(QueryError) as caught:
        query(before + guilty + after)
    message, line, carets, *rest = str(caught.value).split("\n")
    assert says in message and message.endswith(f"(line 1, column {len(before) + 1})")
    assert (line, carets) == (f"  {before}{guilty}{after}", " " * (len(before) + 2) + "^" * len(guilty))
    assert hints in "".join(rest)


# -- checks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "marked", "says"),
    [
        (
            check_subscription,
            "SELECT «Count»(id) FROM stream",
            "to aggregates reports on a beat, and this one has none",
        ),
        (check_subscription, "SELECT «topic» FROM stream GROUP BY topic", "and this one has none"),
        (check_subscription, "SELECT Count(id) FROM stream WHERE time AFTER «'2026-01-01'» SYNC 1 min", "fixed time"),
        (check_subscription, "SELECT Count(id) FROM stream WHERE «time BETWEEN» 1 AND 2 SYNC 1 min", "slides"),
        (check_subscription, "SELECT Count(id) FROM stream WHERE time AFTER «'0 min ago'» SYNC 1 min", "no length"),
        (check_subscription, "SELECT «APPROXIMATE» TopK(text) FROM stream SYNC 1 min", "are exact"),
        (check_search, "SELECT Count(id) FROM stream «FOR» 72 HOURS", "FOR is for subscriptions"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_why(check, marked, says):
    before, rest = marked.split("«")
    guilty, after = rest.split("»")
    with pytest.raises(QueryError) as caught:
        check(parse(before + guilty + after, TOKENIZER))
    message, _, carets, *_ = str(caught.value).split("\n")
    assert says in message and carets == " " * (len(before) + 2) + "^" * len(guilty)


@pytest.mark.parametrize(
    "sql",
    [
        f"{C} SYNC 1 minute",
        "SELECT Count(id), topic FROM stream WHERE time AFTER '10 mins ago' GROUP BY topic"
        " HAVING Count(id) > 5 ORDER BY Count(id) DESC LIMIT 3 SYNC 1 minute",
    ],
)
def test_an_aggregate_on_a_beat_is_a_search_and_a_subscription(sql):
    statement = parse(sql, TOKENIZER)
    check_search(statement)
    check_subscription(statement)
    check_subscription(parse(sql + " FOR 2 days", TOKENIZER))
    assert encode_query(statement.query)["sync"] == MINUTE


@pytest.mark.parametrize("where", ["", "WHERE time AFTER '2026-01-01'", "WHERE time BETWEEN 1 AND '1 hour ago'"])
def test_a_search_may_ask_about_any_time(where):
    check_search(parse(f"SELECT Count(id) FROM stream {where}", TOKENIZER))


KNOWN = ("price", "topic", "streetName", "minute", "length")


@pytest.mark.parametrize(
    ("marked", "meant"),
    [
        ("SELECT * FROM stream WHERE «prize» > 5", "price"),
        ("SELECT * FROM stream WHERE «`prize`» IS NULL", "price"),
        ("SELECT Count(id), «tpoic» FROM stream GROUP BY tpoic", "topic"),
        ("SELECT Sum(«prise») AS prise, topic FROM stream GROUP BY topic", "price"),
        ("SELECT Count(id) FROM stream HAVING Avg(«lenght») > 5", "length"),
        ("SELECT Count(id), topic FROM stream GROUP BY topic ORDER BY Max(«streetname»)", "streetName"),
        ("SELECT min(«min») FROM stream SYNC 5 min", "minute"),
        ("SELECT prize, Count(id) FROM stream WHERE price = 1 GROUP BY prize".replace("prize", "«prize»", 1), "price"),
        ("SELECT TopK(text, 5) FROM stream WHERE loc INSIDE R AND «Topics» = 'a'", "topic"),
    ],
)
def test_an_unknown_attribute_is_pointed_at(marked, meant):
    before, rest = marked.split("«")
    guilty, after = rest.split("»")
    statement = parse(before + guilty + after, TOKENIZER, {"R": R})
    with pytest.raises(QueryError) as caught:
        check_attributes(statement, KNOWN)
    message, _, carets, hints = str(caught.value).split("\n")
    assert f"no post has an attribute {guilty.strip('`')}" in message
    assert carets == " " * (len(before) + 2) + "^" * len(guilty)
    assert hints == f"expected an attribute's name ({', '.join(sorted(KNOWN))}); did you mean {meant}?"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM stream",
        "SELECT anything FROM stream WHERE price < 5 AND loc INSIDE R AND time AFTER '1 hour ago'",
        "SELECT Count(id) AS n, Max(time), TopK(text), topic FROM stream GROUP BY topic HAVING n > 5 ORDER BY n",
    ],
)
def test_what_is_no_attribute_need_not_be_known(sql):
    check_attributes(parse(sql, TOKENIZER, {"R": R}), KNOWN)


def test_of_many_attributes_some_are_named():
    statement = parse("SELECT * FROM stream WHERE x = 1", TOKENIZER)
    with pytest.raises(QueryError, match=r"\(a0, a1, a2, a3, a4, a5, a6, a7 and 2 more\)"):
        check_attributes(statement, [f"a{i}" for i in range(10)])
    with pytest.raises(QueryError, match="an attribute that posts have"):
        check_attributes(statement, ())


def test_a_statement_without_text_is_checked_too():
    counting = AggregateQuery(outputs=(posts(),), group_by=("x",), sync=1)
    check_subscription(Statement(counting, False, ""))
    with pytest.raises(QueryError, match="no post has an attribute x"):
        check_attributes(Statement(counting, False, ""), KNOWN)
    with pytest.raises(QueryError, match="and this one has none"):
        check_subscription(Statement(AggregateQuery(outputs=(posts(),)), False, ""))
