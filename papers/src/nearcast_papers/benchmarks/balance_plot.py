"""The plot of `bench balance`: for each disturbance the busiest worker over the mean, batch by batch, a line for each
plan, with a mark where it adjusted.
"""

from math import ceil
from pathlib import Path
from typing import Any

from nearcast.common.plotting import DARK, save

ACROSS = 2  # panels
PANEL = 6.0, 3.2  # inches
DPI = 100
PLAIN = ("router", "fresh")  # figures of a case that are no plan's
LEGEND = "a dot is a batch after which the plan adjusted · the dotted line is a plan made from the disturbed stream"


def draw(path: Path, figures: dict[str, dict[str, Any]], calm: int) -> None:
    """Write a PNG; the disturbance begins with batch `calm`."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    across, down = min(ACROSS, len(figures)), ceil(len(figures) / ACROSS)
    figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    colours = [colormaps["tab10"](number) for number in range(10)]
    for axes, (case, rows) in zip(grid, figures.items(), strict=False):
        axes.axvspan(-0.5, calm - 0.5, color="#eeeeee", linewidth=0)
        axes.axhline(rows["fresh"]["uneven"], color=DARK, linestyle=":", linewidth=1)
        for number, (plan, each) in enumerate((name, row) for name, row in rows.items() if name not in PLAIN):
            colour = colours[number % len(colours)]
            uneven = each["uneven"]
            axes.plot(range(len(uneven)), uneven, color=colour, label=plan, linewidth=1.5)
            at = each["adjusted"]
            axes.plot(at, [uneven[batch] for batch in at], "o", color=colour, markersize=4)
        axes.set_title(f"{case} ({rows['router']})", loc="left", fontsize=11)
        axes.set_xlabel("batch", fontsize=9)
        axes.set_ylabel("busiest worker over the mean", fontsize=9)
        axes.set_ylim(bottom=1.0)
        if len(rows) > len(PLAIN):
            axes.legend(fontsize=8, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(figures) :]:
        axes.set_axis_off()
    figure.supxlabel(LEGEND, fontsize=9)
    save(figure, path, DPI)
