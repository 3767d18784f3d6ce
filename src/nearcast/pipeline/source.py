"""Files and the generator as one Spark source that hands packets over, already routed: the JVM never sees a row.

Its offset is {ops, posts}, positions in the state's own logs of files (or, for the generator, a number of posts). A
batch carries either ops or posts, ops first, so a split always knows every subscription that its posts may meet.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from nearcast.model.errors import BadInput
from nearcast.pipeline.packets import to_batches
from nearcast.pipeline.plan import Plan, Settings, logged_arrival
from nearcast.pipeline.route import Packets, route_ops, route_posts, route_rejects
from nearcast.sources.file_log import FileLog
from nearcast.sources.formats import Split, read_split
from nearcast.sources.op_records import read_ops
from nearcast.sources.records import normalise
from nearcast.sources.world import World
from nearcast.state.directory import StateDirectory

OPS_LOG, POSTS_LOG = "ops", "posts"
OPS_A_BATCH = 500_000
PIECE = 65_536

Offset = dict[str, Any]


@dataclass(frozen=True)
class Inputs:
    """What a run reads: files and folders of posts and of ops, or a generated world at a rate (posts a second of
    wall time).
    """

    posts: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    mapping: dict[str, str] = field(default_factory=dict)
    world: dict[str, Any] | None = None
    rate: float | None = None
    count: int | None = None
    batch_posts: int = 800_000
    splits: int = 2

    def generated(self) -> World | None:
        return None if self.world is None else World(**self.world)


@dataclass
class OpsSplit(InputPartition):
    plan: Plan
    order: int
    split: Split


@dataclass
class FileSplit(InputPartition):
    plan: Plan
    order: int
    split: Split
    mapping: dict[str, str]


@dataclass
class WorldSplit(InputPartition):
    plan: Plan
    order: int
    world: World
    first: int
    count: int


class NearcastSource(DataSource):
    """Options: `root` (the state directory), `settings` and `inputs` as JSON."""

    @classmethod
    def name(cls) -> str:
        return "nearcast"

    def schema(self) -> str:
        return "worker int, packet binary"

    def streamReader(self, schema: Any) -> "NearcastReader":
        inputs = json.loads(self.options["inputs"])
        inputs |= {"posts": tuple(inputs["posts"]), "ops": tuple(inputs["ops"])}
        settings = Settings(**json.loads(self.options["settings"]))
        return NearcastReader(self.options["root"], settings, Inputs(**inputs))


class NearcastReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, root: str, settings: Settings, inputs: Inputs) -> None:
        self.root = root
        self.settings = settings
        self.inputs = inputs
        self.target: dict[str, int] | None = None
        self.clock: tuple[float, int] | None = None
        self.logs: dict[str, FileLog] | None = None

    @property
    def state(self) -> StateDirectory:
        return StateDirectory(self.root)

    def opened(self) -> dict[str, FileLog]:
        if self.logs is None:
            self.logs = {name: FileLog(self.state.source, name) for name in (OPS_LOG, POSTS_LOG)}
        return self.logs

    def initialOffset(self) -> Offset:
        logs = self.opened()
        return {"ops": 0, "posts": 0, "ops_log": logs[OPS_LOG].uuid, "posts_log": logs[POSTS_LOG].uuid}

    def totals(self, start: Offset) -> dict[str, int]:
        """How far each position could go now."""
        logs = self.opened()
        for name in logs:
            if start[f"{name}_log"] != logs[name].uuid:
                raise BadInput("the checkpoint counts positions in another log of files than this state has")
        logs[OPS_LOG].extend([*self.inputs.ops, str(self.state.inbox)])
        if self.inputs.world is None:
            logs[POSTS_LOG].extend(list(self.inputs.posts))
            return {"ops": logs[OPS_LOG].total, "posts": logs[POSTS_LOG].total}
        return {"ops": logs[OPS_LOG].total, "posts": max(start["posts"], self.due(start["posts"]))}

    def due(self, position: int) -> int:
        """How many posts the generator should have made by now."""
        count = self.inputs.count if self.inputs.count is not None else 1 << 60
        if self.inputs.rate is None:
            return count
        if self.clock is None:
            self.clock = (time.monotonic(), position)
        began, base = self.clock
        return min(count, base + int((time.monotonic() - began) * self.inputs.rate))

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.totals(self.initialOffset() | {"posts": 0})

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        totals = self.target or self.totals(start)
        ops_end, posts_end = max(totals["ops"], start["ops"]), max(totals["posts"], start["posts"])
        if ops_end > start["ops"]:
            return {**start, "ops": self.opened()[OPS_LOG].advance(start["ops"], OPS_A_BATCH, ops_end)}
        most = self.inputs.batch_posts
        if self.inputs.world is not None:
            return {**start, "posts": min(posts_end, start["posts"] + most)}
        return {**start, "posts": self.opened()[POSTS_LOG].advance(start["posts"], most, posts_end)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        manifest = replace(self.state.newest(), load=[])
        plan = Plan(self.root, manifest, self.settings, arrival=logged_arrival(self.state))
        parts = self.inputs.splits
        if end["ops"] > start["ops"]:
            splits = self.opened()[OPS_LOG].splits(start["ops"], end["ops"], parts)
            return [OpsSplit(plan, order, split) for order, split in enumerate(splits)]
        first, last = start["posts"], end["posts"]
        world = self.inputs.generated()
        if world is not None:
            cuts = [first + (last - first) * i // parts for i in range(parts + 1)]
            return [
                WorldSplit(plan, order, world, cuts[order], cuts[order + 1] - cuts[order])
                for order in range(parts)
                if cuts[order + 1] > cuts[order]
            ]
        splits = self.opened()[POSTS_LOG].splits(first, last, parts)
        return [FileSplit(plan, order, split, self.inputs.mapping) for order, split in enumerate(splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return to_batches(packets_of(partition))


def packets_of(part: InputPartition) -> Packets:
    """The packets of one split."""
    if isinstance(part, OpsSplit):
        raw, rejects = read_ops(part.split)
        yield from route_rejects(part.plan, rejects, part.order)
        yield from route_ops(part.plan, raw, part.order)
    elif isinstance(part, FileSplit):
        for piece, (posts, rejects) in enumerate(read_split(part.split, part.mapping)):
            order = (part.order << 20) + piece
            yield from route_rejects(part.plan, rejects, order)
            yield from route_posts(part.plan, posts, order)
    elif isinstance(part, WorldSplit):
        for piece, first in enumerate(range(part.first, part.first + part.count, PIECE)):
            table = part.world.posts(first, min(PIECE, part.first + part.count - first))
            posts, _ = normalise(table)
            yield from route_posts(part.plan, posts, (part.order << 20) + piece)
