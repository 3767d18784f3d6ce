"""Files and the generator as one Spark source that hands packets over, already routed: the JVM never sees a row.

Its offset is {ops, posts}, positions in the state's own logs of files (or, for the generator, a number of posts). A
batch carries either ops or posts, ops first, so a split always knows every subscription that its posts may meet.

Spark starts several processes just to plan with this module; so it imports what it needs where it needs it.
"""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from nearcast.common.errors import BadInput
from nearcast.engine.settings import Inputs, Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from nearcast.sources.file_log import FileLog
    from nearcast.storage.directory import StateDirectory

OPS_LOG, POSTS_LOG = "ops", "posts"
OPS_A_BATCH = 1_000_000  # rows of Parquet, or bytes of text

Offset = dict[str, Any]


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
        settings = json.loads(self.options["settings"])
        settings |= {"stop_words": tuple(settings["stop_words"]), "derive": None}  # the manifest says what is derived
        return NearcastReader(self.options["root"], Settings(**settings), Inputs(**inputs))


class NearcastReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, root: str, settings: Settings, inputs: Inputs) -> None:
        self.root = root
        self.settings = settings
        self.inputs = inputs
        self.target: dict[str, int] | None = None
        self.clock: tuple[float, int] | None = None
        self.logs: dict[str, FileLog] | None = None

    @property
    def state(self) -> "StateDirectory":
        from nearcast.storage.directory import StateDirectory

        return StateDirectory(self.root)

    def opened(self) -> "dict[str, FileLog]":
        from nearcast.sources.file_log import FileLog

        if self.logs is None:
            self.logs = {name: FileLog(self.state.source, name) for name in (OPS_LOG, POSTS_LOG)}
        return self.logs

    def initialOffset(self) -> Offset:
        logs = self.opened()
        return {"ops": 0, "posts": 0, "ops_log": logs[OPS_LOG].uuid, "posts_log": logs[POSTS_LOG].uuid}

    def totals(self, start: Offset, patient: bool = True) -> dict[str, int]:
        """How far each position could go now; `patient` with files that are not whole yet."""
        logs = self.opened()
        for name in logs:
            if start[f"{name}_log"] != logs[name].uuid:
                raise BadInput("the checkpoint counts positions in another log of files than this state has")
        logs[OPS_LOG].extend([*self.inputs.ops, str(self.state.inbox)], patient=patient)
        if self.inputs.world is None:
            logs[POSTS_LOG].extend(list(self.inputs.posts), patient=patient)
            return {"ops": logs[OPS_LOG].total, "posts": logs[POSTS_LOG].total}
        if self.inputs.rate is not None and logs[OPS_LOG].total > start["ops"]:  # its clock starts after the first ops
            return {"ops": logs[OPS_LOG].total, "posts": start["posts"]}
        return {"ops": logs[OPS_LOG].total, "posts": max(start["posts"], self.due(start["posts"]))}

    def due(self, position: int) -> int:
        """How many posts the generator should have made by now; it begins with those of a second."""
        count = self.inputs.count if self.inputs.count is not None else 1 << 60
        if self.inputs.rate is None:
            return count
        if self.clock is None:
            self.clock = (time.monotonic() - 1.0, position)
        began, base = self.clock
        return min(count, base + int((time.monotonic() - began) * self.inputs.rate))

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.totals(self.initialOffset(), patient=False)

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
        from nearcast.engine.spark.arrival import logged_arrival

        base = {
            "root": self.root, "manifest": self.state.newest().to_json(), "settings": self.settings,
            "arrival": logged_arrival(self.state), "inputs": self.inputs,
        }  # fmt: skip
        return [InputPartition({**base, "order": n, **cut}) for n, cut in enumerate(self.cuts(start, end))]

    def cuts(self, start: Offset, end: Offset) -> list[dict[str, Any]]:
        """What each split of a batch reads."""
        parts = self.inputs.splits
        if end["ops"] > start["ops"]:
            return [{"ops": split} for split in self.opened()[OPS_LOG].splits(start["ops"], end["ops"], parts)]
        first, last = start["posts"], end["posts"]
        if self.inputs.world is None:
            return [{"posts": split} for split in self.opened()[POSTS_LOG].splits(first, last, parts)]
        edges = [first + (last - first) * i // parts for i in range(parts + 1)]
        return [{"first": a, "count": b - a} for a, b in pairwise(edges) if b > a]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from nearcast.engine.packets import to_batches
        from nearcast.engine.splits import Work, packets_of
        from nearcast.storage.manifest import Manifest

        work = {**partition.value, "manifest": Manifest.from_json(partition.value["manifest"])}
        return to_batches(packets_of(Work(**work)))
