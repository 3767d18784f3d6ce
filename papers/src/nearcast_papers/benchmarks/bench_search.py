"""Searches without Spark: SSTD's three kinds over a state of merged and fresh segments."""

import gc
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nearcast.kinds.terms.search import TermRows
from nearcast.language import encode_query, parse
from nearcast.reader.answer import PostRows
from nearcast.reader.reader import Reader
from nearcast.reader.state import State
from nearcast.storage.manifest import POSTS
from nearcast_papers.baselines.kernels.scan import scan_posts
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.search_data import LARGEST, Built, build
from nearcast_papers.query_sets.query_tables import box_around

SUMMARY = "SSTD's three searches over merged and fresh segments, without Spark"
SMALL, LARGE = 0.0001, 0.01  # of the space
K = 10
CHECKED = 3  # queries of each kind that a scan answers too

PlaceAndWords = tuple[float, float, list[str]]


def run(
    progress: Progress,
    *,
    posts: int = 1_000_000,
    vocabulary: int = 800_000,
    queries: int = 300,
    seed: int = 1,
    exact_places: bool = False,
    segment: int = LARGEST,
    folder: str | None = None,
) -> dict[str, Any]:
    """`queries` of each kind over `posts`; the targets are those for 10 million.

    Merged segments have up to `segment` posts. A run merges eight of less than a million into one, of up to 8: of
    3.2 million with batches of 100,000 posts and two workers.

    A search is timed from its text to its rows in order, with their ids, times and places; the row figures say what
    reading texts into an Arrow table takes on top. With `exact_places` coordinates have all the digits of a double.
    """
    parameters = {
        "posts": posts, "vocabulary": vocabulary, "queries": queries, "seed": seed, "k": K,
        "area_shares": [SMALL, LARGE], "window_hours": 72, "exact_places": exact_places, "segment": segment,
    }  # fmt: skip
    facts = machine()
    with TemporaryDirectory(prefix="nearcast-bench-", dir=folder) as scratch:
        built = build(
            progress, Path(scratch) / "state", posts, vocabulary, queries, seed, exact_places, segment=segment
        )
        figures = measure(progress, built)
    return {"bench": "search", "machine": facts, "parameters": parameters, "figures": figures}


def measure(progress: Progress, built: Built) -> dict[str, Any]:
    began = time.perf_counter()
    state = State(built.root)
    for ref in state.reader.manifest.of(POSTS):
        state.reader.files.segment(ref.name)
    opening = time.perf_counter() - began
    kinds: dict[str, tuple[Callable[[PlaceAndWords], str], dict[str, float]]] = {
        "srq_0.01%": (lambda at: range_sql(at, SMALL), {"p50": 1, "p90": 5, "p99": 10}),
        "srq_1%": (lambda at: range_sql(at, LARGE), {"p50": 10}),
        "skq_k10": (nearest_sql, {"p50": 2}),
        "stq_0.01%": (lambda at: terms_sql(at, SMALL), {"p50": 5}),
        "stq_1%": (lambda at: terms_sql(at, LARGE), {"p50": 50}),
    }
    figures: dict[str, Any] = {
        "bytes_a_post": figure(built.size / built.posts, at_most=120),
        "merge_core_us_a_post": figure(built.merge_us, at_most=2.5),
        "opening_ms": figure(opening * 1e3, at_most=1000),
    }
    for name, (sql, targets) in kinds.items():
        progress(f"search: {name}, {len(built.sample):,} queries")
        figures[name] = found = timed(state, [sql(at) for at in built.sample], targets)
        progress(f"search: {name}, median {found['p50_ms']['value']:.3g} ms")
    progress("search: comparing answers with those of a scan")
    texts = [sql(at) for sql, _ in kinds.values() for at in built.sample[:CHECKED]]
    figures["answers_checked_by_a_scan"] = check(state.reader, texts)
    return figures


def timed(state: State, texts: list[str], targets: dict[str, float]) -> dict[str, Any]:
    """Percentiles in ms, of queries that have not been asked before; the first few warm up the code."""
    for text in texts[:5]:
        list(state.search(text))
    gc.collect()
    searching, reading, rows, candidates = [], [], [], []
    for text in texts:
        began = time.perf_counter()
        found = state.search(text)
        searched = time.perf_counter()
        found.to_arrow()
        read = time.perf_counter()
        assert isinstance(found, PostRows | TermRows)
        searching.append((searched - began) * 1e3)
        reading.append((read - searched) * 1e3)
        rows.append(len(found))
        candidates.append(found.candidates_checked)
        del found  # or the next search would be charged with freeing it
    out: dict[str, Any] = {}
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99)):
        out[f"{name}_ms"] = figure(float(np.percentile(searching, percent)), at_most=targets.get(name))
    out["rows_to_arrow_ms"] = {f"p{p}": rounded(float(np.percentile(reading, p))) for p in (50, 90, 99)}
    out["rows"] = {f"p{p}": int(np.percentile(rows, p)) for p in (50, 90, 99)}
    out["candidates"] = {f"p{p}": int(np.percentile(candidates, p)) for p in (50, 90, 99)}
    return out


# -- queries of SSTD §7.1: about a post, with one of its words -----------------------------------------------------


def region(at: PlaceAndWords, share: float) -> str:
    side = share**0.5
    one = (np.array([value]) for value in (at[0], at[1], 360 * side, 180 * side))
    return f"loc INSIDE RECT({', '.join(f'{value[0]:.7f}' for value in box_around(*one))})"


def range_sql(at: PlaceAndWords, share: float) -> str:
    return f"SELECT * FROM stream WHERE {region(at, share)} AND text CONTAINS '{at[2][0]}' AND {WINDOW}"


def nearest_sql(at: PlaceAndWords) -> str:
    place = f"POINT({at[0]:.7f}, {at[1]:.7f})"
    words = f"text CONTAINS '{at[2][1]}'"
    return f"SELECT * FROM stream WHERE {words} AND {WINDOW} ORDER BY DISTANCE(loc, {place}) LIMIT {K}"


def terms_sql(at: PlaceAndWords, share: float) -> str:
    return f"SELECT TopK(text, {K}) FROM stream WHERE {region(at, share)} AND {WINDOW}"


WINDOW = "time AFTER '72 hours ago'"


# -- the same answers by a scan ----------------------------------------------------------------------------------------


def check(reader: Reader, texts: list[str]) -> int:
    for text in texts:
        query = parse(text, reader.tokenizer).query
        found = reader.search(text)
        hits = scanned(reader, encode_query(query, reader.manifest.clock))
        if isinstance(found, TermRows):
            expected: Any = counted(reader, hits, found)
            got: Any = dict(zip(found.terms, found.counts, strict=True))
        elif not isinstance(found, PostRows):
            raise AssertionError(f"no search of this benchmark: {text}")
        elif "distance_km" in found.measures:
            expected = np.sort(np.concatenate([distances(segment, rows, query) for segment, rows in hits]))[:K]
            got = found.measures["distance_km"]
            if np.allclose(got, expected, rtol=1e-12):
                got = expected = None
        else:
            expected = sorted(i for segment, rows in hits for i in segment.id[rows].tolist())
            got = sorted(row["id"] for row in found.posts.select(["id"]).to_pylist())
        if got != expected:
            raise AssertionError(f"a scan answers otherwise: {text}")
    return len(texts)


def scanned(reader: Reader, encoded: dict[str, Any]) -> list[tuple[Any, np.ndarray]]:
    hits = []
    for ref in reader.manifest.of(POSTS):
        segment = reader.files.segment(ref.name)
        columns = (segment.lon, segment.lat, segment.ts, segment.codes, segment.offsets, segment.terms)
        rows, _ = scan_posts(*(*columns, 0, len(segment), *scan_arguments(encoded)))
        hits.append((segment, rows))
    return hits


def scan_arguments(encoded: dict[str, Any]) -> tuple[Any, ...]:
    """An encoded query as `scan_posts` takes it: the search that needs no index, by which others are checked."""
    return (
        encoded["region_kind"], encoded["min_lon"], encoded["min_lat"], encoded["max_lon"], encoded["max_lat"],
        np.array(encoded["shape"], np.float64), np.array(encoded["code"], np.uint64),
        np.int64(encoded["since"]), np.int64(encoded["until"]),
    )  # fmt: skip


def counted(reader: Reader, hits: list[tuple[Any, np.ndarray]], found: TermRows) -> dict[str, int]:
    """The counts of the terms found, and that no other term has more."""
    every = np.concatenate([np.unique(_pairs(segment, rows)) for segment, rows in hits if len(rows)])
    terms, counts = np.unique(every["term"], return_counts=True)
    wanted, _ = reader.tokenizer.terms(_strings(found.terms))
    assert sorted(counts.tolist(), reverse=True)[: len(found)] == list(found.counts)
    by_term = dict(zip(terms.tolist(), counts.tolist(), strict=True))
    return {word: by_term[term] for word, term in zip(found.terms, wanted.tolist(), strict=True)}


def _pairs(segment: Any, rows: np.ndarray) -> np.ndarray:
    columns = segment.columns(rows)
    out = np.empty(len(columns.terms), [("row", np.int64), ("term", np.uint64)])
    out["row"] = np.repeat(rows, np.diff(columns.offsets))
    out["term"] = columns.terms
    return out[out["term"] != 0]


def _strings(words: tuple[str, ...]) -> Any:
    import pyarrow as pa

    return pa.array(words, pa.string())


def distances(segment: Any, rows: np.ndarray, query: Any) -> np.ndarray:
    lon, lat = np.radians(segment.lon[rows]), np.radians(segment.lat[rows])
    at, up = np.radians(query.lon), np.radians(query.lat)
    chord = np.sin((lat - up) / 2) ** 2 + np.cos(lat) * np.cos(up) * np.sin((lon - at) / 2) ** 2
    return 2 * 6371.0088 * np.arcsin(np.minimum(1, np.sqrt(chord)))
