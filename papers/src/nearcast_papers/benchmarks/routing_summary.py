"""What `bench routing` comes to: routers side by side, over the sets of SSTD and by the load of PS2Stream."""

from collections.abc import Sequence
from typing import Any

from nearcast.partitioning.router_sample import TYPES
from nearcast_papers.benchmarks.figures import rounded

TEXTUAL = ("text-frequency", "text-hypergraph", "text-metric")
BEST_OF_TEXT = "best of text"

RouterTable = dict[str, dict[str, float]]


def compared(figures: dict[str, dict[str, list[Any]]], columns: Sequence[str]) -> dict[str, RouterTable]:
    """By router and set: posts checked a query, to the QT-tree's; the busiest worker's load where queries stand."""
    checked, load = columns.index("checked"), columns.index("load_us")
    to_qt: RouterTable = {}
    loads: RouterTable = {}
    for name, rows in figures.items():
        for router, row in rows.items():
            if name in (*TYPES, "mix") and router != "qt" and "qt" in rows and rows["qt"][checked]:
                to_qt.setdefault(router, {})[name] = rounded(row[checked] / rows["qt"][checked])
            if row[load] is not None and router not in TEXTUAL:
                loads.setdefault(router, {})[name] = row[load]
        textual = [rows[router][load] for router in TEXTUAL if router in rows and rows[router][load] is not None]
        if textual:
            loads.setdefault(BEST_OF_TEXT, {})[name] = min(textual)
    return {"checked_to_qt": to_qt, "load_us": loads}
