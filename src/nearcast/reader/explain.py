"""EXPLAIN: the plan of a search, and what carrying it out cost."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nearcast.common.expressions import Literal, Phrase
from nearcast.common.geo.shapes import Region
from nearcast.common.kinds import kind_named
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.common.queries import Query, Statement
from nearcast.language import decode_code, encode_conditions
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.reader import Reader
from nearcast.reader.roles import Step
from nearcast.reader.row_format import iso
from nearcast.storage.manifest import ARCHIVE, POSTS
from nearcast.storage.posts.range_search import SegmentScan

MOST_SEGMENTS = 20  # that are listed one by one


@dataclass(frozen=True)
class Explanation:
    """The steps of a plan, in order: (what, how). Iterates, and converts, as the answer of a search does."""

    steps: tuple[Step, ...]

    column_names = ("step", "detail")

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return ({"step": step, "detail": detail} for step, detail in self.steps)

    def to_arrow(self) -> pa.Table:
        return pa.table({"step": [step for step, _ in self.steps], "detail": [detail for _, detail in self.steps]})

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()


def explain(reader: Reader, statement: Statement, **options: Any) -> Explanation:
    """Carry the search out and say how: which leaves and segments it concerned, what was read, how many candidates; and
    what its kind has to say.
    """
    reader.check(statement)
    query = statement.query
    answer = reader.answer(query, **options)
    part = kind_named(query.kind).search.explain(reader, query, answer)
    clock = BEGINNING if reader.manifest.clock is None else reader.manifest.clock
    encoded = encode_conditions(query, clock)
    refs = [*reader.manifest.of(POSTS), *reader.manifest.of(ARCHIVE)]
    effort = answer.effort
    methods = Counter(scan.method for _, scan in effort.scans)
    steps = [
        ("state", f"version {reader.manifest.version}, batch {reader.manifest.batch}"),
        ("region", _region(query.region)),
        ("words", _words(query, encoded["code"])),
        ("time", _times(encoded["since"], encoded["until"])),
        ("attributes", " AND ".join(p.name + " " + p.op for p in query.predicates) or "any"),
        ("leaves", _leaves(reader, encoded)),
        ("segments opened", f"{len(effort.scans)} of {len(refs)}; {effort.skipped} skipped by time"),
        ("index", ", ".join(f"{method} in {n}" for method, n in methods.most_common()) or "nothing to look at"),
        *((name.rsplit("/", 1)[1], _how(scan)) for name, scan in effort.scans[:MOST_SEGMENTS]),
        ("candidates checked", f"{effort.candidates:,} of {sum(ref.rows for ref in refs):,} posts"),
        *part.steps,
        *((("kept", answer.notice),) if answer.notice else ()),
        ("order", part.order),
        ("rows", f"{len(answer):,}"),
        *part.rows,
    ]
    return Explanation(tuple(steps))


def _how(scan: SegmentScan) -> str:
    return f"{scan.method}: {scan.why}; {scan.candidates:,} candidates"


def _region(region: Region | None) -> str:
    return "everywhere" if region is None else str(region)


def _words(query: Query, code: list[int]) -> str:
    if query.text is None:
        return "any"
    phrases = _phrases(query.text)

    def literal(each: Literal) -> str:
        text = phrases.get(each.terms, "?")
        return f"NOT {text}" if each.negative else text

    return " OR ".join("(" + " AND ".join(literal(e) for e in conjunction) + ")" for conjunction in decode_code(code))


def _phrases(expression: Any) -> dict[tuple[int, ...], str]:
    """The words of each phrase of an expression."""
    if isinstance(expression, Phrase):
        return {expression.terms: " ".join(expression.words)}
    words: dict[tuple[int, ...], str] = {}
    for part in getattr(expression, "parts", None) or (expression.part,):
        words |= _phrases(part)
    return words


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
