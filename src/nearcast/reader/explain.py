"""EXPLAIN: the plan of a search, and what carrying it out cost."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nearcast.common.expressions import Literal, Phrase
from nearcast.common.geo.shapes import Region
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.common.queries import Query, Statement
from nearcast.kinds.aggregates.query import AggregateQuery, Measure
from nearcast.kinds.aggregates.search import Aggregated
from nearcast.kinds.nearest.query import NearestQuery
from nearcast.kinds.range.query import RangeQuery
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.relevance.search import score_parts
from nearcast.kinds.terms.query import TermsQuery
from nearcast.language import decode_code, encode_query
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.answer import Found
from nearcast.reader.reader import Reader
from nearcast.reader.row_format import iso, post_rows
from nearcast.storage.manifest import ARCHIVE, POSTS
from nearcast.storage.posts.range_search import Looked

MOST_SEGMENTS = 20  # told one by one


@dataclass(frozen=True)
class Explained:
    """The steps of a plan, in order: (what, how). Iterates, and converts, as the answer of a search does."""

    steps: tuple[tuple[str, str], ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({"step": step, "detail": detail} for step, detail in self.steps)

    def to_arrow(self) -> pa.Table:
        return pa.table({"step": [step for step, _ in self.steps], "detail": [detail for _, detail in self.steps]})

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()


def explain(
    reader: Reader, statement: Statement, stop_words: str | Iterable[str] | None = None, idf: int | None = None
) -> Explained:
    """Carry the search out and say how: which leaves and segments it concerned, what was read, how many candidates; and
    of the most relevant what each score is made of.
    """
    reader.check(statement, idf)
    query = statement.query
    found = reader.answer(query, stop_words, idf)
    clock = BEGINNING if reader.manifest.clock is None else reader.manifest.clock
    encoded = encode_query(query, clock)
    refs = [*reader.manifest.of(POSTS), *reader.manifest.of(ARCHIVE)]
    effort = found.effort
    methods = Counter(looked.method for _, looked in effort.opened)
    steps = [
        ("state", f"version {reader.manifest.version}, batch {reader.manifest.batch}"),
        ("region", _region(query.region)),
        ("words", _words(query, encoded["code"])),
        ("time", _times(encoded["since"], encoded["until"])),
        ("attributes", " AND ".join(p.name + " " + p.op for p in query.predicates) or "any"),
        ("leaves", _leaves(reader, encoded)),
        ("segments opened", f"{len(effort.opened)} of {len(refs)}; {effort.skipped} skipped by time"),
        ("index", ", ".join(f"{method} in {n}" for method, n in methods.most_common()) or "nothing to look at"),
        *((name.rsplit("/", 1)[1], _how(looked)) for name, looked in effort.opened[:MOST_SEGMENTS]),
        ("candidates checked", f"{effort.candidates:,} of {sum(ref.rows for ref in refs):,} posts"),
        *((("cache", found.cached),) if isinstance(found, Aggregated) and found.cached else ()),
        *((("groups", ", ".join(query.group_by) or "all posts are one"),) if isinstance(query, AggregateQuery) else ()),
        *((("kept", found.notice),) if found.notice else ()),
        ("order", _order(query)),
        ("rows", f"{len(found):,}"),
        *(_scores(reader, query, found) if isinstance(query, RelevantQuery) and isinstance(found, Found) else ()),
    ]
    return Explained(tuple(steps))


def _how(looked: Looked) -> str:
    return f"{looked.method}: {looked.why}; {looked.candidates:,} candidates"


def _order(query: Query) -> str:
    match query:
        case RangeQuery(limit=limit):
            return "newest first, ties by id" + ("" if limit is None else f", the first {limit:,}")
        case NearestQuery():
            return f"nearest to ({query.lon:g}, {query.lat:g}) first, ties by id, the first {query.k:,}"
        case RelevantQuery():
            place = f"({query.lon:g}, {query.lat:g}), alpha {query.alpha:g}, reach {query.reach_km:,.0f} km"
            return f"most relevant to {place} first, ties by later time, then id, the first {query.k:,}"
        case TermsQuery():
            return f"most frequent first, ties by term, the first {query.k:,}"
        case AggregateQuery():
            first = [_value(each.value) + (" descending" if each.descending else "") for each in query.order]
            by = ", ".join((*first, *query.group_by)) or "one row"
            return by + ("" if query.limit is None else f", the first {query.limit:,}")


def _scores(reader: Reader, query: RelevantQuery, found: Found) -> Iterator[tuple[str, str]]:
    """The version of the idf, and of each row the parts of its score."""
    window = "all posts" if query.window_posts is None else f"the newest {query.window_posts:,} posts"
    yield "idf", f"version {found.idf}; {window}"
    for row, parts in zip(post_rows(found.posts, ("id",)), score_parts(reader, query, found), strict=True):
        near = f"{query.alpha:g} × nearness {parts.nearness:.6f} ({parts.km:,.3f} km)"
        alike = f"{1 - query.alpha:g} × cosine {parts.cosine:.6f}"
        words = " + ".join(f"{word} {mine:.6f} × {theirs:.6f}" for word, mine, theirs in parts.words)
        yield f"score of {row['id']}", f"{parts.score:.6f} = {near} + {alike} ({words})"


def _value(value: Measure | str) -> str:
    return value if isinstance(value, str) else f"{value.function}({value.of or 'id'})"


def _region(region: Region | None) -> str:
    return "everywhere" if region is None else str(region)


def _words(query: Query, code: list[int]) -> str:
    if query.text is None:
        return "any"
    spelt = _spelt(query.text)

    def literal(each: Literal) -> str:
        text = spelt.get(each.terms, "?")
        return f"NOT {text}" if each.negative else text

    return " OR ".join("(" + " AND ".join(literal(e) for e in conjunction) + ")" for conjunction in decode_code(code))


def _spelt(expression: Any) -> dict[tuple[int, ...], str]:
    """The words of each phrase of an expression."""
    if isinstance(expression, Phrase):
        return {expression.terms: " ".join(expression.words)}
    found: dict[tuple[int, ...], str] = {}
    for part in getattr(expression, "parts", None) or (expression.part,):
        found |= _spelt(part)
    return found


def _times(since: int, until: int) -> str:
    begin = "the beginning" if since == BEGINNING else iso(since)
    return f"from {begin}" + ("" if until == NEVER else f" until before {iso(until)}")


def _leaves(reader: Reader, encoded: dict[str, Any]) -> str:
    if reader.manifest.router is None:
        return "none yet"
    router = RoutingTable.load(reader.state.root / reader.manifest.router)
    min_lon, min_lat, max_lon, max_lat = (encoded[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat"))
    touched = len(router.leaves_in((min_lon, min_lat, max_lon, max_lat)))
    return f"{touched:,} of {router.leaves:,} touched (router {router.name})"
