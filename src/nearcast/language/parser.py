"""From a query's text to its meaning: which kind of question it asks, and what is particular to each kind."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from nearcast.language.conditions import conditions
from nearcast.language.keywords import Tokenizer
from nearcast.language.messages import either, nearest, pointed, shown
from nearcast.language.places import point_of
from nearcast.language.syntax import Argument, Call, Clause, Item, Name, Number, Order, Select, read_select, span_of
from nearcast.language.templates import read_template
from nearcast.language.times import duration
from nearcast.model.errors import QueryError
from nearcast.model.queries import NearestQuery, Query, RangeQuery, Statement, TermsQuery
from nearcast.model.regions import Region

_COLUMNS = {"id": "id", "ts": "ts", "time": "ts", "lon": "lon", "lat": "lat", "text": "text"}
_AGGREGATES = ("Count", "Sum", "Avg", "Min", "Max")
_DISTANCE = "DISTANCE(loc, POINT(lon, lat))"
_TOPK = "TopK(text, 10), or TopK(text), which means the same"
_LATER = {
    "GROUP": "grouping (GROUP BY)",
    "HAVING": "grouping (HAVING)",
    "SYNC": "reporting on a beat (SYNC) of anything but TopK(text, k)",
    "WINDOW": "a sliding window (WINDOW)",
}
_Clauses = Mapping[str, Clause]


def parse(sql: str, tokenizer: Tokenizer, regions: Mapping[str, Region] | None = None) -> Statement:
    """What `sql` means; its words are cut by `tokenizer`, and `regions` are those that have been given a name.

    Raises QueryError, whose message points at the word, for anything that has no meaning or none yet.
    """
    known = {} if regions is None else regions
    quick = read_template(sql)
    if quick is not None:
        with suppress(QueryError):  # it is found again below, with the place where it stands
            return _meaning(sql, quick, tokenizer, known)
    return _meaning(sql, read_select(sql), tokenizer, known)


def _meaning(sql: str, select: Select, tokenizer: Tokenizer, regions: Mapping[str, Region]) -> Statement:
    topk = _topk(sql, select.items or ())
    clauses = _clauses(sql, select, topk)
    where = vars(conditions(sql, select, tokenizer, regions))
    query: Query
    if topk:
        query = TermsQuery(**where, k=_number_of_terms(sql, topk), beat=_beat(sql, clauses))
    elif place := _place(sql, clauses):
        query = NearestQuery(
            **where, lon=place[0], lat=place[1], k=_number_of_posts(sql, clauses), columns=_columns(sql, select.items)
        )
    else:
        query = RangeQuery(**where, columns=_columns(sql, select.items), limit=_limit(sql, clauses))
    return Statement(query, select.explain, sql)


# -- which kind --------------------------------------------------------------------------------------------------------


def _topk(sql: str, items: Sequence[Item]) -> Call | None:
    """The TopK of a SELECT, which then is all of it; None where there are only columns."""
    calls = [item.operand for item in items if isinstance(item.operand, Call)]
    for call in calls:
        name = call.name
        function = nearest(name.text, ("TopK", *_AGGREGATES))
        if function.lower() != name.text.lower():
            expected = f"a column, TopK, {either(_AGGREGATES)}"
            raise pointed(sql, name.span, f"there is no function {shown(name.text)}", expected, function)
        if function != "TopK":
            message = f"an aggregate ({function}) is not in this version yet"
            raise pointed(sql, name.span, message, "*, columns or TopK(text, k)")
    if not calls:
        return None
    for item in items:
        if item.operand is not calls[0]:
            message = f"TopK beside {'a column' if isinstance(item.operand, Name) else 'another'}"
            raise pointed(sql, span_of(item.operand), f"{message} is not in this version yet", "TopK(text, k) alone")
        if item.alias:
            raise pointed(sql, item.alias.span, "TopK gives two columns, term and count", "FROM")
    return calls[0]


def _clauses(sql: str, select: Select, topk: Call | None) -> _Clauses:
    """What follows the WHERE, by its word: nothing twice, and nothing that has no meaning (yet) in this kind."""
    clauses: dict[str, Clause] = {}
    for clause in select.clauses:
        word = clause.word
        if word in clauses:
            raise pointed(sql, clause.span, f"{word} is given twice", f"one {word}")
        clauses[word] = clause
        if topk and word == "ORDER":
            message = "terms come most frequent first, ties by term, in no other order"
            raise pointed(sql, clause.span, message, "no ORDER BY")
        if topk and word == "LIMIT":
            raise pointed(sql, clause.span, "how many terms is said in the TopK itself", _TOPK)
        if word == "ORDER":
            _check_order(sql, clause)
        elif word in _LATER and not (topk and word == "SYNC"):
            raise pointed(sql, clause.span, f"{_LATER[word]} is not in this version yet")
    return clauses


def _check_order(sql: str, clause: Clause) -> None:
    """Posts come newest first or nearest first."""
    order: Order = clause.body[0]
    if isinstance(order.operand, Call):
        first, expected = "nearest", _DISTANCE
        _check_distance(sql, order.operand.name)
        if order.direction and order.descending:
            raise pointed(sql, order.direction, "the nearest come first; there is no farthest", "ASC, or nothing")
    else:
        first, expected = "newest", "time DESC"
        if order.operand.text.lower() not in ("time", "ts") or not order.descending:
            message = "posts come newest first, or nearest first, in no other order"
            raise pointed(sql, order.operand.span, message, f"time DESC, {_DISTANCE} or no ORDER BY")
    if len(clause.body) > 1:
        message = f"posts come {first} first, ties by id, in no other order"
        raise pointed(sql, span_of(clause.body[1].operand), message, f"{expected}, and nothing more")


def _check_distance(sql: str, name: Name) -> None:
    function = nearest(name.text, ("DISTANCE", "RELEVANCE", *_AGGREGATES))
    if function.lower() != name.text.lower():
        message = f"there is no function {shown(name.text)}"
        raise pointed(sql, name.span, message, f"time DESC or {_DISTANCE}", function)
    if function != "DISTANCE":
        kind = "most relevant (ORDER BY RELEVANCE)" if function == "RELEVANCE" else f"an aggregate ({function})"
        raise pointed(sql, name.span, f"{kind} is not in this version yet")


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
    number: Number = clauses["LIMIT"].body[0]
    return _whole(sql, number, "the nearest are a whole number of posts")


# -- frequent terms ----------------------------------------------------------------------------------------------------


def _number_of_terms(sql: str, topk: Call) -> int:
    """The k of TopK(text, k), 10 where it is not given."""
    if len(topk.arguments) not in (1, 2):
        raise pointed(sql, topk.name.span, f"TopK has {len(topk.arguments)} values, not one or two", _TOPK)
    text, *number = topk.arguments
    if not isinstance(text, Name) or (text.text if text.quoted else text.text.lower()) != "text":
        meant = nearest(text.text, ["text"]) if isinstance(text, Name) else ""
        raise pointed(sql, span_of(text), "TopK counts the words of text", "text", meant)
    return _whole(sql, number[0], "TopK takes a whole number of terms") if number else 10


def _beat(sql: str, clauses: _Clauses) -> int | None:
    return duration(sql, clauses["SYNC"].body[0]) if "SYNC" in clauses else None


def _whole(sql: str, node: Argument, message: str) -> int:
    if not isinstance(node, Number) or not re.fullmatch(r"\+?0*[1-9][0-9]{0,17}", node.text):
        raise pointed(sql, span_of(node), message, "a whole number from 1 up")
    return int(node.text)


# -- posts -------------------------------------------------------------------------------------------------------------


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


def _limit(sql: str, clauses: _Clauses) -> int | None:
    if "LIMIT" not in clauses:
        return None
    number: Number = clauses["LIMIT"].body[0]
    if not re.fullmatch(r"\+?[0-9]{1,18}", number.text):
        raise pointed(sql, number.span, "LIMIT takes a whole number of posts", "a whole number from 0 up")
    return int(number.text)
