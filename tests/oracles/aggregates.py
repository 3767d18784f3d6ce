"""Aggregates (STAR §3.1), asked once or standing, worked out by looking at every post.

`posts` are dicts of id, ts (microseconds), lon, lat, text (or none) and attributes by name, whose values are numbers,
strings, truth values, times (`datetime`), and lists or dicts, which count as their JSON text. Words, places and times
of a WHERE mean what they mean to the searches' oracle (searches.py); nothing here knows of segments, kinds of columns,
groups as arrays or caches. Sums and means are exact fractions until they are reported.

What `common.queries` leaves open is completed so:
- Descending, all is the other way round (truth values before strings before times before numbers), but nulls are last.
- Min and Max of numbers and times together go by that order too: a number is less than any time.
- Of numbers that are all whole the sum is whole, unless it has no 64 bits. +inf and -inf have no sum and no mean.
- A post that has an attribute of the name of a derived one (`length`) has that; any other has the derived one.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

from nearcast.common.geo.containment import contains
from nearcast.common.queries import Predicate, Query
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.query import AggregateQuery, Having, Measure
from nearcast.sources.raw import json_text
from tests.engine.oracle import says
from tests.oracles.searches import in_time, row_and_tags, tokens

Post = Mapping[str, Any]
Row = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"  # geohash leaves out a, i, l and o


def aggregate(
    posts: Iterable[Post],
    query: AggregateQuery,
    clock: int,
    tokenizer: Tokenizer,
    stop_words: Collection[str] = (),
) -> list[Row]:
    """The rows of the answer, each with the query's outputs by name; TopK is a list of {term, count}."""
    found = [post for post in posts if meets(post, query, clock, tokenizer)]
    return rows_of(found, query, tokenizer, stop_words)


def rows_of(
    found: Sequence[Post], query: AggregateQuery, tokenizer: Tokenizer, stop_words: Collection[str] = ()
) -> list[Row]:
    """The rows of the answer, of posts that meet the conditions."""
    stop = {word for each in stop_words for word, _ in tokens(tokenizer, each)}
    groups = [Group(query.group_by, key, members) for key, members in grouped(found, query.group_by)]

    def value(of: Measure | str, group: Group) -> Any:
        return group.key[of] if isinstance(of, str) else group.measure(of, tokenizer, stop)

    kept = [group for group in groups if all(passes(having, value(having.value, group)) for having in query.having)]
    for name in reversed(query.group_by):
        kept = in_order(kept, partial(value, name))
    for ordering in reversed(query.order):
        kept = in_order(kept, partial(value, ordering.value), ordering.descending)
    return [{each.name: value(each.value, group) for each in query.outputs} for group in kept[: query.limit]]


# -- groups ------------------------------------------------------------------------------------------------------------


def grouped(posts: Iterable[Post], by: tuple[str, ...]) -> list[tuple[tuple[Any, ...], list[Post]]]:
    """(values, posts) of each group; without GROUP BY one group, also of no posts."""
    if not by:
        return [((), list(posts))]
    groups: dict[Any, tuple[tuple[Any, ...], list[Post]]] = {}
    for post in posts:
        key = tuple(value_of(post, name) for name in by)
        told_apart = tuple(None if each is None else (rank(each), each) for each in key)  # 1 is not true, but it is 1.0
        groups.setdefault(told_apart, (key, []))[1].append(post)
    return list(groups.values())


class Group:
    """The posts of a group, and what a SELECT, a HAVING or an ORDER BY can ask of it."""

    def __init__(self, by: tuple[str, ...], key: tuple[Any, ...], posts: list[Post]) -> None:
        self.key = dict(zip(by, key, strict=True))
        self.posts = posts

    def measure(self, measure: Measure, tokenizer: Tokenizer, stop: set[str]) -> Any:
        if measure.function == "topk":
            return self.frequent(measure.k, tokenizer, stop)
        if measure.of is None:
            assert measure.function == "count"
            return len(self.posts)
        values = [value for post in self.posts if (value := value_of(post, measure.of)) is not None]
        numbers = [value for value in values if rank(value) == NUMBER]
        times = [value for value in values if rank(value) == TIME]
        match measure.function:
            case "count":
                return len(values)
            case "sum":
                return total(numbers)
            case "avg":
                return mean(numbers)
            case "min":
                return min(numbers or times, default=None)
            case "max":
                return max(times or numbers, default=None)
        raise AssertionError(measure)

    def frequent(self, k: int, tokenizer: Tokenizer, stop: set[str]) -> list[Row]:
        """The k terms that the most posts have, each with their number; ties by term."""
        counts: Counter[str] = Counter()
        for post in self.posts:
            counts.update({word for word, _ in tokens(tokenizer, post.get("text") or "")} - stop)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [{"term": term, "count": count} for term, count in ordered[:k]]


def total(numbers: list[int | float]) -> int | float | None:
    if not numbers:
        return None
    if all(isinstance(number, int) for number in numbers):
        whole = sum(numbers)
        return whole if -(2**63) <= whole < 2**63 else float(whole)
    return rounded(numbers, 1)


def mean(numbers: list[int | float]) -> float | None:
    return rounded(numbers, len(numbers)) if numbers else None


def rounded(numbers: list[int | float], parts: int) -> float | None:
    """The sum over `parts`, rounded once."""
    endless = {number for number in numbers if math.isinf(number)}
    if endless:
        return float(endless.pop()) if len(endless) == 1 else None
    exact = sum(map(Fraction, numbers)) / parts
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# -- values ------------------------------------------------------------------------------------------------------------

NUMBER, TIME, STRING, TRUTH = range(4)


def rank(value: Any) -> int:
    """Values of one rank can be compared; those of a lower rank come first."""
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float):
        return NUMBER
    return TIME if isinstance(value, datetime) else STRING


def in_order(groups: list[Group], value: Callable[[Group], Any], descending: bool = False) -> list[Group]:
    """Sorted by a value, nulls last; those that were in order before stay so where it is the same."""
    present = [(rank(each), each, group) for group in groups if (each := value(group)) is not None]
    present.sort(key=lambda item: item[:2], reverse=descending)
    return [group for _, _, group in present] + [group for group in groups if value(group) is None]


def value_of(post: Post, name: str) -> Any:
    """Its attribute of that name, own or derived; None where it has none."""
    if name == "ts":
        return EPOCH + post["ts"] * MICROSECOND
    own = post.get(name)
    if isinstance(own, list | dict):
        return json_text(own)
    if own is None or own != own:
        return DERIVED[name](post) if name in DERIVED else None
    return own


def start_of(length: int) -> Callable[[Post], datetime]:
    return lambda post: EPOCH + post["ts"] // length * length * MICROSECOND


def geohash(lon: float, lat: float, characters: int) -> str:
    """Halving the world again and again, by longitude and latitude in turn; a border belongs to the upper half."""
    bounds = {0: [-180.0, 180.0], 1: [-90.0, 90.0]}
    name, number = "", 0
    for bit in range(5 * characters):
        low, high = bounds[bit % 2]
        middle = (low + high) / 2
        upper = (lon, lat)[bit % 2] >= middle
        bounds[bit % 2] = [middle, high] if upper else [low, middle]
        number = 2 * number + upper
        if bit % 5 == 4:
            name, number = name + BASE32[number], 0
    return name


DERIVED: dict[str, Callable[[Post], Any]] = {
    "length": lambda post: len(post.get("text") or ""),
    "date": start_of(86_400_000_000),
    "hour": start_of(3_600_000_000),
    "minute": start_of(60_000_000),
    "weekday": lambda post: (EPOCH + post["ts"] * MICROSECOND).isoweekday(),
    "cell": lambda post: geohash(post["lon"], post["lat"], 5),
}


# -- conditions --------------------------------------------------------------------------------------------------------


def meets(post: Post, query: Query, clock: int, tokenizer: Tokenizer) -> bool:
    return in_time(post["ts"], query, clock) and meets_but_time(post, query, tokenizer)


def meets_but_time(post: Post, query: Query, tokenizer: Tokenizer) -> bool:
    return (
        contains(query.region, post["lon"], post["lat"])
        and (query.text is None or says(query.text, *row_and_tags(tokenizer, post.get("text") or "")))
        and all(holds(predicate, value_of(post, predicate.name)) for predicate in query.predicates)
    )


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def holds(predicate: Predicate, value: Any) -> bool:
    """A comparison with a missing value, or with one of another kind, is false."""

    def compared(op: str) -> Iterator[bool]:
        return (compare(op, value, literal) for literal in predicate.values)

    match predicate.op:
        case "is_null":
            return value is None
        case "is_not_null":
            return value is not None
        case "between":
            low, high = predicate.values
            return compare(">=", value, low) and compare("<=", value, high)
        case "in":
            return any(compared("="))
        case "not_in":
            return any(compared("<>")) and not any(compared("="))
    return all(compared(predicate.op))


def passes(having: Having, value: Any) -> bool:
    return compare(having.op, value, having.literal)


def compare(op: str, value: Any, literal: Any) -> bool:
    """Times are compared with ISO 8601 strings, anything else with its like."""
    if value is None:
        return False
    if isinstance(value, datetime):
        literal = moment(literal)
    return literal is not None and rank(value) == rank(literal) and COMPARISONS[op](value, literal)


def moment(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at if at is None or at.tzinfo else at.replace(tzinfo=UTC)
