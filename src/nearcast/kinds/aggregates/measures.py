"""Aggregates as a SELECT writes them: Count(id), Avg(length), TopK(text, 10) (STAR §3.1)."""

from dataclasses import dataclass

from nearcast.language.messages import pointed
from nearcast.language.parser import check_function
from nearcast.language.syntax import Call, Name, Number, Star, span_of
from nearcast.language.topk import number_of_terms

FUNCTIONS = {"count": "Count", "sum": "Sum", "avg": "Avg", "min": "Min", "max": "Max", "topk": "TopK"}
_OF_A_POST = {  # what is no attribute, and what can be asked instead: by groups, and of an aggregate
    "id": ("Count(id), or an attribute's name", "Count(id) to count posts"),
    "text": ("TopK(text), or an attribute's name", "TopK(text), or Avg(length)"),
    "ts": ("minute, hour, date or weekday, or Min(time) and Max(time)", "Min(time), Max(time) or Count(id)"),
    **dict.fromkeys(("loc", "lon", "lat"), ("cell, or an attribute's name", "an attribute's name")),
}


@dataclass(frozen=True)
class Measure:
    """One aggregate of a SELECT (STAR §3.1): `function` is count, sum, avg, min, max or topk.

    `of` is the attribute it is taken of: None for Count(id) and Count(*), which count posts, and "text" for TopK, whose
    `k` most frequent terms it is (a term counts once a post). Count of an attribute counts the posts that have it; sum,
    avg, min and max are of its numbers (min and max also of times, `ts` included) and null where there are none.
    """

    function: str
    of: str | None = None
    k: int = 0


def measure_of(sql: str, call: Call) -> Measure:
    """What an aggregate means; QueryError, pointing at the word, where it means nothing."""
    function = _function(sql, call.name)
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


def _function(sql: str, name: Name) -> str:
    """The aggregate of that name, in lower case."""
    check_function(sql, name)
    if name.text.lower() not in FUNCTIONS:
        raise pointed(sql, name.span, f"{name.text} does not stand beside aggregates", "an aggregate such as Count(id)")
    return name.text.lower()


def attribute_of(sql: str, name: Name) -> str:
    """The attribute of that name, by which posts can be grouped."""
    field = _field(name)
    if field in _OF_A_POST:
        itself = "the time itself" if field == "ts" else "the place itself" if field[0] == "l" else field
        raise pointed(sql, name.span, f"groups are not by {itself}", _OF_A_POST[field][0])
    return name.text


def written(call: Call) -> str:
    """An aggregate as it was written, in lower case and without blanks: the name of its column."""
    parts = (each.text if isinstance(each, Name | Number) else "*" for each in call.arguments)
    return f"{call.name.text}({','.join(parts)})".lower()


def _field(name: Name) -> str:
    """A name as that of a post's field; in backticks, what is only a word of the language is an attribute."""
    if name.quoted:
        return "" if name.text == "loc" else name.text
    text = name.text.lower()
    return "ts" if text == "time" else text
