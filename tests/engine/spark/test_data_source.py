"""The Spark source drives any source: ops before posts, positions by source, checkpoints old and new. No JVM."""

import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from nearcast.common.errors import BadInput
from nearcast.common.schemes import Scheme
from nearcast.engine.settings import Inputs, Settings
from nearcast.engine.spark.data_source import NearcastReader
from nearcast.sources import registry, world_source
from nearcast.sources.file_log import FileLog
from nearcast.sources.world_source import WorldSource
from nearcast.storage.checkpoint import batch_offset, empty_offset, position
from nearcast.storage.directory import StateDirectory
from tests.sources.conformance import MemoryFeed, rows_of

Offset = dict[str, Any]
WORLD = WorldSource(world_source.World()).name


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    directory = StateDirectory(tmp_path / "state")
    directory.create({})
    return directory


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryFeed:
    """A source of another package, `memory:`, with nothing in it."""
    feed = MemoryFeed()
    monkeypatch.setitem(registry.schemes(), "memory", Scheme("memory", lambda rest, context: feed.open()))
    return feed


def reader_of(
    state: StateDirectory, posts: tuple[str, ...] = (), ops: tuple[str, ...] = (), **more: Any
) -> NearcastReader:
    return NearcastReader(str(state.root), Settings(), Inputs(posts, ops, **more))


def following(reader: NearcastReader, offset: Offset) -> Offset:
    """The next offset, as it comes back from a checkpoint."""
    return json.loads(json.dumps(reader.latestOffset(offset, ReadAllAvailable())))


def ids(reader: NearcastReader, start: Offset, end: Offset) -> list[int]:
    cuts = [part.value for part in pickle.loads(pickle.dumps(list(reader.partitions(start, end))))]
    assert [cut["order"] for cut in cuts] == list(range(len(cuts)))
    return [id_ for cut in cuts for raw in cut["split"].read() for id_ in raw.table["id"].to_pylist()]


def op_file(folder: Path, *ids_: int) -> str:
    path = folder / "ops.jsonl"
    path.write_text("".join(json.dumps({"op": "unsubscribe", "id": id_}) + "\n" for id_ in ids_))
    return str(path)


def test_ops_come_before_posts_and_the_inbox_is_among_them(
    state: StateDirectory, tmp_path: Path, memory: MemoryFeed
) -> None:
    right = memory.grow(5)
    state.add_to_inbox({"op": "unsubscribe", "id": 77})
    reader = reader_of(state, ("memory:",), (op_file(tmp_path, 1, 2),), batch_posts=3)
    offsets = [reader.initialOffset()]
    while (end := following(reader, offsets[-1])) != offsets[-1]:
        offsets.append(end)
    batches = [ids(reader, a, b) for a, b in pairwise(offsets)]
    assert batches == [[1, 2, 77], right[:3], right[3:]]
    assert offsets[0] == empty_offset()


def test_ops_of_any_source_can_be_read_beside_the_inbox(state: StateDirectory, memory: MemoryFeed) -> None:
    memory.grow(4)
    state.add_to_inbox({"op": "unsubscribe", "id": 77})
    reader = reader_of(state, ops=("memory:",))
    first = following(reader, reader.initialOffset())
    second = following(reader, first)
    assert ids(reader, reader.initialOffset(), first) == [77]
    assert ids(reader, first, second) == [0, 1, 2, 3]
    assert following(reader, second) == second


def test_a_drained_stream_ends_with_what_was_there_when_it_began(state: StateDirectory, memory: MemoryFeed) -> None:
    memory.grow(4)
    reader = reader_of(state, ("memory:",))
    reader.prepareForTriggerAvailableNow()
    memory.grow(4)
    end = following(reader, reader.initialOffset())
    assert position(end, "posts", "memory:") == 4 and following(reader, end) == end


def test_a_world_smaller_than_what_was_read_of_it_gives_nothing(state: StateDirectory) -> None:
    reader = reader_of(state, ("world:count=100",))
    reader.prepareForTriggerAvailableNow()
    end = following(reader, reader.initialOffset())
    assert position(end, "posts", WORLD) == 100
    smaller = reader_of(state, ("world:count=50",))
    smaller.prepareForTriggerAvailableNow()
    assert following(smaller, end) == end


def test_a_run_with_other_sources_remembers_how_far_the_first_were_read(
    state: StateDirectory, tmp_path: Path, memory: MemoryFeed
) -> None:
    memory.grow(6)
    first = following(reader_of(state, ("memory:",)), empty_offset())
    pq.write_table(rows_of([90, 91]), tmp_path / "posts.parquet")
    files = reader_of(state, (str(tmp_path / "posts.parquet"),))
    second = following(files, first)
    assert ids(files, first, second) == [90, 91]
    memory.grow(1)
    again = reader_of(state, ("memory:",))
    assert ids(again, second, following(again, second)) == [6]


def test_a_batch_that_a_crash_left_is_read_by_a_run_with_other_sources(
    state: StateDirectory, memory: MemoryFeed
) -> None:
    right = memory.grow(6)
    pending = following(reader_of(state, ("memory:",)), empty_offset())
    assert ids(reader_of(state), empty_offset(), pending) == right


def test_a_source_that_was_replaced_is_refused(state: StateDirectory, tmp_path: Path) -> None:
    reader = reader_of(state, ops=(op_file(tmp_path, 1),))
    end = following(reader, reader.initialOffset())
    (state.source / "ops.jsonl").unlink()
    with pytest.raises(BadInput, match="counts positions in another files: than there is now"):
        following(reader_of(state, ops=(op_file(tmp_path, 1),)), end)


def test_the_clock_of_a_generator_starts_after_the_first_ops(
    state: StateDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(world_source.time, "monotonic", lambda: now[0])
    reader = reader_of(state, ("world:rate=10",), (op_file(tmp_path, 1),))
    after_ops = following(reader, reader.initialOffset())
    assert position(after_ops, "posts", WORLD) is None
    now[0] = 130.0
    assert position(following(reader, after_ops), "posts", WORLD) == 10
    now[0] = 132.0
    assert position(following(reader, after_ops), "posts", WORLD) == 30


def test_what_travels_to_a_task_has_no_open_source(state: StateDirectory, memory: MemoryFeed) -> None:
    memory.grow(3)
    reader = reader_of(state, ("memory:",))
    following(reader, reader.initialOffset())
    assert "sources" in vars(reader) and "sources" not in vars(pickle.loads(pickle.dumps(reader)))
    reader.stop()


# -- checkpoints of version 0.1 ----------------------------------------------------------------------------------------


def old_offset(state: StateDirectory, ops: int, posts: int) -> Offset:
    logs = {f"{role}_log": FileLog(state.source, role).uuid for role in ("ops", "posts")}
    return {"ops": ops, "posts": posts, **logs}


def test_an_old_checkpoint_of_files_goes_on(state: StateDirectory, tmp_path: Path) -> None:
    pq.write_table(rows_of(range(10)), tmp_path / "posts.parquet")
    reader = reader_of(state, (str(tmp_path / "posts.parquet"),))
    start = old_offset(state, 0, 4)
    end = following(reader, start)
    assert ids(reader, start, end) == [4, 5, 6, 7, 8, 9]
    done = old_offset(state, 0, 10)
    assert following(reader, done) == done, "nothing new: no batch for the new form alone"


def test_an_old_checkpoint_of_a_world_goes_on(state: StateDirectory) -> None:
    reader = reader_of(state, ("world:rate=max,count=20",))
    start = old_offset(state, 0, 15)
    end = following(reader, start)
    assert ids(reader, start, end) == [15, 16, 17, 18, 19]


def test_a_checkpoint_of_a_later_version_is_refused_in_one_line(state: StateDirectory) -> None:
    with pytest.raises(BadInput, match=r"offsets of version 3, and this program reads version 2$"):
        following(reader_of(state), {"version": 3, "ops": {}, "posts": {}})


def test_our_offset_is_found_among_those_of_other_sources(state: StateDirectory) -> None:
    (state.checkpoint / "offsets").mkdir(parents=True)
    ours = {"version": 2, "ops": {"files:": {"of": "u", "at": 12}}, "posts": {}}
    topics = {"ops": {"0": 3}, "posts": {"0": 4}}  # as Kafka's would be
    lines = ["v1", '{"batchTimestampMs": 5}', "-", "not JSON", json.dumps(topics), json.dumps(ours)]
    (state.checkpoint / "offsets" / "3").write_text("\n".join(lines))
    assert batch_offset(state, 3) == ours and position(ours, "ops", "files:") == 12
    assert batch_offset(state, 4) is None and position(None, "ops", "files:") is None
