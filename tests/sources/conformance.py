"""What every source is held to: each record once and in order, however the stream is cut, stopped and read again.

A suite for a source inherits `SourceSuite` and says, by a `Feed`, how such a source comes by records. What is right is
what `MemorySource` does, the simplest source there is.
"""

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearcast.sources.op_records import ops_of
from nearcast.sources.protocol import OPS, POSTS, Position, Source, SourceContext
from nearcast.sources.raw import Raw
from nearcast.sources.records import posts_of
from nearcast.sources.registry import open_source

ALL = 1 << 40  # rows

# Each suite runs the inherited tests on an object of its own, which is what Hypothesis would warn of.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])


class Feed(Protocol):
    """What a source reads from, as its users see it."""

    context: SourceContext

    def open(self) -> Source:
        """The source, as a new process opens it."""

    def grow(self, count: int) -> list[int]:
        """Let it have `count` records more; their ids, in order."""


# -- the simplest source -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MemorySplit:
    ids: tuple[int, ...]

    def read(self) -> Iterator[Raw]:
        yield Raw.of(rows_of(self.ids))


class MemorySource(Source):
    """Ids in a list; a position is how many lie behind."""

    name = "memory:"

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def identity(self) -> str:
        return "the list"

    def beginning(self) -> int:
        return 0

    def limit(self, start: int, drain: bool = False) -> int:
        return len(self.ids)

    def advance(self, start: int, limit: int, rows: int) -> int:
        return max(start, min(limit, start + rows))

    def splits(self, start: int, stop: int, parts: int) -> list[MemorySplit]:
        edges = [start + (stop - start) * i // parts for i in range(parts + 1)]
        return [MemorySplit(tuple(self.ids[a:b])) for a, b in pairwise(edges) if a < b]


def rows_of(ids: Sequence[int]) -> pa.Table:
    """Rows that are good posts and good ops, each with its id."""
    count = len(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()), "ts": pa.array([0] * count, pa.int64()), "op": ["unsubscribe"] * count,
            "lat": [1.0] * count, "lon": [2.0] * count, "body": [f"text {id_}, 🌊\n" for id_ in ids],
        }
    )  # fmt: skip


# -- reading -----------------------------------------------------------------------------------------------------------


def read(source: Source, start: Position, stop: Position, parts: int = 1, role: str = POSTS) -> list[int]:
    """The ids between two positions, by splits that have travelled."""
    ids: list[int] = []
    for split in pickle.loads(pickle.dumps(list(source.splits(start, stop, parts)))):
        tables = [ops_of(split.read())] if role == OPS else list(posts_of(split.read()))
        for records, rejects in tables:
            assert not len(rejects), rejects.to_pylist()
            ids += records["id"].to_pylist()
    return ids


def stored(position: Position) -> Position:
    """A position as a checkpoint gives it back."""
    return json.loads(json.dumps(position))


class Reading:
    """Reads a source batch by batch, as the engine does: positions are stored, sources opened anew."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.source = feed.open()
        self.positions = [stored(self.source.beginning())]
        self.batches: list[list[int]] = []

    def reopen(self) -> None:
        self.source.close()
        self.source = self.feed.open()

    def batch(self, rows: int, parts: int = 1, drain: bool = False) -> bool:
        """One batch of about so many rows; whether there was anything to read."""
        start = self.positions[-1]
        stop = stored(self.source.advance(start, self.source.limit(start, drain), rows))
        if stop == start:
            return False
        self.batches.append(read(self.source, start, stop, parts, self.feed.context.role))
        self.positions.append(stop)
        return True

    def drain(self, rows: int = ALL) -> list[int]:
        """Read all that is left; everything that was read from the beginning on."""
        while self.batch(rows, drain=True):
            pass
        return [id_ for batch in self.batches for id_ in batch]


actions = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(0, 40)),
        st.tuples(st.just("read"), st.integers(1, 60), st.integers(1, 5)),
        st.tuples(st.just("reopen")),
    ),
    max_size=12,
)


def act(reading: Reading, action: tuple[Any, ...]) -> list[int]:
    """Do an action; the ids that it added."""
    what, *how = action
    if what == "grow":
        return reading.feed.grow(*how)
    if what == "read":
        reading.batch(*how)
    else:
        reading.reopen()
    return []


# -- the suite ---------------------------------------------------------------------------------------------------------


class SourceSuite:
    """Inherit it, and give `feed`: something new to read, in an empty folder."""

    def feed(self, folder: Path) -> Feed:
        raise NotImplementedError

    def fresh(self, tmp_path_factory: Any) -> Feed:
        return self.feed(tmp_path_factory.mktemp("feed"))

    def test_nothing_is_read_where_nothing_is(self, tmp_path: Path) -> None:
        source = self.feed(tmp_path).open()
        start = source.beginning()
        assert source.advance(start, source.limit(start), ALL) == start
        assert list(source.splits(start, start, 3)) == []
        assert source.rows(start, start) in (None, 0)

    @inherited
    @given(actions=actions)
    def test_every_record_is_read_once_and_in_order_however_the_stream_is_cut(
        self, tmp_path_factory: Any, actions: list[tuple[Any, ...]]
    ) -> None:
        reading = Reading(self.fresh(tmp_path_factory))
        right: list[int] = []
        for action in actions:
            right += act(reading, action)
        reading.reopen()
        assert reading.drain() == Reading(MemoryFeed(right)).drain() == right

    @inherited
    @given(actions=actions, parts=st.integers(1, 5))
    def test_a_batch_read_again_is_the_same_after_all_that_has_happened(
        self, tmp_path_factory: Any, actions: list[tuple[Any, ...]], parts: int
    ) -> None:
        reading = Reading(self.fresh(tmp_path_factory))
        for action in actions:
            act(reading, action)
        reading.reopen()
        role = reading.feed.context.role
        for (start, stop), batch in zip(pairwise(reading.positions), reading.batches, strict=True):
            assert read(reading.source, start, stop, parts, role) == batch
        whole = read(reading.source, reading.positions[0], reading.positions[-1], parts, role)
        assert whole == [id_ for batch in reading.batches for id_ in batch]

    @inherited
    @given(actions=actions, rows=st.integers(1, 100))
    def test_positions_only_grow(self, tmp_path_factory: Any, actions: list[tuple[Any, ...]], rows: int) -> None:
        reading = Reading(self.fresh(tmp_path_factory))
        for action in actions:
            act(reading, action)
        source, positions = reading.source, reading.positions
        for early, late in ((a, b) for n, a in enumerate(positions) for b in positions[n + 1 :]):
            assert early != late
            assert source.advance(late, early, rows) == late, "not behind where it stands"
            assert source.advance(early, late, ALL) == late, "as far as the limit"
            assert source.advance(early, late, 1) != early, "but further, where there is more"

    def test_a_stream_read_row_by_row_comes_to_its_end(self, tmp_path: Path) -> None:
        feed = self.feed(tmp_path)
        right = feed.grow(7) + feed.grow(6)
        reading = Reading(feed)
        assert reading.drain(rows=1) == right
        assert len(reading.batches) <= len(right)

    def test_what_it_is_called_and_what_it_counts_stay_the_same(self, tmp_path: Path) -> None:
        feed = self.feed(tmp_path)
        before = feed.open()
        known = (before.name, before.identity())
        feed.grow(5)
        after = feed.open()
        assert (after.name, after.identity()) == known

    def test_its_name_opens_it_again(self, tmp_path: Path) -> None:
        feed = self.feed(tmp_path)
        right = feed.grow(9)
        reading = Reading(feed)
        assert reading.drain() == right
        again = open_source(reading.source.name, feed.context)
        assert (again.name, again.identity()) == (reading.source.name, reading.source.identity())
        assert read(again, reading.positions[0], reading.positions[-1], 2, feed.context.role) == right

    def test_its_rows_are_counted_about_right(self, tmp_path: Path) -> None:
        feed = self.feed(tmp_path)
        feed.grow(300)
        reading = Reading(feed)
        reading.drain()
        rows = reading.source.rows(reading.positions[0], reading.positions[-1])
        assert rows is None or 30 < rows < 3000

    def test_its_heads_are_its_first_records(self, tmp_path: Path) -> None:
        feed = self.feed(tmp_path)
        assert len(feed.open().heads()) <= 1
        right = feed.grow(20)
        heads = [list(posts_of(head)) for head in feed.open().heads()] if feed.context.role == POSTS else None
        if heads is not None:
            ids = [id_ for head in heads for posts, _ in head for id_ in posts["id"].to_pylist()]
            assert ids[:20] == right

    def test_it_says_nothing_where_nothing_is_odd(self, tmp_path: Path) -> None:
        feed = self.feed(tmp_path)
        feed.grow(3)
        assert feed.open().advice() is None


class MemoryFeed:
    """Ids that are added to a list."""

    context = SourceContext()

    def __init__(self, ids: list[int] | None = None) -> None:
        self.ids = [] if ids is None else list(ids)

    def open(self) -> Source:
        return MemorySource(self.ids)

    def grow(self, count: int) -> list[int]:
        new = list(range(len(self.ids), len(self.ids) + count))
        self.ids += new
        return new
