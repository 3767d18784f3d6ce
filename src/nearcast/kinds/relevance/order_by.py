"""The most relevant posts as a SELECT writes them (Skype §3):

    ORDER BY RELEVANCE(POINT(lon, lat), 'words', alpha [, reach km]) DESC LIMIT k [WINDOW n POSTS | WINDOW 4 HOURS]

The words are cut as the text of a post is: a phrase counts as its words, and a tag as its words and as itself, each
once. There is nothing to join them by, since every word that is common adds to the score.
"""

import re
from math import pi
from typing import Any

from nearcast.language.keywords import MOST_WORDS, TextTokenizer
from nearcast.language.messages import nearest, pointed, shown
from nearcast.language.parsed_select import ParsedSelect, whole
from nearcast.language.places import kilometres, point_of
from nearcast.language.post_select import check_one_order, number_of_posts
from nearcast.language.roles import PostOrder
from nearcast.language.syntax import Argument, Call, Number, Quantity, String, span_of
from nearcast.language.times import UNITS, duration

HALF_WORLD_KM = 6371.0088 * pi  # half the earth's circumference: no two places are farther apart
RELEVANCE = PostOrder(
    "RELEVANCE",
    "RELEVANCE(POINT(lon, lat), 'words', 0.5) DESC",
    first="most relevant",
    column="score",
    ties="time and id",
)
WINDOWS = "WINDOW 1000000 POSTS or WINDOW 4 HOURS"
_CALL = "RELEVANCE(POINT(lon, lat), 'words', 0.5), or with a reach: RELEVANCE(POINT(lon, lat), 'words', 0.5, 10 km)"
_OPERATOR = re.compile(r"(?<!\S)(?:AND|OR|NOT)(?!\S)")
_POSTS = ("post", "posts")


def relevance(parsed: ParsedSelect) -> dict[str, Any]:
    """What a RelevantQuery has beside its columns; QueryError, pointing at the word, where it has no meaning."""
    check_one_order(parsed, RELEVANCE)
    where = parsed.where()
    order, sql = parsed.order(), parsed.sql
    assert order is not None and isinstance(order.operand, Call)
    call = order.operand
    if not order.descending:
        message = "the most relevant come first, so the order is descending; there is no least relevant"
        raise parsed.error(order.direction or call.name.span, message, "DESC after RELEVANCE(…)")
    if len(call.arguments) not in (3, 4):
        raise parsed.error(call.name.span, f"RELEVANCE has {len(call.arguments)} of its values", _CALL)
    point, words, alpha, *reach = call.arguments
    lon, lat = point_of(sql, point)
    meaning = {
        **where,
        "lon": lon,
        "lat": lat,
        "words": _words(sql, words, parsed.tokenizer),
        "alpha": _alpha(sql, alpha),
        "reach_km": _reach(sql, reach[0]) if reach else HALF_WORLD_KM,
        "k": number_of_posts(parsed, RELEVANCE, "LIMIT 20 after DESC"),
    }
    if "WINDOW" not in parsed.clauses:
        return meaning
    if any(where[name] for name in ("after", "since", "until")):
        message = "the window says which posts count, and so does the time in the WHERE"
        raise parsed.error(parsed.clauses["WINDOW"].span, message, "either WINDOW or time")
    return meaning | _window(sql, parsed.body("WINDOW")[0])


def _words(sql: str, node: Argument, tokenizer: TextTokenizer) -> tuple[int, ...]:
    if not isinstance(node, String):
        raise pointed(sql, span_of(node), "the words of RELEVANCE stand in quotes", "a string such as 'ramen sushi'")
    if operator := _OPERATOR.search(node.text):
        message = f"RELEVANCE takes plain words, and each that a post has counts; for {operator[0]} use CONTAINS"
        raise pointed(sql, node.within(*operator.span()), message, "a word, or text CONTAINS '…' in the WHERE")
    terms = {term for _, term in tokenizer.tokens(node.text)}
    if not terms:
        raise pointed(sql, node.span, "there is no word in it", "a word")
    if len(terms) > MOST_WORDS:
        raise pointed(sql, node.span, f"RELEVANCE takes at most {MOST_WORDS:,} words", "fewer words")
    return tuple(sorted(terms))


def _alpha(sql: str, node: Argument) -> float:
    if not isinstance(node, Number):
        message = "this is how much nearness counts, against words: a plain number"
        raise pointed(sql, span_of(node), message, "a number from 0 (words alone) to 1 (nearness alone)")
    if not 0.0 <= node.value <= 1.0:
        message = "nearness counts for a part of the score"
        raise pointed(sql, node.span, message, "a number from 0 (words alone) to 1 (nearness alone)")
    return node.value


def _reach(sql: str, node: Argument) -> float:
    km = kilometres(sql, node, "reach")
    if km <= 0.0:
        message = "at its reach nearness has fallen to nothing, so it cannot be 0"
        raise pointed(sql, span_of(node), message, "a number of km or m that is greater than 0")
    return km


def _window(sql: str, quantity: Quantity) -> dict[str, int]:
    unit = quantity.unit
    if unit.text.lower() in _POSTS:
        return {"window_posts": whole(sql, quantity.number, "a window has a whole number of posts")}
    if unit.text.lower() not in UNITS:
        message = f"{shown(unit.text)} is no unit of a window"
        expected = "POSTS, or seconds, minutes, hours, days or weeks"
        raise pointed(sql, unit.span, message, expected, nearest(unit.text, [*UNITS, *_POSTS]))
    return {"window": duration(sql, quantity)}
