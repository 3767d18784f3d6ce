"""What a source of posts or of ops promises, so that a stream can be cut anywhere, crash, and go on.

- Its records have an order, and a *position* says how many of them lie behind: a number, or any other JSON value.
  Positions only grow, and a position means the same for ever, to another process and after years.
- What lies between two positions never changes: read again, it gives the same records in the same order. However a
  stream is cut into batches, and a batch into splits, every record is read once.
- A source that cannot give again what it gave (a file was replaced) says so with `BadInput`; it gives nothing else.

Who drives it, `engine.spark.data_source`, knows nothing more of a source than this, and stores its positions.
`tests/sources/conformance.py` holds every source to it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from nearcast.sources.raw import Raw

POSTS, OPS = "posts", "ops"  # the roles of a source
SAMPLE = 20_000  # rows of a head

Position: TypeAlias = Any  # whatever JSON has


@dataclass(frozen=True)
class SourceContext:
    """What a source may want to know of the run that opens it.

    `role` is what it is read for, "posts" or "ops"; `state` the state's directory, None where only `heads` are wanted;
    `mapping` the names that the fields of a post have in the source; `drain` says that the run ends when all is read.
    """

    role: str = POSTS
    state: Path | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    drain: bool = False


class Split(Protocol):
    """A part of a batch that one task reads. It is pickled on its way there, so it is a value, without open files."""

    def read(self) -> Iterator[Raw]:
        """Its rows in order, in pieces that fit into memory; each time the same."""


class Source(Protocol):
    """A stream of rows. `name` is a spec by which the registry opens it again; it is the same in each run."""

    name: str

    def identity(self) -> str:
        """Of what its positions count: a log of files, a topic. A state that has positions of the same name, but of
        another identity, refuses the source; it would read wrong records.
        """

    def beginning(self) -> Position:
        """The position before the first record."""

    def limit(self, start: Position, drain: bool = False) -> Position:
        """How far it can be read now, by who stands at `start`.

        What is not whole yet (a file that somebody writes) waits. With `drain` there is no later: a file that cannot
        be read is an error, and a source that makes records by the clock has all of them at once.
        """

    def advance(self, start: Position, limit: Position, rows: int) -> Position:
        """The position about `rows` rows after `start`, at most `limit`; beyond `start` if `limit` is, else `start`."""

    def splits(self, start: Position, stop: Position, parts: int) -> Sequence[Split]:
        """What lies between two positions as about `parts` splits of equal work, in order."""

    def rows(self, start: Position, stop: Position) -> int | None:
        """About how many rows lie between two positions, for the backlog; None where that cannot be said."""
        return None

    def heads(self) -> Sequence[Iterable[Raw]]:
        """The first rows of its parts, a few thousand of each: what routers are built from."""
        start = self.beginning()
        stop = self.advance(start, self.limit(start), SAMPLE)
        return [split.read() for split in self.splits(start, stop, 1)] if stop != start else []

    def advice(self) -> str | None:
        """A line for the user before the stream starts, where something about the source looks odd."""
        return None

    def close(self) -> None:
        """The stream has ended."""
        return None
