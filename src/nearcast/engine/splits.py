"""What one split of a batch reads, and its way to packets."""

from dataclasses import dataclass, replace

from nearcast.engine.batch import BatchPlan
from nearcast.engine.route import Packets, route_ops, route_posts, route_rejects
from nearcast.engine.settings import Inputs, Settings
from nearcast.sources.formats import Split, read_split
from nearcast.sources.op_records import read_ops
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.storage.manifest import Manifest

PIECE = 65_536


@dataclass(frozen=True)
class Work:
    """A split: ops of a file, posts of a file, or `count` posts of a generated world; in the order of the stream."""

    root: str
    manifest: Manifest
    settings: Settings
    arrival: int | None
    inputs: Inputs
    order: int
    ops: Split | None = None
    posts: Split | None = None
    first: int = 0
    count: int = 0


def packets_of(work: Work) -> Packets:
    """The packets of one split."""
    plan = BatchPlan(work.root, replace(work.manifest, load=[]), work.settings, arrival=work.arrival)
    if work.ops is not None:
        raw, rejects = read_ops(work.ops)
        yield from route_rejects(plan, rejects, work.order)
        yield from route_ops(plan, raw, work.order)
    elif work.posts is not None:
        for piece, (posts, rejects) in enumerate(read_split(work.posts, work.inputs.mapping)):
            order = (work.order << 20) + piece
            yield from route_rejects(plan, rejects, order)
            yield from route_posts(plan, posts, order)
    else:
        world = World(**(work.inputs.world or {}))
        for piece, first in enumerate(range(work.first, work.first + work.count, PIECE)):
            posts, _ = normalise(world.posts(first, min(PIECE, work.first + work.count - first)))
            yield from route_posts(plan, posts, (work.order << 20) + piece)
