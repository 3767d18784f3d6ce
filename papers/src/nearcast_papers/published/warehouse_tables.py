"""The tables of `bench warehouse`."""

from collections.abc import Iterable
from typing import Any

from nearcast_papers.benchmarks.warehouse_plot import CACHES, INDEXES
from nearcast_papers.published.markdown import number, plain, table

CONSTRAINTS = (1, 2, 3, 4)
REPEATED = {
    "again": "asked again in the same batch", "qo": "QO-cache, from views", "none": "no cache", "duckdb": "DuckDB",
}  # fmt: skip


def response_times(figures: dict[str, Any]) -> list[str]:
    """Searches by number of constraints, cache by cache: median and mean."""
    rows = []
    for name, caches in figures["searches"].items():
        for key, found in caches.items() if name != "repeated" else ():
            if isinstance(found, dict):
                cells = (f"{number(plain(found[n]['p50_ms']))} / {number(found[n]['mean_ms'])}" for n in CONSTRAINTS)
                rows.append([set_name(name), cache_name(key), *cells])
    head = ("set", "ms, median / mean", *(f"{n} constraint{'s' if n > 1 else ''}" for n in CONSTRAINTS))
    return table(head, rows)


def set_name(name: str) -> str:
    """`s1_count` as the paper writes it."""
    kind, function = name.split("_")
    return f"Q_{kind.upper()} {'Count' if function == 'count' else 'TopK'}"


def cache_name(key: str) -> str:
    """`qo_500mb` in words."""
    cache, _, memory = key.rpartition("_") if key.endswith("mb") else (key, "", "")
    return CACHES[cache] + (f", {memory.removesuffix('mb')} MB" if memory else "")


def repeats(figures: dict[str, Any]) -> list[str]:
    """Queries that were asked before."""
    rows: list[Iterable[str]] = []
    for function, each in figures["searches"]["repeated"].items():
        for key, title in REPEATED.items():
            if key in each:
                times = each.get("times_duckdb", {}).get(key)
                faster = f"{number(times['median'])} / {number(plain(times['mean']))}" if times else ""
                taken = f"{number(plain(each[key]['p50_ms']))} / {number(each[key]['mean_ms'])}"
                rows.append((function, title, taken, faster))
    return table(("repeated", "", "ms, median / mean", "times DuckDB, median / mean"), rows)


def standing(figures: dict[str, Any]) -> list[str]:
    """Posts a second of one core, index by index, and what the MT-index takes."""
    rows = []
    for name, each in figures["standing"].items():
        memory = each["memory_mb"]
        speeds = (number(each["posts_per_s"][index]) for index in INDEXES)
        sizes = f"{number(memory['ch_tree'])} / {number(memory['ch_tree_mt'])}"
        rows.append([set_name(name), *speeds, f"{sizes} ({number(memory['ch_tree_mt_to_ch_tree'])} times)"])
    return table(("posts/s of one core", *INDEXES.values(), "MB without / with MT"), rows)
