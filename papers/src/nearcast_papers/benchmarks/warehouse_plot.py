"""The plot of `bench warehouse`: response time by number of constraints for each cache, throughput by index."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.common.plotting import save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDEXES = {
    "ch_tree_mt": "CH-tree+MT", "ch_tree": "CH-tree", "rp_trees": "RP-trees", "op_index": "OpIndex",
    "pyramid": "pyramid",
}  # fmt: skip
CACHES = {
    "every_post": "no cache, every post looked at", "none": "no cache", "classic": "classic greedy", "q": "Q-cache",
    "qo": "QO-cache", "qo_approximate": "QO-cache, approximate",
}  # fmt: skip
COLOURS = ("#bbbbbb", "#777777", "#d98032", "#5a9bd4", "#1f4e79", "#8fbc5a")
FEWEST, MOST = 1, 4  # constraints
PANEL = 4.2, 3.4  # inches
DPI = 110


def draw(path: Path, figures: dict[str, Any]) -> None:
    """Write a PNG: a panel a set of searches, and one of standing queries. Where two sizes of memory were measured, the
    larger is shown.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    sets = {name: each for name, each in figures.get("searches", {}).items() if name != "repeated"}
    panels = len(sets) + ("standing" in figures)
    across = min(3, max(1, panels))
    down = -(-max(1, panels) // across)
    figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down), layout=ConstrainedLayoutEngine())
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for axes, (name, each) in zip(grid, sets.items(), strict=False):
        response(axes, name, each)
    if "standing" in figures:
        throughput(grid[len(sets)], figures["standing"])
    for axes in grid[panels:]:
        axes.set_axis_off()
    save(figure, path, DPI)


def response(axes: "Axes", name: str, figures: dict[str, Any]) -> None:
    shown: dict[str, dict[Any, Any]] = {}
    for key, each in figures.items():  # sizes of memory come in order, so the last is the largest
        if isinstance(each, dict):
            shown[key.rsplit("_", 1)[0] if key.endswith("mb") else key] = each
    constraints = list(range(FEWEST, MOST + 1))
    for (cache, title), colour in zip(CACHES.items(), COLOURS, strict=True):
        if cache in shown:
            axes.plot(constraints, [shown[cache][n]["mean_ms"] for n in constraints], "o-", color=colour, label=title)
    axes.set_yscale("log")
    axes.set_xticks(constraints)
    axes.set_xlabel("constraints")
    axes.set_ylabel("response time on average, ms")
    kind, function = name.split("_")
    axes.set_title(f"Q_{kind.upper()} {'Count' if function == 'count' else 'TopK'}", loc="left")
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def throughput(axes: "Axes", figures: dict[str, Any]) -> None:
    width = 0.8 / len(INDEXES)
    for at, ((index, title), colour) in enumerate(zip(INDEXES.items(), COLOURS[:0:-1], strict=True)):
        values = [each["posts_per_s"][index] for each in figures.values()]
        axes.bar([n + at * width for n in range(len(values))], values, width, color=colour, label=title)
    names = [name.upper().replace("_", " ") for name in figures]
    axes.set_xticks([n + 0.4 - width / 2 for n in range(len(names))], names)
    axes.set_yscale("log")
    axes.set_ylabel("posts/s on one core")
    axes.set_title("standing aggregates", loc="left")
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
