"""The tables of `bench warehouse`, as Markdown."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nearcast_papers.benchmarks.warehouse_plot import CACHES, INDEXES

CONSTRAINTS = (1, 2, 3, 4)


def write(path: Path, figures: dict[str, Any]) -> None:
    """Those of the parts that were measured."""
    searches = dict(figures.get("searches", {}))
    repeated = searches.pop("repeated", None)
    parts = [
        *response(searches), *repeats(repeated or {}), *standing(figures.get("standing", {})),
        *streams(figures.get("stream", {})),
    ]  # fmt: skip
    path.write_text("\n".join(parts), encoding="utf-8")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * (lines[0].count("|") - 1), *lines[1:], ""]


def named(name: str) -> str:
    """`s1_count` as the paper writes it."""
    kind, function = name.split("_")
    return f"Q_{kind.upper()} {'Count' if function == 'count' else 'TopK'}"


def response(sets: dict[str, Any]) -> list[str]:
    if not sets:
        return []
    rows = []
    for name, each in sets.items():
        for key, found in each.items():
            if isinstance(found, dict):
                cache, _, memory = key.rpartition("_") if key.endswith("mb") else (key, "", "")
                title = CACHES[cache] + (f", {memory.removesuffix('mb')} MB" if memory else "")
                rows.append([named(name), title, *(cell(found[n]) for n in CONSTRAINTS)])
    head = ("", "", *(f"{n} constraint{'s' if n > 1 else ''}" for n in CONSTRAINTS))
    title = "Milliseconds, median / mean (on average times no cache; times every post looked at):"
    return [title, "", *table(head, rows)]


def cell(found: dict[str, Any]) -> str:
    text = f"{found['p50_ms']['value']:.3g} / {found['mean_ms']:.3g}"
    times = [found[key]["mean"]["value"] for key in ("times_no_cache", "times_every_post") if key in found]
    return f"{text} ({'; '.join(f'{value:.2g}' for value in times)})" if times else text


def repeats(functions: dict[str, Any]) -> list[str]:
    if not functions:
        return []
    titles = {
        "again": "asked again in the same batch", "qo": "QO-cache, from views", "none": "no cache", "duckdb": "DuckDB",
    }  # fmt: skip
    rows = []
    for function, each in functions.items():
        for key, title in titles.items():
            if key in each:
                times = each.get("times_duckdb", {}).get(key)
                shown = f"{times['median']:.3g} / {times['mean']['value']:.3g}" if times else ""
                rows.append(
                    [function, title, f"{each[key]['p50_ms']['value']:.3g} / {each[key]['mean_ms']:.3g}", shown]
                )
    head = ("repeated", "", "ms, median / mean", "times DuckDB, median / mean")
    return table(head, rows)


def standing(sets: dict[str, Any]) -> list[str]:
    if not sets:
        return []
    rows = []
    for name, each in sets.items():
        memory = each["memory_mb"]
        speeds = (f"{each['posts_per_s'][index]:,.0f}" for index in INDEXES)
        shown = f"{memory['ch_tree']:.3g} / {memory['ch_tree_mt']:.3g} ({memory['ch_tree_mt_to_ch_tree']:.2g} times)"
        rows.append([named(name), *speeds, shown])
    head = ("posts/s of one core", *INDEXES.values(), "MB without / with MT")
    return table(head, rows)


def streams(sets: dict[str, Any]) -> list[str]:
    if not sets:
        return []
    rows = [
        [named(name), f"{each['posts_per_s']['value']:,.0f}", f"{each['reports']:,}", f"{each['us_a_report']:.3g}"]
        for name, each in sets.items()
    ]
    return table(("whole pipeline", "posts/s", "reports", "µs a report"), rows)
