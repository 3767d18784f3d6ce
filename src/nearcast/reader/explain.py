"""EXPLAIN: the plan of a search, and what carrying it out cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nearcast.language import check_search, decode_code, encode_query
from nearcast.model.expressions import Literal, Phrase
from nearcast.model.ops import BEGINNING, NEVER
from nearcast.model.queries import RangeQuery, Statement
from nearcast.model.regions import Region
from nearcast.reader.reader import Found, Reader
from nearcast.reader.rows import iso
from nearcast.routing.uniform_grid import UniformGrid
from nearcast.state.manifest import ARCHIVE, POSTS


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


def explain(reader: Reader, statement: Statement) -> Explained:
    """Carry the search out and say how: which leaves and segments it concerned, what was read, how many candidates."""
    check_search(statement)
    found = reader.range(statement.query)
    clock = BEGINNING if reader.manifest.clock is None else reader.manifest.clock
    encoded = encode_query(statement.query, clock)
    refs = [*reader.manifest.of(POSTS), *reader.manifest.of(ARCHIVE)]
    steps = [
        ("state", f"version {reader.manifest.version}, batch {reader.manifest.batch}"),
        ("region", _region(statement.query.region)),
        ("words", _words(statement.query, encoded["code"])),
        ("time", _times(encoded["since"], encoded["until"])),
        ("attributes", " AND ".join(p.name + " " + p.op for p in statement.query.predicates) or "any"),
        ("leaves", _leaves(reader, encoded)),
        ("segments opened", f"{found.segments_opened} of {len(refs)}, the newest first (by time)"),
        ("index", "columns of each segment, mapped: place, then words, then attributes"),
        ("candidates checked", f"{found.candidates_checked:,} of {sum(ref.rows for ref in refs):,} posts"),
        ("order", "newest first, ties by id" + _limit(statement.query)),
        ("rows", _rows(found)),
    ]
    return Explained(tuple(steps))


def _region(region: Region | None) -> str:
    return "everywhere" if region is None else str(region)


def _words(query: RangeQuery, code: list[int]) -> str:
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
    router = UniformGrid.load(reader.state.root / reader.manifest.router)
    touched = leaves_touched(router, *(encoded[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat")))
    return f"{touched:,} of {router.leaves:,} touched (router {router.name})"


def leaves_touched(router: UniformGrid, min_lon: float, min_lat: float, max_lon: float, max_lat: float) -> int:
    """How many leaves of a grid a box touches; places beyond its extent belong to the border leaves."""
    west, south, width, height = router.extent

    def cell(value: float, origin: float, span: float) -> int:
        return min(max(int((value - origin) / span * router.cells), 0), router.cells - 1)

    rows = cell(max_lat, south, height) - cell(min_lat, south, height) + 1
    spans = [(min_lon, max_lon)] if min_lon <= max_lon else [(min_lon, 180.0), (-180.0, max_lon)]
    columns = {c for a, b in spans for c in range(cell(a, west, width), cell(b, west, width) + 1)}
    return rows * len(columns)


def _limit(query: RangeQuery) -> str:
    return "" if query.limit is None else f", the first {query.limit:,}"


def _rows(found: Found) -> str:
    return f"{len(found):,}"
