"""Routers compared: every one on every paper's workload, by its cost model and by what it makes workers check.

A router is built from one sample and measured on fresh posts and queries of the same set (`routing_sets`); what is
counted is defined in `routing_work`. The QT-tree has θ leaves, so A-Grid and the uniform grid are measured with as many
too ("agrid/64", "grid/64"): as registered they have one a worker, and 4,096. "grid/9" is a uniform grid with at least a
cell a worker (of 8), which is what Tornado §6.2 compares with.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nearcast.common.errors import BadInput
from nearcast.common.kernels.grid import SUMMARY_BITS
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.router_sample import TYPES, RouterSample
from nearcast.partitioning.routers import a_grid, uniform_grid
from nearcast.partitioning.routers.registry import routers as known_routers
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.partitioning.worker_load import CANDIDATE, MEASURED, LoadCosts
from nearcast_papers.benchmarks.figures import Progress, figure, rounded
from nearcast_papers.benchmarks.machine import machine
from nearcast_papers.benchmarks.routing_plot import draw
from nearcast_papers.benchmarks.routing_sets import SETS, WHOLE_WORLD, Box, Grounds, generated, make_set, real
from nearcast_papers.benchmarks.routing_summary import TEXTUAL, compared
from nearcast_papers.benchmarks.routing_work import (
    Fresh,
    Routed,
    checked,
    copies,
    indexed,
    loads,
    route_posts,
    summary_of,
    work,
)

SUMMARY = "every router on every paper's workload: work, candidates checked, balance, copies, speed"
COLUMNS = {  # and what each says
    "leaves": "of the partition",
    "work": "posts a query by eq. 2 of SSTD",
    "checked": "posts a query, counted",
    "busiest": "posts a query that the busiest worker checks",
    "max_to_min": "of what workers check; null where one checks nothing",
    "indexed_max_to_mean": "of what workers check with an index that knows places; null without standing queries",
    "load_us": "of the busiest worker by Definition 1 of PS2Stream, a post; null without standing queries",
    "copies": "workers a query goes to",
    "post_leaves": "leaves that match a post; null without standing queries",
    "dropped": "share of the posts that no leaf matches; null without standing queries",
    "ns_a_post": "to route, of processor time",
    "ns_a_query": "to route, of processor time",
    "table_kb": "of the routing table, as a file",
    "build_s": "from the sample, of processor time",
}
QT_FAMILY = ("qt", "qt-space", "qt-text")
BY_LOAD = ("kdt", *TEXTUAL)  # planned by Definition 1
KNOWN = known_routers()
REPEATS = 3
WARM = 1_000  # posts and queries that everything is tried with once

Build = Callable[[RouterSample, int], Partition]
RouterRows = dict[str, dict[str, list[Any]]]


def run(
    progress: Progress,
    *,
    posts: int = 20_000,
    queries: int = 10_000,
    workers: int | str = 8,
    theta: int | str = 64,
    live: int = 5_000_000,
    sets: str = ",".join(SETS),
    routers: str = "",
    data: str | None = None,
    extent: str | None = None,
    png: str | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Lists are given with commas: `--workers 1,4,16 --theta 32,64,128,256 --sets q1,srq --routers qt,kdt`. `--data`
    takes real posts (Parquet with lon, lat and text) instead of generated ones, `--extent=-125,24,-66,50` only those of
    a country (min_lon, min_lat, max_lon, max_lat), `--png` draws the plot. In Definition 1 the queries stand for `live`
    of them (PS2Stream has 5 to 20 million).
    """
    crews, thetas = numbers("workers", workers), numbers("theta", theta)
    chosen, names = words("sets", sets, SETS), words("routers", routers or ",".join(KNOWN), KNOWN)
    parameters = {
        "posts": posts, "queries": queries, "workers": crews, "theta": thetas, "live_queries": live, "seed": seed,
        "data": Path(data).name if data else "generated", "extent": extent,
    }  # fmt: skip
    facts = machine()
    progress("making posts")
    within = box_of(extent)
    grounds = Grounds(real(Path(data), posts, seed, within) if data else generated(posts, seed, within), seed)
    costs = LoadCosts(MEASURED.c1 * max(live / max(queries, 1), 1.0), MEASURED.c2, MEASURED.c3, MEASURED.c4)
    progress("compiling what is not compiled yet")
    few, some = make_set("mix", Grounds(generated(WARM, seed), seed), WARM, seed)
    for _, build in variants(names, 2, thetas[:1], costs):
        measure(few.sample, Fresh.of(some), build, 2, costs)
    figures: RouterRows = {}
    for name in chosen:
        known, later = make_set(name, grounds, queries, seed)
        sample, fresh = known.sample, Fresh.of(later)
        for crew in crews:
            title = name if len(crews) == 1 else f"{name} {crew}w"
            rows: dict[str, list[Any]] = {}
            progress(line(title, list(COLUMNS)))
            for router, build in variants(names, crew, thetas, costs):
                rows[router] = measure(sample, fresh, build, crew, costs)
                progress(line(router, rows[router]))
            figures[title] = rows
    findings = found(figures)
    if png:
        draw(Path(png), figures, list(COLUMNS), max(thetas))
    return {
        "bench": "routing", "machine": facts, "parameters": parameters, "columns": COLUMNS,
        "figures": figures, "compared": compared(figures, list(COLUMNS)), "findings": findings,
        "speed": speed(figures, min(posts, queries)),
    }  # fmt: skip


def variants(
    names: Sequence[str], workers: int, thetas: Sequence[int], costs: LoadCosts
) -> Iterator[tuple[str, Build]]:
    """What to measure: the routers as registered; the QT family for every θ, and grids with as many leaves."""
    check = CANDIDATE / MEASURED.c2 * costs.c1 / MEASURED.c1  # matches are not among what is compared
    own: dict[str, dict[str, Any]] = {name: {"costs": costs} for name in BY_LOAD} | {"agrid": {"check": check}}
    for name in names:
        builder = KNOWN[name]
        if name in QT_FAMILY:
            for theta in thetas:
                yield name if len(thetas) == 1 else f"{name}/{theta}", partial(builder, theta=theta)
        else:
            yield name, partial(builder, **own.get(name, {}))
        if name == "agrid":
            for theta in thetas:
                yield f"agrid/{theta}", partial(a_grid.build, evaluators=theta, check=check)
        if name == "grid":
            for side in dict.fromkeys(ceil(leaves**0.5) for leaves in (workers, *thetas)):
                yield f"grid/{side * side}", partial(uniform_grid.build, cells=side)


def measure(sample: RouterSample, fresh: Fresh, build: Build, workers: int, costs: LoadCosts) -> list[Any]:
    """One row of figures, in the order of COLUMNS."""
    began = time.thread_time()
    partition = build(sample, workers)
    built = time.thread_time() - began
    table = RoutingTable(partition)
    with TemporaryDirectory(prefix="nearcast-bench-") as scratch:
        size = table.save(Path(scratch) / "table.arrow")
    routed = Routed.of(table, fresh)
    queries, posts = max(fresh.queries, 1), max(len(fresh.posts), 1)
    of_leaf = checked(fresh, routed, table.leaves)
    of_worker = np.bincount(table.owners(workers), of_leaf, workers)
    by_index = indexed(fresh, routed, table.owners(workers), workers)
    bits, stand = summary_of(table, fresh.standing), len(fresh.standing) > 0
    values = [
        table.leaves,
        float(work(fresh, routed, table.leaves).sum()),
        float(of_leaf.sum()) / queries,
        float(of_worker.max()) / queries,
        float(of_worker.max() / of_worker.min()) if of_worker.min() else None,
        float(by_index.max() / max(by_index.mean(), 1e-300)) if stand else None,
        float(loads(fresh, routed, table, workers, costs).max()) / posts if stand else None,
        float(copies(fresh, table, workers).sum()) / queries,
        len(routed.matched[0]) / posts if stand else None,
        1.0 - np.unique(routed.matched[0]).size / posts if stand else None,
        quickest(lambda: route_posts(table, fresh, bits)) / posts * 1e9,
        quickest(lambda: copies(fresh, table, workers)) / queries * 1e9,
        size / 1024,
        built,
    ]
    return [rounded(value) if isinstance(value, float) else value for value in values]


def quickest(action: Callable[[], object]) -> float:
    """Seconds of processor time; the least of a few, so that what else the machine does counts little."""
    taken = []
    for _ in range(REPEATS):
        began = time.thread_time()
        action()
        taken.append(time.thread_time() - began)
    return min(taken)


# -- what the papers say -----------------------------------------------------------------------------------------------

# A-Grid as registered has one leaf a worker, as in Tornado, so more work in each: the same with 64 stands beside it.
LESS = 1.01  # times: what counts as less, not as the same
SPATIAL = ("grid", "kd", "rtree")  # of PS2Stream §VI-B, as TEXTUAL
CLAIMS = [  # set, column, routers that are compared with (the best of them), router, least ratio
    *((name, column, (other,), "qt", LESS)
      for name in (*TYPES, "mix") for column in ("work", "checked")
      for other in ("agrid", "agrid/64", "kdt", "qt-space", "qt-text")),
    ("srq", "checked", ("agrid",), "qt", 2.0),
    ("crq", "checked", ("agrid",), "qt", 1.15),
    *((name, "load_us", others, "kdt", least)
      for name, least in (("q1", 1.0), ("q2", 1.0), ("q3", 1.3)) for others in (SPATIAL, TEXTUAL)),
    *((name, column, others, "agrid", 2.0)
      for name in ("tornado", "tornado-skewed") for column in ("indexed_max_to_mean", "load_us")
      for others in (("grid/9",), TEXTUAL)),
]  # fmt: skip


def found(figures: RouterRows) -> dict[str, Any]:
    """The papers' findings as ratios, where the sets and routers that they are about were measured, and for each of
    SSTD's sets the QT-tree against the best of all other routers that have no more leaves.
    """
    at = {name: number for number, name in enumerate(COLUMNS)}
    out: dict[str, Any] = {}

    def ratio(name: str, column: str, others: Sequence[str], router: str, least: float) -> None:
        rows = figures.get(name, {})
        values = {rows[each][at[column]]: each for each in others if each in rows}
        if values and router in rows and rows[router][at[column]]:
            best = min(values)
            out[f"{name} {column} {values[best]} to {router}"] = figure(best / rows[router][at[column]], at_least=least)

    for claim in CLAIMS:
        ratio(*claim)
    for name in (*TYPES, "mix"):
        rows = figures.get(name, {})
        if "qt" in rows:
            small = [each for each in rows if each != "qt" and rows[each][at["leaves"]] <= rows["qt"][at["leaves"]]]
            ratio(name, "checked", [each for each in small if each not in ("qt-space", "qt-text")], "qt", LESS)
    return out


def speed(figures: RouterRows, size: int) -> dict[str, Any]:
    """What the project aims at, of each router as registered: the median over the sets. Beside the table a router has
    the textual summary, which is as large for any number of subscriptions. Building has an aim for a million of each.
    """
    at = {name: number for number, name in enumerate(COLUMNS)}
    summary = (1 << SUMMARY_BITS) / 8 / 1024
    out: dict[str, Any] = {}
    for router in dict.fromkeys(each for rows in figures.values() for each in rows if each in KNOWN):
        rows = [table[router] for table in figures.values() if router in table]
        post, query, table, built = (
            median(row[at[name]] for row in rows) for name in ("ns_a_post", "ns_a_query", "table_kb", "build_s")
        )
        out[router] = {
            "ns_a_post": figure(post, at_most=600 if router in QT_FAMILY else 300),
            "ns_a_query": figure(query, at_most=10_000),
            "table_mb": figure((table + summary) / 1024, at_most=50),
            "build_s": figure(built, at_most=20 if size >= 1_000_000 else None),
        }
    return out


# -- options -----------------------------------------------------------------------------------------------------------


def numbers(option: str, given: int | str | Sequence[int]) -> list[int]:
    """'1,4,16', or one number, or several."""
    parts = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
    try:
        out = [int(part) for part in parts]
    except ValueError:
        out = []
    if not out or min(out) < 1:
        raise BadInput(f"--{option} takes whole numbers from 1 on with commas between them, not {given!r}")
    return out


def box_of(extent: str | None) -> Box:
    """'min_lon,min_lat,max_lon,max_lat', or the world."""
    try:
        west, south, east, north = (float(part) for part in extent.split(",")) if extent else WHOLE_WORLD
    except ValueError:
        west = east = south = north = 0.0
    if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
        raise BadInput(f"--extent takes min_lon,min_lat,max_lon,max_lat, not {extent!r}")
    return west, south, east, north


def words(option: str, given: str, allowed: Sequence[str] | dict[str, Any]) -> list[str]:
    chosen = [part.strip() for part in given.split(",") if part.strip()]
    for each in chosen:
        if each not in allowed:
            raise BadInput(f"--{option} {each}: there is {', '.join(allowed)}")
    return chosen


def line(name: str, values: Sequence[Any]) -> str:
    """One line of a table that is printed as it comes about."""
    cells = (f"{value:,.4g}" if isinstance(value, float) else "-" if value is None else str(value) for value in values)
    return f"{name:18}" + "".join(f"{cell[:11]:>12}" for cell in cells)
