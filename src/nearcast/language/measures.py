"""Aggregates as a SELECT spells them: Count(id), Avg(length), TopK(text, 10) (STAR §3.1)."""

import re

from nearcast.kinds.aggregates.query import Measure
from nearcast.language.grammar import FUNCTIONS
from nearcast.language.messages import either, nearest, pointed, shown
from nearcast.language.syntax import Argument, Call, Name, Number, Star, span_of

_TOPK = "TopK(text, 10), or TopK(text), which means the same"
_OF_A_POST = {  # what is no attribute, and what can be asked instead: by groups, and of an aggregate
    "id": ("Count(id), or an attribute's name", "Count(id) to count posts"),
    "text": ("TopK(text), or an attribute's name", "TopK(text), or Avg(length)"),
    "ts": ("minute, hour, date or weekday, or Min(time) and Max(time)", "Min(time), Max(time) or Count(id)"),
    **dict.fromkeys(("loc", "lon", "lat"), ("cell, or an attribute's name", "an attribute's name")),
}


def measure_of(sql: str, call: Call) -> Measure:
    """What an aggregate means; QueryError, pointing at the word, where it means nothing."""
    function = function_of(sql, call.name)
    name = FUNCTIONS[function]
    if function == "topk":
        return Measure("topk", "text", number_of_terms(sql, call))
    if len(call.arguments) != 1:
        expected = f"{name}({'id' if function == 'count' else 'an attribute'})"
        raise pointed(sql, call.name.span, f"{name} has {len(call.arguments)} values, not one", expected)
    (of,) = call.arguments
    if function == "count" and (isinstance(of, Star) or (isinstance(of, Name) and _field(of) == "id")):
        return Measure("count")
    if not isinstance(of, Name):
        raise pointed(sql, span_of(of), f"{name} is of an attribute", "an attribute's name")
    field = _field(of)
    if field == "ts" and function in ("min", "max"):
        return Measure(function, "ts")
    if field in _OF_A_POST:
        message = f"{name} is of an attribute, and {of.text} is none"
        if field == "ts":
            message = f"the time of a post has a Min and a Max, and no {name}"
        raise pointed(sql, of.span, message, _OF_A_POST[field][1])
    return Measure(function, of.text)


def function_of(sql: str, name: Name) -> str:
    """The aggregate of that name, in lower case."""
    if name.text.lower() not in FUNCTIONS:
        expected = f"a column, TopK, {either(each for each in FUNCTIONS.values() if each != 'TopK')}"
        meant = nearest(name.text, FUNCTIONS.values())
        raise pointed(sql, name.span, f"there is no function {shown(name.text)}", expected, meant)
    return name.text.lower()


def attribute_of(sql: str, name: Name) -> str:
    """The attribute of that name, by which posts can be grouped."""
    field = _field(name)
    if field in _OF_A_POST:
        itself = "the time itself" if field == "ts" else "the place itself" if field[0] == "l" else field
        raise pointed(sql, name.span, f"groups are not by {itself}", _OF_A_POST[field][0])
    return name.text


def number_of_terms(sql: str, topk: Call) -> int:
    """The k of TopK(text, k), 10 where it is not given."""
    if len(topk.arguments) not in (1, 2):
        raise pointed(sql, topk.name.span, f"TopK has {len(topk.arguments)} values, not one or two", _TOPK)
    text, *number = topk.arguments
    if not isinstance(text, Name) or (text.text if text.quoted else text.text.lower()) != "text":
        meant = nearest(text.text, ["text"]) if isinstance(text, Name) else ""
        raise pointed(sql, span_of(text), "TopK counts the words of text", "text", meant)
    return whole(sql, number[0], "TopK takes a whole number of terms") if number else 10


def whole(sql: str, node: Argument, message: str, least: int = 1) -> int:
    """A whole number that is not below `least`, 0 or 1."""
    if isinstance(node, Number) and re.fullmatch(r"\+?[0-9]{1,18}", node.text) and int(node.text) >= least:
        return int(node.text)
    raise pointed(sql, span_of(node), message, f"a whole number from {least} up")


def written(call: Call) -> str:
    """An aggregate as it was written, in lower case and without blanks: the name of its column."""
    parts = (each.text if isinstance(each, Name | Number) else "*" for each in call.arguments)
    return f"{call.name.text}({','.join(parts)})".lower()


def _field(name: Name) -> str:
    """A name as the fields of a post are spelt; in backticks, what is only a word of the language is an attribute."""
    if name.quoted:
        return "" if name.text == "loc" else name.text
    text = name.text.lower()
    return "ts" if text == "time" else text
