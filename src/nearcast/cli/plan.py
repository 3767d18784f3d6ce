"""`nearcast plan`: how a state divides the world among its workers, as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.options import StateOption, existing
from nearcast.model.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    from nearcast.bench.canvas import Canvas
    from nearcast.routing.partition import Partition
    from nearcast.state.directory import StateDirectory
    from nearcast.state.manifest import Manifest

NARROWEST, WIDEST = 200, 10_000  # pixels
FLATTEST, TALLEST = 0.25, 1.25  # height of the map to its width
MARGIN, FOOT = 16, 56  # above and beside the map; below it
HATCH = 8  # pixels from line to line
ROOM = 6  # about a number
POSTS_SHOWN = 50_000
LINE = (70, 70, 80)
STRIPES, DOTS = ((70, 110, 160), (235, 235, 255)), ((30, 70, 190), (150, 200, 255))  # on pale areas, on dark ones


def plan(
    state: StateOption,
    png: Annotated[Path, typer.Option("--png", metavar="FILE", help="Where to write the picture.")],
    width: Annotated[int, typer.Option(help="Of the picture, in pixels.")] = 1200,
) -> None:
    """Draw the partitions on the map: darker where the expected load is higher, hatched where space is cut further by
    words, with the workers that own them and dots where posts are.

    [dim]nearcast plan --state state --png plan.png[/dim]
    """
    from nearcast.cli.tables import messages
    from nearcast.routing.table import RoutingTable
    from nearcast.state.manifest import newest

    if not NARROWEST <= width <= WIDEST:
        raise BadInput(f"--width must lie between {NARROWEST} and {WIDEST:,} pixels, not {width}")
    directory = existing(state)
    manifest = newest(directory.manifests)
    if manifest.router is None:
        raise BadInput(f"{state} has no routing table yet: nearcast run makes one with the first posts or queries")
    partition = RoutingTable.load(directory.root / manifest.router).partition
    lon, lat = places(directory, manifest)
    draw(partition, lon, lat, width, f"batch {manifest.batch}").write(png)
    messages().print(f"{png}: {summary(partition)}", style="dim")


def summary(partition: "Partition") -> str:
    from nearcast.routing.partition import SPACE

    leaves = _count(partition.leaves, "leaf", "leaves")
    cut = int((partition.kind != SPACE).sum())
    if cut:
        leaves += f" in {_count(partition.nodes, 'node', 'nodes')}, {cut:,} cut by text"
    return f"router {partition.name} · {leaves} · {_count(partition.workers, 'worker', 'workers')}"


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def places(directory: "StateDirectory", manifest: "Manifest") -> tuple["np.ndarray", "np.ndarray"]:
    """Where posts of the state lie, at most so many as are shown, of all segments alike."""
    import numpy as np

    from nearcast.index.posts import PostSegment
    from nearcast.state.manifest import POSTS

    refs = manifest.of(POSTS)
    share = min(1.0, POSTS_SHOWN / max(sum(ref.rows for ref in refs), 1))
    parts: list[tuple[Any, Any]] = [(np.empty(0), np.empty(0))]
    for ref in refs:
        segment = PostSegment(directory.path(ref.name))
        count = max(round(len(segment) * share), 1)
        parts.append(segment.places(np.arange(count) * len(segment) // count))
    lon, lat = (np.concatenate(column) for column in zip(*parts, strict=True))
    return lon, lat


def draw(partition: "Partition", lon: "np.ndarray", lat: "np.ndarray", width: int, note: str = "") -> "Canvas":
    import numpy as np

    from nearcast.bench.canvas import HIGH, Canvas, heat, is_dark
    from nearcast.routing.partition import SPACE

    across = width - 2 * MARGIN
    _, _, degrees, high = partition.extent
    down = round(across * min(max(high / degrees, FLATTEST), TALLEST))
    top = 2 * MARGIN + 2 * HIGH
    canvas = Canvas(width, top + down + FOOT)
    size = 2 if width >= 800 else 1
    canvas.text(MARGIN, MARGIN, " · ".join(filter(None, (summary(partition), note))), size=size)

    cell_x, cell_y = np.arange(across) * partition.cells // across, np.arange(down)[::-1] * partition.cells // down
    node = partition.node.reshape(partition.cells, partition.cells)[cell_y[:, None], cell_x]
    load = np.add.reduceat(partition.load, partition.first[:-1])
    share = load / max(float(load.sum()), 1e-300)
    colours = heat(np.sqrt(share / max(float(share.max()), 1e-300)))
    area = colours[node]
    dark = is_dark(colours)[node].astype(int)
    stripes = (np.add.outer(np.arange(down), np.arange(across)) % HATCH == 0) & (partition.kind != SPACE)[node]
    area[stripes] = (area[stripes].astype(int) + np.array(STRIPES)[dark[stripes]]) // 2

    x, y = _pixels(lon, partition.extent[0], degrees, across), _pixels(lat, partition.extent[1], high, down)
    area[down - 1 - y, x] = np.array(DOTS)[dark[down - 1 - y, x]]
    edge = np.zeros(node.shape, np.bool_)
    edge[:, :-1] |= node[:, 1:] != node[:, :-1]
    edge[:-1] |= node[1:] != node[:-1]
    edge[[0, -1]] = edge[:, [0, -1]] = True
    area[edge] = LINE
    canvas.pixels[top : top + down, MARGIN : MARGIN + across] = area

    _owners(canvas, partition, node, colours, top)
    _legend(canvas, top + down + MARGIN, float(share.max()), size)
    return canvas


def _owners(canvas: "Canvas", partition: "Partition", node: "np.ndarray", colours: "np.ndarray", top: int) -> None:
    """The workers of each node that has room for their numbers, in its middle."""
    import numpy as np

    from nearcast.bench.canvas import HIGH, WIDE, readable, text_width
    from nearcast.routing.tiles import bounds

    down, across = node.shape
    x0, y0, x1, y1 = bounds(partition).T.astype(np.int64)
    lefts, rights = x0 * across // partition.cells, x1 * across // partition.cells
    uppers, lowers = down - y1 * down // partition.cells, down - y0 * down // partition.cells
    roomy = (rights - lefts >= WIDE + ROOM) & (lowers - uppers >= HIGH + ROOM)
    for number in np.flatnonzero(roomy).tolist():
        left, right, upper, lower = (int(edge[number]) for edge in (lefts, rights, uppers, lowers))
        owners = np.unique(partition.owner[partition.first[number] : partition.first[number + 1]]).tolist()
        numbers = " ".join(map(str, owners))
        for words, size in ((numbers, 2), (numbers, 1), (f"{len(owners)} ×", 1)):
            wide, high = text_width(words, size), HIGH * size
            x, y = (left + right - wide) // 2, (upper + lower - high) // 2
            if (
                right - left < wide + 6
                or lower - upper < high + 6
                or (node[y : y + high, x : x + wide] != number).any()
            ):
                continue
            canvas.box(MARGIN + x - 2, top + y - 2, wide + 4, high + 4, _colour(colours[number]))
            canvas.text(MARGIN + x, top + y, words, readable(colours[number]), size)
            break


def _legend(canvas: "Canvas", y: int, most: float, size: int) -> None:
    import numpy as np

    from nearcast.bench.canvas import HIGH, heat, text_width

    x, tall = MARGIN, 2 * HIGH
    label = "load 0"
    canvas.text(x, y, label, size=size)
    x += text_width(label, size) + 8
    canvas.pixels[y : y + tall, x : x + 120] = heat(np.sqrt(np.linspace(0, 1, 120)))
    x += 128
    label = f"{most:.2%}"
    canvas.text(x, y, label, size=size)
    x += text_width(label, size) + 24
    hatched = np.add.outer(np.arange(tall), np.arange(40)) % HATCH == 0
    canvas.pixels[y : y + tall, x : x + 40] = np.where(hatched[..., None], STRIPES[0], heat(np.array(0.2)))
    x += 48
    canvas.text(x, y, "cut by text", size=size)
    x += text_width("cut by text", size) + 24
    canvas.box(x, y + tall // 2 - 2, 3, 3, DOTS[0])
    canvas.text(x + 10, y, "posts", size=size)
    x += 10 + text_width("posts", size) + 24
    canvas.text(x, y, "numbers: workers", size=size)


def _pixels(values: "np.ndarray", origin: float, span: float, count: int) -> "np.ndarray":
    import numpy as np

    return np.clip((values - origin) / span * count, 0, count - 1).astype(int)


def _colour(colour: "np.ndarray") -> tuple[int, int, int]:
    red, green, blue = colour.tolist()
    return red, green, blue
