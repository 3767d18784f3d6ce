"""Response times of STAR's searches, without a cache and with each kind of it (STAR §8.2, §8.6).

Each cache learns from queries of the same set, of 1 to 4 constraints mixed, and then answers others. What it is trained
with is noted and not searched for, as only what is asked matters to it. A search is timed from its text to the table of
its rows. Of several sizes of memory, all caches are compared by the largest, and the QO-cache with itself by the others
(§8.6).

Two things stand for Baseline-1, which has no cache: our search without one, and one that knows no more of posts than
the paper's does, its quadtree and its time slots (`warehouse_baseline`).
"""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.kinds.aggregates.answer_rows import shape_of
from nearcast.kinds.aggregates.cache.answer_cache import AggregateCache
from nearcast.kinds.aggregates.cache.cached_groups import counters_for
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.kinds.aggregates.search import GroupRows
from nearcast.language import parse
from nearcast.reader.reader import Reader
from nearcast.reader.state import State
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.search_data import Built, build, word_list
from nearcast_papers.benchmarks.warehouse_baseline import EveryPost
from nearcast_papers.benchmarks.warehouse_data import TaggedPosts
from nearcast_papers.benchmarks.warehouse_duck import Duck, is_installed
from nearcast_papers.benchmarks.warehouse_queries import K, WarehouseQueries, WarehouseQuery

SETS = {
    "s1_count": ("count", False),
    "s2_count": ("count", True),
    "s1_topk": ("topk", False),
    "s2_topk": ("topk", True),
}
CACHES = ("classic", "q", "qo")
APPROXIMATE = "qo_approximate"  # TopK from summaries (§4.1.2), which is what the paper measures
CONSTRAINTS = (1, 2, 3, 4)
OBJECTS = 0.2  # of the memory of a QO-cache is for posts along borders
MB = 1 << 20
SAMPLED = 20_000  # posts that queries are made of
AGAIN = 5  # times that each query of a repeated workload was asked before
AIMS = {1: 2.0, 4: 10.0}  # ms, of the median of a Count
GAINS = {1: 10.0, 2: 5.0, 3: 5.0, 4: 5.0}  # times no cache
FEW = 10  # queries of each number of constraints that are answered by looking at every post

Ask = Callable[[str], pa.Table]


@dataclass(frozen=True)
class SearchOptions:
    posts: int
    vocabulary: int
    queries: int
    training: int
    repeated: int
    memory: tuple[int, ...]
    sets: tuple[str, ...]
    seed: int


def measure(progress: Progress, folder: Path, options: SearchOptions) -> dict[str, Any]:
    copies = folder / "copies" if is_installed() and options.repeated else None
    source = TaggedPosts(options.posts, options.vocabulary, options.seed, copies)
    built = build(progress, folder / "state", options.posts, options.vocabulary, SAMPLED, options.seed, source=source)
    state = State(folder / "state")
    figures: dict[str, Any] = {}
    for name in options.sets:
        figures[name] = measure_set(progress, state, built, name, options)
    if options.repeated:
        figures["repeated"] = measure_repeated(progress, state, built, folder, options)
    return figures


def measure_set(progress: Progress, state: State, built: Built, name: str, options: SearchOptions) -> dict[str, Any]:
    function, pivots = SETS[name]
    workload = WarehouseQueries(built.sample, function, pivots, options.seed)
    training = workload.take(options.training)
    queries = {n: workload.take(options.queries, n) for n in CONSTRAINTS}
    progress(f"{name}: no cache")
    for some in (training[:WARMING], *queries.values()):  # everyone finds in memory what is asked for
        timed(Asking(state), some)
    plain = {n: timed(Asking(state), some) for n, some in queries.items()}
    out: dict[str, Any] = {"none": {n: described(times) for n, (times, _) in plain.items()}}
    out["none"][1]["median_ms_by_constraint"] = by_constraint(queries[1], plain[1][0])
    progress(f"{name}: no cache, every post looked at")
    few = {n: timed(Asking.of_every_post(state), some[:FEW]) for n, some in queries.items()}
    out["every_post"] = {n: described(times) for n, (times, _) in few.items()}
    checked = sum(compared(f"{name}: every post", *few[n], plain[n][1][:FEW]) for n in CONSTRAINTS)
    for memory in options.memory:
        largest = memory == max(options.memory)
        for cache in (
            *(CACHES if largest else CACHES[-1:]),
            *([APPROXIMATE] if largest and function == "topk" else []),
        ):
            progress(f"{name}: {cache}-cache of {memory:,} MB")
            roughly = cache == APPROXIMATE
            asking = Asking.by(state, "qo" if roughly else cache, memory)
            choosing = asking.train([replace(asked, approximate=roughly) for asked in training])
            found = {n: timed(asking, [replace(e, approximate=roughly) for e in some]) for n, some in queries.items()}
            if not roughly:
                checked += sum(compared(f"{name}: the {cache}-cache", *found[n], plain[n][1]) for n in CONSTRAINTS)
            aimed = largest and cache == "qo"
            shown: dict[Any, Any] = {
                n: described(times, AIMS.get(n) if aimed and function == "count" else None)
                | {"times_no_cache": gain(plain[n][0], times, GAINS[n] if aimed else None)}
                | {"times_every_post": gain(few[n][0], times[:FEW], GAINS[n] if aimed else None)}
                for n, (times, _) in found.items()
            }
            shown[1]["median_ms_by_constraint"] = by_constraint(queries[1], found[1][0])
            out[f"{cache}_{memory}mb"] = shown | asking.facts(choosing)
    return out | {"answers_checked": checked}


WARMING = 20  # queries, by which columns that are asked for a lot are read once


def compared(who: str, _times: np.ndarray, answers: Sequence[pa.Table], right: Sequence[pa.Table]) -> int:
    """How many answers are the same; all must be."""
    if not all(one.equals(other) for one, other in zip(answers, right, strict=True)):
        raise AssertionError(f"{who} answers otherwise")
    return len(answers)


def described(times: np.ndarray, at_most: float | None = None) -> dict[str, Any]:
    """In ms."""
    out: dict[str, Any] = {"p50_ms": figure(float(np.median(times)), at_most=at_most)}
    return out | {"p90_ms": rounded(float(np.percentile(times, 90))), "mean_ms": rounded(float(times.mean()))}


def by_constraint(queries: Sequence[WarehouseQuery], times: np.ndarray) -> dict[str, float]:
    """Medians of queries that have one."""
    kinds = np.array([each.constraints[0] for each in queries])
    return {str(kind): rounded(float(np.median(times[kinds == kind]))) for kind in np.unique(kinds)}


def gain(slow: np.ndarray, fast: np.ndarray, at_least: float | None = None) -> dict[str, Any]:
    """How many times as fast on average, which is what the paper tells, and at the median."""
    mean = figure(float(slow.mean() / fast.mean()), at_least=at_least)
    return {"mean": mean, "median": rounded(float(np.median(slow) / np.median(fast)))}


def timed(ask: Ask, queries: Sequence[WarehouseQuery]) -> tuple[np.ndarray, list[pa.Table]]:
    """(ms of each, answers)."""
    gc.collect()
    times, answers = [], []
    for asked in queries:
        text = asked.sql
        began = time.perf_counter()
        answers.append(ask(text))
        times.append((time.perf_counter() - began) * 1e3)
    return np.array(times), answers


# -- who answers -------------------------------------------------------------------------------------------------------


class Asking:
    """A reader of a state, with a cache before it or without."""

    def __init__(self, state: State, cache: AggregateCache | None = None) -> None:
        plain = state.reader
        self.cache = cache
        self.reader = Reader(plain.state, plain.manifest, plain.files, cache)

    @classmethod
    def by(cls, state: State, kind: str, memory: int) -> "Asking":
        """The classic greedy choice of views (Baseline-2), views (Q) or views and posts along borders (QO)."""
        objects = int(OBJECTS * memory * MB) if kind == "qo" else 0
        return cls(state, AggregateCache(memory * MB - objects, objects, classic=kind == "classic", background=False))

    @classmethod
    def of_every_post(cls, state: State) -> "Asking":
        asking = cls(state, EveryPost())
        asking.train([])
        return asking

    def __call__(self, sql: str) -> pa.Table:
        found = self.reader.search(sql)
        assert isinstance(found, GroupRows)
        return found.table

    def train(self, queries: Sequence[WarehouseQuery]) -> float:
        """Let the cache learn from queries that are noted and not answered; the seconds that its choice took."""
        assert self.cache is not None
        for asked in queries:
            query = parse(asked.sql, self.reader.tokenizer).query
            assert isinstance(query, AggregateQuery)
            counters = counters_for(K) if query.approximate else 0
            self.cache.note(self.reader.posts, self.reader.question(query), shape_of(query), counters)
        began = time.perf_counter()
        self.cache.choose(self.reader.posts)
        return time.perf_counter() - began

    def facts(self, choosing: float) -> dict[str, Any]:
        assert self.cache is not None
        status = self.cache.status()
        return {
            "choosing_s": rounded(choosing), "views": status.views, "view_mb": rounded(status.view_bytes / MB),
            "regions": status.regions, "region_mb": rounded(status.region_bytes / MB),
        }  # fmt: skip


# -- a workload that repeats itself, beside DuckDB ---------------------------------------------------------------------


def measure_repeated(
    progress: Progress, state: State, built: Built, folder: Path, options: SearchOptions
) -> dict[str, Any]:
    """Queries that have been asked before, by the QO-cache, without a cache and by DuckDB: `qo` has views of them, and
    finds their answers for this batch; `again`, it has found them before.
    """
    out: dict[str, Any] = {}
    duck = None
    if is_installed():
        progress("repeated: loading DuckDB")
        numbers = {word: number for number, word in enumerate(word_list(options.vocabulary).to_pylist())}
        clock = state.reader.manifest.clock
        assert clock is not None
        duck = Duck(folder / "duck.db", folder / "copies", numbers, clock)
    for function in ("count", "topk"):
        progress(f"repeated: {function}")
        queries = WarehouseQueries(built.sample, function, True, options.seed + 1).take(options.repeated)
        asking = Asking.by(state, "qo", max(options.memory))
        asking.train([asked for _ in range(AGAIN) for asked in queries])
        fast, answers = timed(asking, queries)
        timed(asking, queries)
        again, kept = timed(asking, queries)
        slow, right = timed(Asking(state), queries)
        for found in (answers, kept):
            compared("repeated: the cache", fast, found, right)
        out[function] = {"again": described(again), "qo": described(fast), "none": described(slow)}
        out[function]["times_no_cache"] = {"again": gain(slow, again), "qo": gain(slow, fast)}
        if duck is not None:
            theirs, told = asked_of(duck, queries)
            if function == "count":
                compare(answers, told)
            out[function]["duckdb"] = described(theirs)
            out[function]["times_duckdb"] = {
                "again": gain(theirs, again, 10.0), "qo": gain(theirs, fast, 10.0), "none": gain(theirs, slow),
            }  # fmt: skip
    if duck is not None:
        duck.close()
    return out


def asked_of(duck: Duck, queries: Sequence[WarehouseQuery]) -> tuple[np.ndarray, list[pa.Table]]:
    """The second time that each is asked."""
    for asked in queries:
        duck(asked)
    times, answers = [], []
    for asked in queries:
        began = time.perf_counter()
        answers.append(duck(asked))
        times.append((time.perf_counter() - began) * 1e3)
    return np.array(times), answers


def compare(ours: Sequence[pa.Table], theirs: Sequence[pa.Table]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        if not np.array_equal(np.sort(one["count(id)"].to_numpy()), np.sort(other["n"].to_numpy())):
            raise AssertionError("DuckDB counts otherwise")
