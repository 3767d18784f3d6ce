"""`nearcast plan`: how a state divides the world among its workers, as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.options import StateOption, existing
from nearcast.common.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    from nearcast.partitioning.partition import Partition
    from nearcast.storage.directory import StateDirectory
    from nearcast.storage.manifest import Manifest

NARROWEST, WIDEST = 200, 10_000  # pixels
POSTS_SHOWN = 50_000


def plan(
    state: StateOption,
    png: Annotated[Path, typer.Option("--png", metavar="FILE", help="Where to write the picture.")],
    width: Annotated[int, typer.Option(help="Of the picture, in pixels.")] = 1200,
) -> None:
    """Draw the partitions on the map: darker where the expected load is higher, hatched where space is cut further by
    words, with the workers that own them and dots where posts are.

    [dim]nearcast plan --state state --png plan.png[/dim]
    """
    from nearcast.cli.partition_map import draw
    from nearcast.cli.tables import messages
    from nearcast.partitioning.routing_table import RoutingTable
    from nearcast.storage.manifest import newest

    if not NARROWEST <= width <= WIDEST:
        raise BadInput(f"--width must lie between {NARROWEST} and {WIDEST:,} pixels, not {width}")
    directory = existing(state)
    manifest = newest(directory.manifests)
    if manifest.router is None:
        raise BadInput(f"{state} has no routing table yet: nearcast run makes one with the first posts or queries")
    partition = RoutingTable.load(directory.root / manifest.router).partition
    lon, lat = places(directory, manifest)
    draw(png, partition, lon, lat, width, f"{summary(partition)} · batch {manifest.batch}")
    messages().print(f"{png}: {summary(partition)}", style="dim")


def summary(partition: "Partition") -> str:
    from nearcast.partitioning.partition import SPACE

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

    from nearcast.storage.manifest import POSTS
    from nearcast.storage.posts.post_segment import PostSegment

    refs = manifest.of(POSTS)
    share = min(1.0, POSTS_SHOWN / max(sum(ref.rows for ref in refs), 1))
    parts: list[tuple[Any, Any]] = [(np.empty(0), np.empty(0))]
    for ref in refs:
        segment = PostSegment(directory.path(ref.name))
        count = max(round(len(segment) * share), 1)
        parts.append(segment.places(np.arange(count) * len(segment) // count))
    lon, lat = (np.concatenate(column) for column in zip(*parts, strict=True))
    return lon, lat
