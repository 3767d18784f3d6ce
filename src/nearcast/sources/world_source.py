"""The generator as a source: `world:seed=1,rate=2000,count=100000`. A position is a number of posts."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from nearcast.common.errors import BadInput
from nearcast.common.moments import moment_of
from nearcast.sources.protocol import POSTS, SAMPLE, Source, SourceContext
from nearcast.sources.raw import Raw
from nearcast.sources.world import World

PIECE = 65_536  # posts made at a time
ENDLESS = 1 << 60
VERSION = "1"  # of how posts are made
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WorldSplit:
    """The posts [first, stop) of a world."""

    world: World
    first: int
    stop: int

    def read(self) -> Iterator[Raw]:
        for at in range(self.first, self.stop, PIECE):
            yield Raw.of(self.world.posts(at, min(PIECE, self.stop - at)))


class WorldSource(Source):
    """Posts of a world, at `rate` posts a second of wall time (None: as fast as they are read), `count` in all."""

    def __init__(self, world: World, rate: float | None = None, count: int | None = None) -> None:
        self.world = world
        self.rate = rate
        self.count = ENDLESS if count is None else count
        self.clock: tuple[float, int] | None = None  # when it began to count, and where
        self.name = f"world:seed={world.seed},start={_iso(world.start)},vocabulary={world.vocabulary}"

    def identity(self) -> str:
        return VERSION

    def beginning(self) -> int:
        return 0

    def limit(self, start: int, drain: bool = False) -> int:
        """How many posts it should have made by now; it begins with those of a second."""
        if self.rate is None or drain:
            return self.count
        if self.clock is None:
            self.clock = (time.monotonic() - 1.0, start)
        began, base = self.clock
        return min(self.count, base + int((time.monotonic() - began) * self.rate))

    def advance(self, start: int, limit: int, rows: int) -> int:
        return max(start, min(limit, start + max(rows, 1)))

    def splits(self, start: int, stop: int, parts: int) -> list[WorldSplit]:
        edges = [start + (stop - start) * i // parts for i in range(parts + 1)]
        return [WorldSplit(self.world, a, b) for a, b in pairwise(edges) if b > a]

    def rows(self, start: int, stop: int) -> int:
        return max(0, stop - start)

    def heads(self) -> list[Iterator[Raw]]:
        return [WorldSplit(self.world, 0, SAMPLE).read()]


def open_world(text: str, context: SourceContext) -> WorldSource:
    if context.role != POSTS:
        raise BadInput(f"world:{text} makes posts, no queries: give it to --posts")
    source = WorldSource(*parse_world(text))
    if context.drain and source.count == ENDLESS:
        raise BadInput("--until-drained never ends with an endless world: give it a count, world:count=100000")
    return source


def parse_world(text: str) -> tuple[World, float | None, int | None]:
    """(world, posts a second of wall time, how many posts) of 'seed=1,rate=2000,count=100000'.

    `rate` is how many posts a second has, of the world's time and of ours; `pace` is another of ours alone. 'max', of
    either, makes posts as fast as they are taken.
    """
    fields: dict[str, Any] = {}
    paces: dict[str, float | None] = {}
    count: int | None = None
    for part in (part for part in text.split(",") if part.strip()):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            if name in ("rate", "pace"):
                paces[name] = None if value == "max" else float(value)
                fields |= {"rate": paces[name]} if name == "rate" and value != "max" else {}
            elif name == "count":
                count = int(value)
            elif name == "start":
                fields["start"] = moment_of(value, "world:start")
            elif name in ("seed", "vocabulary"):
                fields[name] = int(value)
            else:
                raise BadInput(
                    f"a world has no {name or 'such part'}: give seed, rate, pace, count, start or vocabulary"
                )
        except ValueError:
            raise BadInput(f"world: {name}={value} is no number") from None
    if count is not None and count < 0:
        raise BadInput(f"world: count={count} is less than nothing")
    world = World(**fields)
    return world, paces.get("pace", paces.get("rate", world.rate)), count


def world_spec(world: World, pace: float | None = None) -> str:
    """The spec of an endless world, at its own rate unless another pace is given."""
    spec = f"world:seed={world.seed},start={_iso(world.start)},rate={world.rate!r},vocabulary={world.vocabulary}"
    return spec if pace is None else f"{spec},pace={pace!r}"


def _iso(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")
