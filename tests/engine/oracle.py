"""What a stream of ops and posts means (docs/language), worked out one by one with plain Python.

It shares with the pipeline only the parser, the tokeniser and the definition of regions: expressions are evaluated as
they were written, not as the disjunctions that indexes file.
"""

import operator
from dataclasses import dataclass, field
from typing import Any

from nearcast.common.errors import BadInput
from nearcast.common.expressions import And, Expression, Not, Or, Phrase
from nearcast.common.geo.containment import contains
from nearcast.common.geo.distance import haversine_km
from nearcast.common.queries import Predicate
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.language import check_subscription, parse

BEGINNING, NEVER = float("-inf"), float("inf")
DAY = 86_400_000_000
TOKENIZER = Tokenizer()

Result = tuple[int | str, int | str, int, float, float]  # query_id, post_id, ts, lon, lat


@dataclass(frozen=True)
class Batch:
    """Raw ops, then raw posts. `ts` of both in microseconds, or None."""

    ops: list[dict[str, Any]] = field(default_factory=list)
    posts: list[dict[str, Any]] = field(default_factory=list)
    arrival: int | None = None


@dataclass
class Version:
    """One subscription of an id, from its start to its end."""

    query: RangeQuery | NearestQuery
    sql: str
    start: float
    end: float
    taken: list[dict[str, Any]] = field(default_factory=list)  # of the nearest: all posts that it wanted

    def answer(self) -> list[dict[str, Any]]:
        """Of the posts taken the k nearest; of equally far ones the lower id, of one id the newer, then by place."""
        query = self.query
        assert isinstance(query, NearestQuery)

        def key(post: dict[str, Any]) -> tuple[Any, ...]:
            km = haversine_km(query.lon, query.lat, post["lon"], post["lat"])
            return km, isinstance(post["id"], str), post["id"], -post["ts"], post["lon"], post["lat"]

        return sorted(self.taken, key=key)[: query.k]

    def wants(self, post: dict[str, Any]) -> bool:
        return self.start <= post["ts"] < self.end and satisfies(self.query, post)


class Oracle:
    """The state of a stream so far: `results` is what the outbox must hold."""

    def __init__(self, first_post: int | None, keep: str = "posts", max_future: int = DAY) -> None:
        self.first_post = NEVER if first_post is None else first_post
        self.keep = keep
        self.max_future = max_future
        self.clock: float = BEGINNING
        self.versions: dict[int | str, list[Version]] = {}
        self.posts: list[dict[str, Any]] = []  # kept, and not deleted
        self.seen: set[tuple[Any, ...]] = set()
        self.results: set[Result] = set()
        self.rejects = 0
        self.duplicates = 0

    def run(self, batches: list[Batch]) -> "Oracle":
        for batch in batches:
            self.batch(batch)
        return self

    def batch(self, batch: Batch) -> None:
        """Ops first: deletions and new subscriptions, which catch up; then the posts. The clock moves at the end."""
        fresh = [(op["id"], version) for op in batch.ops if (version := self.apply(op)) is not None]
        if self.keep == "posts":
            for query_id, version in fresh:
                for post in self.posts:
                    self.offer(query_id, version, post)
        moments = [self.arrive(post, batch.arrival) for post in batch.posts]
        self.clock = max([self.clock, *(moment for moment in moments if moment is not None)])

    # -- ops -----------------------------------------------------------------------------------------------------------

    def apply(self, op: dict[str, Any]) -> Version | None:
        """What an op changes; the new version of a subscription, if it makes one."""
        if op["op"] == "delete":
            self.posts = [post for post in self.posts if post["id"] != op["id"]]
            for versions in self.versions.values():
                for version in versions:
                    self.forget(version, op["id"])
            return None
        versions = self.versions.setdefault(op["id"], [])
        standing = versions[-1] if versions and versions[-1].end > self.clock else None
        moment = self.clock if op.get("ts") is None else op["ts"]
        if op["op"] == "unsubscribe":
            if standing is None:
                self.rejects += 1
            else:
                self.end(versions, moment)
            return None
        try:
            statement = parse(op["sql"], TOKENIZER)
            check_subscription(statement)
        except BadInput:
            self.rejects += 1
            return None
        if standing is not None:
            if standing.query == statement.query:
                return None
            moment = max(moment, self.clock)  # it replaces, from the clock on
            self.end(versions, moment)
        version = self.version(statement.query, op["sql"], moment)
        versions.append(version)
        return version

    def forget(self, version: Version, post_id: int | str) -> None:
        """A deleted post leaves its answers. Where posts are not kept, nothing can come in its place."""
        if isinstance(version.query, NearestQuery):
            known = version.taken if self.keep == "posts" else version.answer()
            if self.keep != "posts" and all(post["id"] != post_id for post in known):
                return
            version.taken = [post for post in known if post["id"] != post_id]

    def current(self, query_id: int | str) -> list[dict[str, Any]] | None:
        """The answer of an id is that of its newest version: another takes over at once."""
        versions = self.versions.get(query_id)
        if not versions or not isinstance(versions[-1].query, NearestQuery):
            return None
        return versions[-1].answer()

    @staticmethod
    def end(versions: list[Version], moment: float) -> None:
        """All of them: one may have been going to give way to the next at a moment that now never comes."""
        for version in versions:
            version.end = min(version.end, moment)
            if isinstance(version.query, NearestQuery):  # what it has it keeps; what it might still get lies before
                has = version.answer()
                version.taken = [p for p in version.taken if p["ts"] < version.end or p in has]

    def version(self, query: RangeQuery | NearestQuery, sql: str, moment: float) -> Version:
        start, end = moment, NEVER
        if query.after is not None and query.after.at is not None:
            start = max(start, query.after.at + 1)
        if query.since is not None and query.since.at is not None:
            start = max(start, query.since.at)
        if query.until is not None and query.until.at is not None:
            end = query.until.at + 1
        if query.life is not None:  # FOR counts from the recorded start, or else from the first post
            end = min(end, (self.first_post if start == BEGINNING else start) + query.life)
        return Version(query, sql, start, end)

    # -- posts ---------------------------------------------------------------------------------------------------------

    def arrive(self, post: dict[str, Any], arrival: int | None) -> int | None:
        """Reject it, drop it as a duplicate, or match and keep it; its time, if it is taken."""
        if not is_post(post) or (arrival is not None and post["ts"] > arrival + self.max_future):
            self.rejects += 1
            return None
        same = (type(post["id"]), post["id"], post["ts"], post["lon"], post["lat"])
        if same in self.seen:
            self.duplicates += 1
            return None
        matched = [self.offer(query_id, v, post) for query_id, versions in self.versions.items() for v in versions]
        if self.keep == "posts":
            self.posts.append(post)
        if self.keep == "posts" or any(matched):
            self.seen.add(same)
        return int(post["ts"])

    def offer(self, query_id: int | str, version: Version, post: dict[str, Any]) -> bool:
        wanted = version.wants(post)
        if wanted and isinstance(version.query, NearestQuery):
            version.taken.append(post)
            return self.keep == "none" and any(post is each for each in version.answer())
        if wanted:
            self.results.add((query_id, post["id"], post["ts"], post["lon"], post["lat"]))
        return wanted

    def search(self, sql: str) -> list[tuple[Any, ...]]:
        """(id, ts, lon, lat) of the posts a search finds, in no order."""
        query = parse(sql, TOKENIZER).query
        found = []
        for post in self.posts:
            after = query.after
            if after is not None and not post["ts"] > (
                after.at if after.at is not None else self.clock - (after.ago or 0)
            ):
                continue
            if satisfies(query, post):
                found.append((post["id"], post["ts"], post["lon"], post["lat"]))
        return found


def is_post(post: dict[str, Any]) -> bool:
    """An id, a time and a place on earth."""
    given = all(post.get(name) is not None for name in ("id", "ts", "lon", "lat"))
    return given and abs(post["lon"]) <= 180 and abs(post["lat"]) <= 90


def satisfies(query: RangeQuery | NearestQuery, post: dict[str, Any]) -> bool:
    """Place, words and attributes; time is the version's."""
    return (
        contains(query.region, post["lon"], post["lat"])
        and (query.text is None or says(query.text, *words(post["text"])))
        and all(holds(predicate, post.get(predicate.name)) for predicate in query.predicates)
    )


_words: dict[str, tuple[list[int], set[int]]] = {}


def words(text: str) -> tuple[list[int], set[int]]:
    """The words of a text in a row, and its tags."""
    if text not in _words:
        tokens = TOKENIZER.tokens(text)
        row = [term for word, term in tokens if word[0] not in "#@"]
        _words[text] = row, {term for word, term in tokens if word[0] in "#@"}
    return _words[text]


def says(expression: Expression, row: list[int], tags: set[int]) -> bool:
    match expression:
        case And(parts):
            return all(says(part, row, tags) for part in parts)
        case Or(parts):
            return any(says(part, row, tags) for part in parts)
        case Not(part):
            return not says(part, row, tags)
        case Phrase(terms):
            n = len(terms)
            in_a_row = any(tuple(row[i : i + n]) == terms for i in range(len(row) - n + 1) if row[i] == terms[0])
            return in_a_row or (n == 1 and terms[0] in tags)


def holds(predicate: Predicate, value: Any) -> bool:
    """A comparison with a missing value, or with one of another kind, is false."""
    if predicate.op in ("is_null", "is_not_null"):
        return (value is None) == (predicate.op == "is_null")

    def comparable(other: Any) -> bool:
        number = isinstance(value, int | float) and isinstance(other, int | float)
        return number or (isinstance(value, str) and isinstance(other, str))

    alike = [other for other in predicate.values if comparable(other)]
    match predicate.op:
        case "=":
            return value in alike
        case "in":
            return value in alike
        case "<>" | "not_in":
            return bool(alike) and value not in alike
        case "between":
            return len(alike) == 2 and alike[0] <= value <= alike[1]
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[predicate.op]
    return bool(alike) and bool(compare(value, alike[0]))
