"""What one split of a batch reads, and its way to packets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nearcast.engine.batch import BatchPlan
from nearcast.engine.route import Packets, route_ops, route_posts, route_rejects
from nearcast.engine.settings import Settings
from nearcast.sources.op_records import ops_of
from nearcast.sources.protocol import OPS, Split
from nearcast.sources.records import posts_of
from nearcast.storage.manifest import Manifest


@dataclass(frozen=True)
class SplitTask:
    """A split of posts or of ops, by its role, and the state that its rows are routed by.

    `order` is its place among the splits of the batch; `ops_beside` says that ops of other sources may be in the same
    batch, so that posts which nobody wants yet are sent to the workers too.
    """

    root: str
    manifest: Manifest
    settings: Settings
    arrival: int | None
    order: int
    role: str
    split: Split
    mapping: Mapping[str, str]
    ops_beside: bool = False


def packets_of(task: SplitTask) -> Packets:
    """The packets of one split."""
    plan = BatchPlan(task.root, replace(task.manifest, load=[]), task.settings, arrival=task.arrival)
    if task.role == OPS:
        ops, rejects = ops_of(task.split.read())
        yield from route_rejects(plan, rejects, task.order)
        yield from route_ops(plan, ops, task.order)
        return
    for piece, (posts, rejects) in enumerate(posts_of(task.split.read(), task.mapping)):
        order = (task.order << 20) + piece
        yield from route_rejects(plan, rejects, order)
        yield from route_posts(plan, posts, order, drop=not task.ops_beside)
