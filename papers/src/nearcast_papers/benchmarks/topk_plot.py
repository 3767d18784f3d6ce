"""The plot of `bench topk`: a panel for each experiment, with the lines that Skype's figures have."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.common.plotting import save
from nearcast_papers.benchmarks.topk_distribution import plot_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDEXES = {"batch": "IGPT, batched", "igpt": "IGPT", "ipt": "IPT", "ciq": "CIQ"}
POLICIES = {"cskyband": "cSkyband", "kmax": "kmax", "skyband": "Skyband"}
SWEEPS = {
    "words": "words of a subscriber", "k": "k", "subscribers": "subscribers", "window": "posts of the window",
    "time": "k, window of time",
}  # fmt: skip
TUNED = {"kmax": "kmax", "ratio": "θ / kScore of Skyband"}
LINES = (
    ("skype", "arrival_us", "Skype, arrival", "#1f4e79", "o-"),
    ("skype", "expiry_us", "Skype, expiry", "#5a9bd4", "o--"),
    ("ciq_kmax", "arrival_us", "CIQ-kmax, arrival", "#d98032", "s-"),
    ("ciq_kmax", "expiry_us", "CIQ-kmax, expiry", "#e8b98a", "s--"),
)
COLOUR, SECOND = "#1f4e79", "#d98032"
PANEL = 4.2, 3.4  # inches
DPI = 110
ACROSS = 3


def draw(path: Path, figures: dict[str, Any]) -> None:
    """Write a PNG of what was measured."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    panels = [(title, kind, each) for title, kind, each in wanted(figures)]
    across = min(ACROSS, max(1, len(panels)))
    down = -(-max(1, len(panels)) // across)
    figure = Figure(figsize=(PANEL[0] * across, PANEL[1] * down), layout=ConstrainedLayoutEngine())
    grid = figure.subplots(down, across, squeeze=False).reshape(-1)
    for axes, (title, kind, each) in zip(grid, panels, strict=False):
        KINDS[kind](axes, each)
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7, frameon=False)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    save(figure, path, DPI)


def wanted(figures: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """(title, kind, figures) of each panel."""
    out: list[tuple[str, str, Any]] = []
    if "dissemination" in figures:
        out.append(("matching, core-µs a post", "indexes", figures["dissemination"]))
    if "reevaluation" in figures:
        out.append(("expiry, core-µs a post; length of a buffer", "buffers", figures["reevaluation"]))
    out += [(f"core-µs a post by {title}", "sweep", figures[name]) for name, title in SWEEPS.items() if name in figures]
    if "groups" in figures:
        out.append(("IGPT, core-µs a post by groups", "groups", figures["groups"]))
    out += [
        (f"{title}: core-µs a post, length", "tuned", figures[name]) for name, title in TUNED.items() if name in figures
    ]
    if "distribution" in figures:
        out += [(title, "lines", each) for title, each in plot_data(list(figures["distribution"].values())).items()]
    return out


def indexes(axes: "Axes", figures: dict[str, Any]) -> None:
    values = [figures[name]["us_a_post"] for name in INDEXES]
    axes.bar(list(INDEXES.values()), values, color=COLOUR)
    axes.set_yscale("log")


def buffers(axes: "Axes", figures: dict[str, Any]) -> None:
    places = range(len(POLICIES))
    axes.bar([n - 0.2 for n in places], [figures[name]["expiry_us"] for name in POLICIES], 0.4, color=COLOUR)
    axes.set_xticks(list(places), list(POLICIES.values()))
    second = axes.twinx()
    second.bar([n + 0.2 for n in places], [figures[name]["buffer"] for name in POLICIES], 0.4, color=SECOND)
    second.set_ylabel("posts in a buffer", color=SECOND)


def sweep(axes: "Axes", figures: dict[str, Any]) -> None:
    for name, column, title, colour, style in LINES:
        axes.plot(list(figures), [each[name][column] for each in figures.values()], style, color=colour, label=title)
    axes.set_yscale("log")


def groups(axes: "Axes", figures: dict[str, Any]) -> None:
    axes.plot(list(figures), [each["us_a_post"] for each in figures.values()], "o-", color=COLOUR)
    axes.set_ylim(bottom=0)


def tuned(axes: "Axes", figures: dict[str, Any]) -> None:
    shown = {name: each for name, each in figures.items() if name != "cskyband"}
    axes.plot(list(shown), [each["us_a_post"] for each in shown.values()], "o-", color=COLOUR, label="core-µs a post")
    axes.axhline(figures["cskyband"]["us_a_post"], color=COLOUR, linestyle=":", label="cSkyband")
    axes.set_ylim(bottom=0)
    second = axes.twinx()
    second.plot(list(shown), [each["buffer"] for each in shown.values()], "s--", color=SECOND)
    second.axhline(figures["cskyband"]["buffer"], color=SECOND, linestyle=":")
    second.set_ylabel("posts in a buffer", color=SECOND)
    second.set_ylim(bottom=0)


def lines(axes: "Axes", figures: dict[str, list[tuple[Any, float]]]) -> None:
    for name, points in figures.items():
        axes.plot([str(at) for at, _ in points], [value for _, value in points], "o-", label=name)


KINDS = {"indexes": indexes, "buffers": buffers, "sweep": sweep, "groups": groups, "tuned": tuned, "lines": lines}
