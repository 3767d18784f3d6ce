"""The table of `bench balance`."""

from typing import Any

from nearcast_papers.benchmarks.balance_plot import PLAIN
from nearcast_papers.published.markdown import number, plain, table, whole

CASES = {
    "posts": "80% of the posts into one region", "queries": "as many new queries in one region",
    "q3": "Q3, regions that switch",
}  # fmt: skip
ROUTERS = {"qt": "QT-tree", "agrid": "A-Grid", "kdt": "kdt-tree"}
HEAD = (
    "disturbance, router", "plan", "busiest over mean: disturbed → in the end", "of a fresh plan", "within 5",
    "over no plan", "adjusted", "queries moved",
)  # fmt: skip


def plans(figures: dict[str, dict[str, Any]]) -> list[str]:
    """Each plan under each disturbance, by the work that was counted."""
    rows = []
    for case, found in figures.items():
        title = f"{case_name(case)}, {ROUTERS.get(found['router'], found['router'])}"
        for plan, each in found.items():
            if plan not in PLAIN:
                rows.append((title, plan, *cells(each)))
                title = ""
    return table(HEAD, rows)


def case_name(case: str) -> str:
    name, _, factor = case.partition(" ")
    return f"places drawn together by {factor}" if name == "scale" else CASES[case]


def cells(each: dict[str, Any]) -> tuple[str, ...]:
    within = number(plain(each["within_5_by_work"])) if each["adjustments"] and "within_5_by_work" in each else ""
    return (
        f"{each['uneven_disturbed']:.2f} → {each['uneven_after']:.2f}", f"{each['of_fresh_by_work']:.2f}", within,
        f"{plain(each['worth']):.2f}", whole(each["adjustments"]), whole(each["queries_moved"]),
    )  # fmt: skip
