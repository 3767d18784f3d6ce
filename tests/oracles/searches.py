"""The three searches of SSTD (§3.1, Definitions 1-3, snapshot versions), answered by looking at every post.

`posts` are those that are kept: dicts of id, ts (microseconds), lon, lat, text (or none) and any attributes. Nothing
here knows of leaves, segments or indexes; places, keyword expressions and attributes mean what they mean to the oracle
of the stream (tests/pipeline/oracle.py).

What the paper leaves open is as in docs/language. Where that leaves an order open, because one
id has several posts, it is completed here: newer posts before older ones, then by lon, then by lat.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from nearcast.common.geo.containment import contains
from nearcast.common.geo.distance import haversine_km
from nearcast.common.queries import Query, TimeBound
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.terms.query import TermsQuery
from tests.engine.oracle import holds, says

Post = Mapping[str, Any]
Row = dict[str, Any]


def range_rows(posts: Iterable[Post], query: RangeQuery, clock: int, tokenizer: Tokenizer) -> list[Row]:
    """SRQ: the posts that contain q.φ, are located inside q.r and arrived within the last q.τ; newest first."""
    found = sorted(matching(posts, query, clock, tokenizer), key=lambda post: (-post["ts"], by_id(post)))
    return [row(post, query.columns) for post in found[: query.limit]]


def nearest_rows(posts: Iterable[Post], query: NearestQuery, clock: int, tokenizer: Tokenizer) -> list[Row]:
    """SKQ: of the posts that an SRQ would find, the k nearest to q.ρ; nearest first, each with its `distance_km`."""

    def distance(post: Post) -> float:
        return haversine_km(query.lon, query.lat, post["lon"], post["lat"])

    found = sorted(matching(posts, query, clock, tokenizer), key=lambda post: (distance(post), by_id(post)))
    return [{**row(post, query.columns), "distance_km": distance(post)} for post in found[: query.k]]


def term_counts(posts: Iterable[Post], query: TermsQuery, clock: int, tokenizer: Tokenizer) -> list[tuple[str, int]]:
    """STQ: the k terms that appear in the most of the posts that an SRQ would find, as (word, count); ties by word.

    A term counts once a post; a tag is a term of its own beside its words. With a beat of a CTQ for the clock this is
    what the CTQ reports at that beat.
    """
    counts: Counter[str] = Counter()
    for post in matching(posts, query, clock, tokenizer):
        counts.update({word for word, _ in tokens(tokenizer, post.get("text") or "")})
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: query.k]


# -- what the WHERE asks of a post -------------------------------------------------------------------------------------


def matching(posts: Iterable[Post], query: Query, clock: int, tokenizer: Tokenizer) -> list[Post]:
    """The posts that meet all conditions of a query, in the order given."""
    return [post for post in posts if meets(post, query, clock, tokenizer)]


def meets(post: Post, query: Query, clock: int, tokenizer: Tokenizer) -> bool:
    return (
        in_time(post["ts"], query, clock)
        and contains(query.region, post["lon"], post["lat"])
        and all(holds(predicate, post.get(predicate.name)) for predicate in query.predicates)
        and (query.text is None or says(query.text, *row_and_tags(tokenizer, post.get("text") or "")))
    )


def in_time(ts: int, query: Query, clock: int) -> bool:
    """AFTER is strictly after, BETWEEN includes both its ends, and a window of length T at t is (t − T, t]."""
    if query.after is not None and not ts > at(query.after, clock):
        return False
    if query.after is not None and query.after.ago is not None and ts > clock:
        return False
    if query.since is not None and ts < at(query.since, clock):
        return False
    return query.until is None or ts <= at(query.until, clock)


def at(bound: TimeBound, clock: int) -> int:
    if bound.at is not None:
        return bound.at
    assert bound.ago is not None
    return clock - bound.ago


@lru_cache(maxsize=100_000)
def tokens(tokenizer: Tokenizer, text: str) -> list[tuple[str, int]]:
    return tokenizer.tokens(text)


def row_and_tags(tokenizer: Tokenizer, text: str) -> tuple[list[int], set[int]]:
    """The words of a text in a row, and its tags, as `says` takes them."""
    words = tokens(tokenizer, text)
    return [term for word, term in words if word[0] not in "#@"], {term for word, term in words if word[0] in "#@"}


# -- rows and their order ----------------------------------------------------------------------------------------------


def by_id(post: Post) -> tuple[Any, ...]:
    """Numbers before strings, numbers by value, strings by code point; one id's posts as the module says."""
    return isinstance(post["id"], str), post["id"], -post["ts"], post["lon"], post["lat"]


def row(post: Post, columns: tuple[str, ...] | None) -> Row:
    """The columns that were asked for, None where the post has none; all that it has where none were named."""
    return dict(post) if columns is None else {name: post.get(name) for name in columns}
