"""Partitions as a map: darker where the expected load is higher, hatched where space is cut further by words, with the
workers that own them and dots where posts are.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearcast.common.plotting import DARK, HEAT, save
from nearcast.partitioning.partition import SPACE, Partition
from nearcast.partitioning.tiles import bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap

WIDE = 10.0  # inches of the picture, whose text keeps its size to it
LEFT, RIGHT, BELOW, ABOVE = 0.65, 1.15, 0.6, 0.45  # inches about the map
BAR = 0.12, 0.16  # inches from the map to the colour bar, and of its width
FLATTEST, TALLEST = 0.25, 1.25  # height of the map to its width
HOTTEST = 0.62  # of the colours' range: lines, dots and numbers show on all of it
DOT, STRIPES = "#123a8c", (DARK, 0.3)
SIZES = (11, 8, 6)  # of numbers, in points: the largest that fits
LETTER = 0.64, 1.3  # width and height that a letter takes, to its size; about words half a letter stays free
INCH = 72.0  # points


def draw(path: Path, partition: Partition, lon: np.ndarray, lat: np.ndarray, width: int, title: str) -> None:
    """Write a PNG of so many pixels across, with a dot for each place."""
    from matplotlib.figure import Figure

    across = WIDE - LEFT - RIGHT
    down = across * shape(partition)
    tall = down + BELOW + ABOVE
    figure = Figure(figsize=(WIDE, tall))
    axes = figure.add_axes((LEFT / WIDE, BELOW / tall, across / WIDE, down / tall))
    load = paint(axes, partition, lon, lat, (across, down))
    axes.set_title(title, loc="left", fontsize=12)
    beside = figure.add_axes(((LEFT + across + BAR[0]) / WIDE, BELOW / tall, BAR[1] / WIDE, down / tall))
    bar = figure.colorbar(
        load, beside, format=percent, label="load, share of the whole" if partition.load.any() else "load: none known"
    )
    bar.ax.tick_params(labelsize=9)
    bar.outline.set_visible(False)
    legend(axes, partition, -0.32 / down)
    save(figure, path, width / WIDE)


def shape(partition: Partition) -> float:
    """Height to width of the map: a degree is as high as wide, unless that makes a strip."""
    _, _, degrees, high = partition.extent
    return min(max(high / degrees, FLATTEST), TALLEST)


def paint(
    axes: "Axes", partition: Partition, lon: np.ndarray, lat: np.ndarray, inches: tuple[float, float]
) -> "ScalarMappable":
    """The map, which will be about so many `inches` wide and high. Places outside the extent are shown on its border,
    whose cells they belong to.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import PowerNorm

    west, south, degrees, high = partition.extent
    node = partition.node.reshape(partition.cells, partition.cells)
    share = np.add.reduceat(partition.load, partition.first[:-1]) / max(float(partition.load.sum()), 1e-300)
    image = axes.imshow(
        share[node], heat(), PowerNorm(0.5, 0.0, float(share.max()) or 1.0), aspect="auto", interpolation="nearest",
        origin="lower", extent=(west, west + degrees, south, south + high),
    )  # fmt: skip
    hatch(axes, (partition.kind != SPACE)[node], partition)
    x, y = np.clip(lon, west, west + degrees), np.clip(lat, south, south + high)
    axes.scatter(x, y, s=1.4, color=DOT, alpha=0.7, linewidths=0, clip_on=False)
    thin = min(0.8, 6.0 * min(inches) / len(np.unique(node)) ** 0.5)  # points: finer nodes have finer borders
    ink = DARK, 0.3 + 0.7 * thin / 0.8
    axes.add_collection(LineCollection(list(borders(node, partition)), colors=[ink], linewidths=thin), autolim=False)
    owners(axes, partition, node, np.asarray(image.cmap(image.norm(share))), inches)
    axes.xaxis.set_major_formatter(lambda value, _: degree(value, "W E"))
    axes.yaxis.set_major_formatter(lambda value, _: degree(value, "S N"))
    axes.tick_params(labelsize=9)
    return image


def heat() -> "Colormap":
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heat", colormaps[HEAT](np.linspace(0, HOTTEST, 64)))


def borders(node: np.ndarray, partition: Partition) -> np.ndarray:
    """Lines ((x, y), (x, y)) between cells of different nodes, each as long as it runs straight on."""
    west, south, degrees, high = partition.extent
    lines, starts, ends = runs((node[:, 1:] != node[:, :-1]).T)
    upright = np.stack([np.stack([lines + 1, starts], 1), np.stack([lines + 1, ends], 1)], 1)
    lines, starts, ends = runs(node[1:] != node[:-1])
    level = np.stack([np.stack([starts, lines + 1], 1), np.stack([ends, lines + 1], 1)], 1)
    cell = np.array([degrees, high]) / partition.cells
    out: np.ndarray = np.concatenate([upright, level]) * cell + np.array([west, south])
    return out


def runs(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, start, end) of each run of set values in a row."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    change = np.diff(padded, axis=1)
    (row, start), (_, end) = np.nonzero(change == 1), np.nonzero(change == -1)
    return row, start, end


def hatch(axes: "Axes", mask: np.ndarray, partition: Partition) -> None:
    """Stripes over the cells of a mask, as one path, so that they go on from cell to cell."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    row, start, end = runs(mask)
    if not len(row):
        return
    west, south, degrees, high = partition.extent
    x = west + np.stack([start, end, end, start, start], 1) * degrees / partition.cells
    y = south + np.stack([row, row, row + 1, row + 1, row], 1) * high / partition.cells
    codes = np.tile([Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY], len(row))
    outline = Outline(np.stack([x.reshape(-1), y.reshape(-1)], 1), codes)
    axes.add_patch(PathPatch(outline, fill=False, linewidth=0, hatch="////", hatchcolor=STRIPES))


def owners(
    axes: "Axes", partition: Partition, node: np.ndarray, colours: np.ndarray, inches: tuple[float, float]
) -> None:
    """The workers of each node that has room for their numbers, in its middle."""
    west, south, degrees, high = partition.extent
    boxes = bounds(partition)
    points = np.array(inches) * INCH / partition.cells  # of a cell
    x0, y0, x1, y1 = boxes.T.astype(np.float64)
    roomy = ((x1 - x0) * points[0] >= 2 * SIZES[-1] * LETTER[0]) & ((y1 - y0) * points[1] >= SIZES[-1] * LETTER[1])
    for number in np.flatnonzero(roomy).tolist():
        middle = np.array([x0[number] + x1[number], y0[number] + y1[number]]) / 2
        words = spans(np.unique(partition.owner[partition.first[number] : partition.first[number + 1]]).tolist())
        for size in SIZES:
            half = np.array([(len(words) + 1) * LETTER[0], LETTER[1]]) * size / points / 2
            low, end = np.floor(middle - half).astype(int), np.ceil(middle + half).astype(int)
            if (low < 0).any() or (end > partition.cells).any():
                continue
            if (node[low[1] : end[1], low[0] : end[0]] == number).all():
                axes.text(
                    west + middle[0] * degrees / partition.cells, south + middle[1] * high / partition.cells, words,
                    color=DARK, fontsize=size, ha="center", va="center_baseline",
                    bbox={"facecolor": colours[number], "edgecolor": "none", "pad": 0.5, "alpha": 0.75},
                )  # fmt: skip
                break


def spans(numbers: list[int]) -> str:
    """Ascending numbers, with neighbours drawn together: 0–3 6 8–9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return " ".join("–".join(map(str, part)) for part in parts)


def legend(axes: "Axes", partition: Partition, y: float) -> None:
    """What signs mean, at a height below the axes (0) to their height (1); of those that there are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    signs: list[Any] = [Line2D([], [], color=DOT, marker=".", linestyle="", label="posts")]
    if (partition.kind != SPACE).any():
        signs.append(Patch(facecolor="#fed976", hatch="////", hatchcolor=STRIPES, label="cut by text"))
    if axes.texts:
        signs.append(Line2D([], [], color=DARK, marker="$3$", markeredgewidth=0, linestyle="", label="workers"))
    axes.legend(
        handles=signs, loc="upper left", bbox_to_anchor=(0, y), ncols=len(signs), frameon=False, fontsize=9,
        borderpad=0, borderaxespad=0, handlelength=1.6,
    )  # fmt: skip


def percent(value: float, _: object = None) -> str:
    return f"{100 * value:.3g}%"


def degree(value: float, sides: str) -> str:
    """12.5°W: the first side for below 0, the last for above, neither at 0."""
    value = round(value, 9)
    return f"{abs(value):g}°{sides[int(np.sign(value)) + 1].strip()}"
