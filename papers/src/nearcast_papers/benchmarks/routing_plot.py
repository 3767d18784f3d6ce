"""The plot of `bench routing`: for each figure a heat map of routers by sets, dark where a router is far from the best
of those with a like number of leaves.
"""

from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearcast.common.plotting import HEAT, readable, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = {
    "checked": "posts checked a query",
    "work": "work by the cost model of SSTD",
    "load_us": "load of the busiest worker (PS2Stream, Definition 1)",
    "indexed_max_to_mean": "busiest worker to the mean, with an index that knows places",
    "copies": "workers a query goes to",
}
AS_IT_IS = ("indexed_max_to_mean", "copies")  # ratios and counts that are told as they are
TICKS = (1, 2, 4, 10, 20, 40, 100, 200, 400, 1000)
FARTHEST = 100.0  # times the best: darkest
BETTER, UNKNOWN = "#cfe3f3", "#eeeeee"  # than the best that it is compared with; where a figure does not apply
CELL = 0.5, 0.27  # inches
BESIDE, ABOVE = 2.6, 1.8  # inches of a panel beyond its cells
LEAST_WIDE = 6.0  # inches of a panel: room for its title
SHAPE = 1.3  # width to height that the picture comes near to
DPI = 100
LEGEND = "bold: the best with at most {leaves} leaves · blue: below it, with more leaves · –: does not apply"


def draw(path: Path, figures: dict[str, dict[str, list[Any]]], columns: list[str], leaves: int) -> None:
    """Write a PNG: each figure over the least of the routers with at most so many leaves, so a router with more may be
    below 1 (blue). The best of each set is bold. A cell is grey where a figure does not apply.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    sets = list(figures)
    routers = list(dict.fromkeys(router for rows in figures.values() for router in rows))
    table = {
        column: np.array([[_number(figures[name].get(router), at) for name in sets] for router in routers])
        for at, column in enumerate(columns)
    }
    wide, tall = max(CELL[0] * len(sets) + BESIDE, LEAST_WIDE), CELL[1] * len(routers) + ABOVE
    across = min(range(1, len(PANELS) + 1), key=lambda n: abs(log(wide * n / (tall * ceil(len(PANELS) / n)) / SHAPE)))
    down = ceil(len(PANELS) / across)
    figure = Figure(figsize=(wide * across, tall * down), layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15))
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    comparable = table["leaves"] <= leaves
    for axes, (column, title) in zip(grid, PANELS.items(), strict=False):
        if column in AS_IT_IS:
            panel(axes, title, routers, sets, table[column], comparable)
        else:
            title = f"{title},\nto the best of at most {leaves} leaves"
            panel(axes, title, routers, sets, to_best(table[column], comparable), comparable, FARTHEST)
    for axes in grid[len(PANELS) :]:
        axes.set_axis_off()
    figure.supxlabel(LEGEND.format(leaves=leaves), fontsize=10)
    save(figure, path, DPI)


def to_best(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Each column over the least above 0 of the values `among` which is chosen; NaN where there is none."""
    known = np.where(values > 0, values, np.nan)
    best = np.min(np.where(among, known, np.nan), axis=0, where=among & ~np.isnan(known), initial=np.inf)
    out: np.ndarray = known / np.where(np.isfinite(best), best, np.nan)
    return out


def panel(
    axes: "Axes",
    title: str,
    routers: list[str],
    sets: list[str],
    values: np.ndarray,
    comparable: np.ndarray,
    most: float = 0.0,
) -> None:
    """One heat map on a logarithmic scale from 1 to `most`, or to the greatest value."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    known = np.isfinite(values)
    most = most or float(np.max(values, where=known, initial=2.0))
    colours = colormaps[HEAT].with_extremes(bad=UNKNOWN, under=BETTER)
    scale = LogNorm(1 - 1e-9, most)
    image = axes.imshow(np.ma.masked_invalid(values), colours, scale, aspect="auto", interpolation="nearest")
    best, worst = (
        extreme(values, axis=0, where=known & comparable, initial=start)
        for extreme, start in ((np.min, np.inf), (np.max, -np.inf))
    )
    for (row, column), value in np.ndenumerate(values):
        ink = readable(image.cmap(scale(value))) if known[row, column] else "#999999"
        bold = comparable[row, column] and value == best[column] < worst[column]
        shown = short(value) if known[row, column] else "–"
        axes.text(
            column, row, shown, color=ink, weight="bold" if bold else "normal", ha="center", va="center", fontsize=8
        )
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xticks(range(len(sets)), sets, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(routers)), routers, fontsize=9)
    axes.set_xticks(np.arange(1, len(sets)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(routers)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    ticks = [tick for tick in TICKS if tick <= most]
    bar = axes.figure.colorbar(image, ax=axes, ticks=ticks, format="%g ×" if most == FARTHEST else "%g", pad=0.01)
    bar.ax.minorticks_off()
    bar.outline.set_visible(False)


def short(value: float) -> str:
    """At most four characters."""
    if value >= 9_999:
        return f"{value / 1000:.0f}k"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _number(row: list[Any] | None, at: int) -> float:
    return float("nan") if row is None or row[at] is None else float(row[at])
