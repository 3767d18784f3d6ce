"""Every registered source as one Spark source that hands packets over, already routed: the JVM never sees a row.

Its offset has the position of each source of ops and of posts (`storage.checkpoint`). A batch carries either ops or
posts, ops first, so a split always knows every subscription that its posts may meet.

Spark starts several processes just to plan with this module; so it imports what it needs where it needs it.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from nearcast.common.errors import BadInput
from nearcast.engine.settings import Inputs, Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from nearcast.sources.protocol import Position, Source
    from nearcast.storage.checkpoint import Offset

OPS_A_BATCH = 1_000_000  # rows


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
    """Drives the sources of a run; of each it knows no more than `sources.protocol` says."""

    def __init__(self, root: str, settings: Settings, inputs: Inputs) -> None:
        self.root = root
        self.settings = settings
        self.inputs = inputs
        self.targets: dict[tuple[str, str], Position] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """It travels to the tasks that read, without its open sources."""
        return {"root": self.root, "settings": self.settings, "inputs": self.inputs, "targets": None}

    @cached_property
    def sources(self) -> "dict[str, list[Source]]":
        """By role, in the order in which they have their turn."""
        from nearcast.sources.protocol import OPS, POSTS

        return {role: self._opened(role) for role in (OPS, POSTS)}

    def initialOffset(self) -> "Offset":
        from nearcast.storage.checkpoint import empty_offset

        return empty_offset()

    def prepareForTriggerAvailableNow(self) -> None:
        self.targets = {
            (role, source.name): source.limit(source.beginning(), drain=True)
            for role, sources in self.sources.items()
            for source in sources
        }

    def latestOffset(self, start: "Offset", limit: ReadLimit) -> "Offset":
        """The end of the next batch: further in the first source that has something new."""
        known = self._known(start)
        most = {"ops": OPS_A_BATCH, "posts": self.inputs.batch_posts}
        for role, sources in self.sources.items():
            for source in sources:
                begin = _position(known, role, source)
                end = source.advance(begin, self._limit(role, source, begin), most[role])
                if end != begin:
                    return {**known, role: {**known[role], source.name: {"of": source.identity(), "at": end}}}
        return start

    def partitions(self, start: "Offset", end: "Offset") -> Sequence[InputPartition]:
        from nearcast.storage.checkpoint import batch_time
        from nearcast.storage.directory import StateDirectory

        state = StateDirectory(self.root)
        base = {
            "root": self.root, "manifest": state.newest().to_json(), "settings": self.settings,
            "arrival": batch_time(state), "mapping": self.inputs.mapping, "ops_beside": self.inputs.ops_beside,
        }  # fmt: skip
        return [InputPartition({**base, "order": n, **cut}) for n, cut in enumerate(self._cuts(start, end))]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from nearcast.engine.packets import to_batches
        from nearcast.engine.splits import SplitTask, packets_of
        from nearcast.storage.manifest import Manifest

        task = {**partition.value, "manifest": Manifest.from_json(partition.value["manifest"])}
        return to_batches(packets_of(SplitTask(**task)))

    def stop(self) -> None:
        for source in (source for sources in self.__dict__.get("sources", {}).values() for source in sources):
            source.close()

    def _opened(self, role: str) -> "list[Source]":
        from nearcast.sources.protocol import SourceContext
        from nearcast.sources.registry import open_sources

        specs = {"ops": self.inputs.ops, "posts": self.inputs.posts}[role]
        return open_sources(specs, SourceContext(role, Path(self.root), self.inputs.mapping))

    def _known(self, offset: "Offset") -> "Offset":
        """The offset in today's form. Nearcast 0.1 had one number of posts, of whatever source a run had."""
        from nearcast.storage.checkpoint import read_offset

        known = read_offset(offset)
        if known is not offset:
            for source in self.sources["posts"]:
                if isinstance(source.beginning(), int):
                    known["posts"].setdefault(source.name, {"of": source.identity(), "at": offset["posts"]})
        return known

    def _limit(self, role: str, source: "Source", start: "Position") -> "Position":
        return source.limit(start) if self.targets is None else self.targets[role, source.name]

    def _cuts(self, start: "Offset", end: "Offset") -> list[dict[str, Any]]:
        """What each split of a batch reads."""
        known, until = self._known(start), self._known(end)
        cuts: list[dict[str, Any]] = []
        for role in self.sources:
            for name in until[role]:
                if until[role][name] != known[role].get(name):
                    source = self._source(role, name)
                    bounds = _position(known, role, source), _position(until, role, source)
                    cuts += [{"role": role, "split": split} for split in source.splits(*bounds, self.inputs.splits)]
        return cuts

    def _source(self, role: str, name: str) -> "Source":
        """A source of this run, or one that the last run was reading when it crashed."""
        from nearcast.sources.protocol import SourceContext
        from nearcast.sources.registry import open_source

        for source in self.sources[role]:
            if source.name == name:
                return source
        return open_source(name, SourceContext(role, Path(self.root), self.inputs.mapping))


def _position(known: "Offset", role: str, source: "Source") -> "Position":
    """Where a source is by an offset, if that counts in the same thing."""
    entry = known[role].get(source.name)
    if entry is None:
        return source.beginning()
    if entry["of"] != source.identity():
        raise BadInput(
            f"the checkpoint counts positions in another {source.name} than there is now: "
            "put that back, or start a new state directory"
        )
    return entry["at"]
