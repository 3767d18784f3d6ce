"""The plot of `bench routing`: for each figure a table of routers by sets, dark where a router is far from the best of
those with a like number of leaves.
"""

from pathlib import Path
from typing import Any

import numpy as np

from nearcast.bench.canvas import GREY, HIGH, PALE, Canvas, Colour, heat, readable, text_width

PANELS = {
    "checked": "posts checked a query",
    "work": "work by the cost model of SSTD",
    "load_us": "load of the busiest worker (PS2Stream, Definition 1)",
    "indexed_max_to_mean": "busiest worker to the mean, with an index that knows places",
    "copies": "workers a query goes to",
}
AS_IT_IS = ("indexed_max_to_mean", "copies")  # ratios and counts that are told as they are
WIDE, TALL = 62, 22  # of a cell, in pixels
SIZE = 2  # of letters
GAP = 24
FARTHEST = 100.0  # times the best: darkest


def draw(path: Path, figures: dict[str, dict[str, list[Any]]], columns: list[str], leaves: int) -> None:
    """Write a PNG: each figure over the least of the routers with at most so many leaves, so a router with more may be
    below 1. A cell is empty where a figure does not apply.
    """
    sets = list(figures)
    routers = list(dict.fromkeys(router for rows in figures.values() for router in rows))
    left = GAP + max((text_width(router, SIZE) for router in routers), default=0) + 10
    top = 2 * GAP + max((text_width(name, SIZE) for name in sets), default=0)
    height = top + len(routers) * TALL + GAP
    titles = {column: f"{title}, to the best of at most {leaves} leaves" for column, title in PANELS.items()}
    titles |= {column: PANELS[column] for column in AS_IT_IS}
    width = max(left + len(sets) * WIDE, *(GAP + text_width(title, SIZE) for title in titles.values())) + GAP
    canvas = Canvas(width, height * len(PANELS))
    table = {
        column: np.array([[_number(figures[name].get(router), at) for name in sets] for router in routers])
        for at, column in enumerate(columns)
    }
    for number, (column, title) in enumerate(titles.items()):
        values = table[column]
        if column not in AS_IT_IS:
            values = to_best(values, table["leaves"] <= leaves)
        panel(canvas, number * height, left, top, title, routers, sets, values)
    canvas.write(path)


def to_best(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Each column over the least above 0 of the values `among` which is chosen; NaN where there is none."""
    known = np.where(values > 0, values, np.nan)
    best = np.min(np.where(among, known, np.nan), axis=0, where=among & ~np.isnan(known), initial=np.inf)
    out: np.ndarray = known / np.where(np.isfinite(best), best, np.nan)
    return out


def panel(
    canvas: Canvas, y: int, left: int, top: int, title: str, routers: list[str], sets: list[str], values: np.ndarray
) -> None:
    canvas.text(GAP, y + GAP // 2, title, size=SIZE)
    colours = heat(np.log(np.where(values >= 1, values, 1)) / np.log(FARTHEST))
    for column, name in enumerate(sets):
        canvas.text(left + column * WIDE + WIDE // 2 - HIGH, y + top - 6, name, size=SIZE, upright=True)
    for row, router in enumerate(routers):
        into = y + top + row * TALL
        canvas.text(left - 8 - text_width(router, SIZE), into + (TALL - HIGH * SIZE) // 2, router, size=SIZE)
        for column in range(len(sets)):
            value, x = values[row, column], left + column * WIDE
            known = bool(np.isfinite(value))
            red, green, blue = (colours[row, column] if known else np.array(PALE)).tolist()
            canvas.box(x, into, WIDE - 1, TALL - 1, (red, green, blue))
            shown = short(value) if known else "-"
            ink: Colour = readable(colours[row, column]) if known else GREY
            canvas.text(x + (WIDE - text_width(shown, SIZE)) // 2, into + (TALL - HIGH * SIZE) // 2, shown, ink, SIZE)


def short(value: float) -> str:
    """At most four characters."""
    if value >= 9_999:
        return f"{value / 1000:.0f}k"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _number(row: list[Any] | None, at: int) -> float:
    return float("nan") if row is None or row[at] is None else float(row[at])
