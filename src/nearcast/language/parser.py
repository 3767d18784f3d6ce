"""From a query's text to its meaning: which kind of question it asks, and what is particular to each kind."""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from nearcast.common.errors import QueryError
from nearcast.common.geo.shapes import Region
from nearcast.common.queries import Query, Statement
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language.aggregates import aggregate, beat, is_aggregate, limit, lone_topk
from nearcast.language.grammar import FUNCTIONS
from nearcast.language.keywords import Tokenizer
from nearcast.language.measures import number_of_terms, whole
from nearcast.language.messages import nearest, pointed, shown
from nearcast.language.places import point_of
from nearcast.language.relevance import RELEVANCE, is_relevance, relevance
from nearcast.language.syntax import (
    Call,
    Clause,
    Condition,
    Inside,
    Item,
    Name,
    Order,
    Select,
    read_select,
    span_of,
)
from nearcast.language.templates import read_template
from nearcast.language.where import conditions

_COLUMNS = {"id": "id", "ts": "ts", "time": "ts", "lon": "lon", "lat": "lat", "text": "text"}
_DISTANCE = "DISTANCE(loc, POINT(lon, lat))"
_Clauses = Mapping[str, Clause]
_SHORT = 2_000  # characters, of texts that are remembered
_REMEMBERED = 4_096  # texts


def parse(sql: str, tokenizer: Tokenizer, regions: Mapping[str, Region] | None = None) -> Statement:
    """What `sql` means; its words are cut by `tokenizer`, and `regions` are those that have been given a name.

    Raises QueryError, whose message points at the word, for anything that has no meaning or none yet.
    """
    known = {} if regions is None else regions
    found = _lasting(sql, tokenizer) if len(sql) <= _SHORT else None
    if found is not None:
        return found
    quick = read_template(sql)
    if quick is not None:
        with suppress(QueryError):  # it is found again below, with the place where it stands
            return _meaning(sql, quick, tokenizer, known)
    return _meaning(sql, read_select(sql), tokenizer, known)


@lru_cache(maxsize=_REMEMBERED)
def _lasting(sql: str, tokenizer: Tokenizer) -> Statement | None:
    """What `sql` means whatever has a name, for as long as it is asked again; None where it is a mistake, or names a
    region.
    """
    quick = read_template(sql)
    if quick is None or any(isinstance(each, Inside) and isinstance(each.region, Name) for each in quick.where):
        return None
    with suppress(QueryError):
        return _meaning(sql, quick, tokenizer, {})
    return None


def _meaning(sql: str, select: Select, tokenizer: Tokenizer, regions: Mapping[str, Region]) -> Statement:
    topk, groups = lone_topk(select), is_aggregate(sql, select)
    clauses = _clauses(sql, select)
    if topk:
        _check_topk(sql, select, clauses)
    elif not groups:
        _check_posts(sql, clauses)
    scored = not topk and not groups and is_relevance(clauses)
    if "WINDOW" in clauses and not scored:
        message = "WINDOW is for the most relevant (ORDER BY RELEVANCE); anything else is asked over a time"
        raise pointed(sql, clauses["WINDOW"].span, message, "time AFTER '4 hours ago' in the WHERE")
    _check_computed(sql, select, "score" if scored else "distance_km" if "ORDER" in clauses else "")
    where = vars(conditions(sql, select, tokenizer, regions))
    query: Query
    if topk:
        query = TermsQuery(**where, k=number_of_terms(sql, topk), beat=beat(sql, clauses))
    elif groups:
        query = AggregateQuery(**where, **aggregate(sql, select, clauses))
    elif scored:
        timed = any(where[name] for name in ("after", "since", "until"))
        asked = relevance(sql, clauses, tokenizer, timed)
        query = RelevantQuery(**where, **asked, columns=_columns(sql, select.items))
    elif place := _place(sql, clauses):
        query = NearestQuery(
            **where, lon=place[0], lat=place[1], k=_number_of_posts(sql, clauses), columns=_columns(sql, select.items)
        )
    else:
        query = RangeQuery(**where, columns=_columns(sql, select.items), limit=limit(sql, clauses, "posts"))
    return Statement(query, select.explain, sql)


def _clauses(sql: str, select: Select) -> _Clauses:
    """What follows the WHERE, by its word: nothing twice."""
    clauses: dict[str, Clause] = {}
    for clause in select.clauses:
        word = clause.word
        if word in clauses:
            raise pointed(sql, clause.span, f"{word} is given twice", f"one {word}")
        clauses[word] = clause
    return clauses


# -- frequent terms ----------------------------------------------------------------------------------------------------


def _check_topk(sql: str, select: Select, clauses: _Clauses) -> None:
    """A TopK alone gives rows of terms, which have an order and a number of their own."""
    for word, message, expected in (
        ("ORDER", "terms come most frequent first, ties by term, in no other order", "no ORDER BY"),
        ("LIMIT", "how many terms is said in the TopK itself", "TopK(text, 10), or TopK(text), which means the same"),
        ("HAVING", "HAVING is a condition on groups, and a TopK alone has none", "a GROUP BY, or no HAVING"),
    ):
        if word in clauses:
            raise pointed(sql, clauses[word].span, message, expected)
    alias = select.items[0].alias if select.items else None
    if alias:
        raise pointed(sql, alias.span, "TopK gives two columns, term and count", "FROM")


# -- posts -------------------------------------------------------------------------------------------------------------


def _check_posts(sql: str, clauses: _Clauses) -> None:
    """What has a meaning for groups only, and the order of posts."""
    if "HAVING" in clauses:
        message = "HAVING is a condition on groups, and this query has none"
        raise pointed(sql, clauses["HAVING"].span, message, "a GROUP BY, or WHERE for a condition on posts")
    if "SYNC" in clauses and is_relevance(clauses):
        message = "the most relevant are kept at all times, and what enters or leaves is told at once, not on a beat"
        raise pointed(sql, clauses["SYNC"].span, message, "no SYNC")
    if "SYNC" in clauses:
        message = "reporting on a beat (SYNC) of anything but aggregates and TopK is not in this version yet"
        raise pointed(sql, clauses["SYNC"].span, message)
    if "ORDER" in clauses:
        _check_order(sql, clauses["ORDER"])


def _check_computed(sql: str, select: Select, column: str) -> None:
    """What an answer is ordered by is worked out for the posts that meet the WHERE, so the WHERE cannot ask for it."""
    for condition in select.where:
        if isinstance(condition, Condition) and not condition.name.quoted and condition.name.text.lower() == column:
            message = f"{column} is worked out for the answer, and the WHERE is about the post itself"
            expected = f"an attribute's name, `{column}` in backticks if posts have one of this name"
            raise pointed(sql, condition.name.span, message, expected)


def _check_order(sql: str, clause: Clause) -> None:
    """Posts come newest first, nearest first or most relevant first."""
    order: Order = clause.body[0]
    ties = "id"
    if isinstance(order.operand, Call):
        first, expected = "nearest", _DISTANCE
        if _function(sql, order.operand.name) == "RELEVANCE":
            first, expected, ties = "most relevant", RELEVANCE, "time and id"
        elif order.direction and order.descending:
            raise pointed(sql, order.direction, "the nearest come first; there is no farthest", "ASC, or nothing")
    else:
        first, expected = "newest", "time DESC"
        if order.operand.text.lower() not in ("time", "ts") or not order.descending:
            message = "posts come newest first, nearest first or most relevant first, in no other order"
            expected = f"time DESC, {_DISTANCE}, {RELEVANCE} or no ORDER BY"
            raise pointed(sql, order.operand.span, message, expected)
    if len(clause.body) > 1:
        message = f"posts come {first} first, ties by {ties}, in no other order"
        raise pointed(sql, span_of(clause.body[1].operand), message, f"{expected}, and nothing more")


def _function(sql: str, name: Name) -> str:
    """DISTANCE or RELEVANCE, by which posts can be ordered."""
    function = nearest(name.text, ("DISTANCE", "RELEVANCE", *FUNCTIONS.values()))
    if function.lower() != name.text.lower():
        message = f"there is no function {shown(name.text)}"
        raise pointed(sql, name.span, message, f"time DESC, {_DISTANCE} or {RELEVANCE}", function)
    if function not in ("DISTANCE", "RELEVANCE"):
        message = f"{function} is of groups, and this query gives posts"
        raise pointed(sql, name.span, message, f"{function} in the SELECT as well, or time DESC or {_DISTANCE}")
    return function


# -- nearest -----------------------------------------------------------------------------------------------------------


def _place(sql: str, clauses: _Clauses) -> tuple[float, float] | None:
    """The point of ORDER BY DISTANCE(loc, POINT(lon, lat)), if that is the order."""
    operand = clauses["ORDER"].body[0].operand if "ORDER" in clauses else None
    if not isinstance(operand, Call):
        return None
    if len(operand.arguments) != 2:
        message = f"DISTANCE has {len(operand.arguments)} of its values"
        raise pointed(sql, operand.name.span, message, _DISTANCE)
    loc, point = operand.arguments
    if not isinstance(loc, Name) or loc.quoted or loc.text.lower() != "loc":
        meant = nearest(loc.text, ["loc"]) if isinstance(loc, Name) else ""
        raise pointed(sql, span_of(loc), "distances are measured from a post's place", _DISTANCE, meant)
    return point_of(sql, point)


def _number_of_posts(sql: str, clauses: _Clauses) -> int:
    if "LIMIT" not in clauses:
        message = "ORDER BY DISTANCE asks for the k nearest and needs a LIMIT that says how many"
        raise pointed(sql, clauses["ORDER"].span, message, "LIMIT 10 at the end")
    return whole(sql, clauses["LIMIT"].body[0], "the nearest are a whole number of posts")


def _columns(sql: str, items: tuple[Item, ...] | None) -> tuple[str, ...] | None:
    if items is None:
        return None
    columns: dict[str, None] = {}
    for item in items:
        if item.alias:
            raise pointed(sql, item.alias.span, "a column keeps its name here", "',' or FROM")
        assert isinstance(item.operand, Name)
        name = item.operand
        if name.text.lower() == "loc" and not name.quoted:
            raise pointed(sql, name.span, "the place is two columns", "lon, lat")
        column = name.text if name.quoted else _COLUMNS.get(name.text.lower(), name.text)
        if column in columns:
            raise pointed(sql, name.span, f"the column {shown(column)} is given twice", "each column once")
        columns[column] = None
    return tuple(columns)
