"""The generator as a source: the suite, its specs, and its clock."""

from pathlib import Path

import pytest

from nearcast.common.errors import BadInput
from nearcast.sources import world_source
from nearcast.sources.protocol import OPS, Source, SourceContext
from nearcast.sources.registry import open_source
from nearcast.sources.world import World
from nearcast.sources.world_source import ENDLESS, WorldSource, parse_world, world_spec
from tests.sources.conformance import Feed, SourceSuite

SECOND = 1_000_000


class WorldFeed:
    """A world whose count grows."""

    context = SourceContext()

    def __init__(self) -> None:
        self.count = 0
        self.opened: list[WorldSource] = []

    def open(self) -> Source:
        self.opened.append(WorldSource(World(seed=5, vocabulary=20_000), None, self.count))
        return self.opened[-1]

    def grow(self, count: int) -> list[int]:
        first, self.count = self.count, self.count + count
        for source in self.opened:
            source.count = self.count
        return list(range(first, self.count))


class TestWorldSource(SourceSuite):
    def feed(self, folder: Path) -> Feed:
        return WorldFeed()


def test_a_world_has_seed_rate_and_count() -> None:
    assert parse_world("") == (World(), 2000.0, None)
    assert parse_world("seed=7,rate=500,count=1000") == (World(seed=7, rate=500.0), 500.0, 1000)
    assert parse_world("rate=max,start=1970-01-01T00:00:01Z") == (World(start=SECOND), None, None)
    assert parse_world("rate=500,pace=10") == (World(rate=500.0), 10.0, None)


def test_a_world_and_its_spec_mean_the_same() -> None:
    world = World(seed=3, start=1_700_000_000_000_001, rate=0.1 + 0.2, vocabulary=30_000)
    assert parse_world(world_spec(world).removeprefix("world:")) == (world, world.rate, None)
    assert parse_world(world_spec(world, 7.5).removeprefix("world:")) == (world, 7.5, None)


@pytest.mark.parametrize(
    "text", ["size=3", "seed=x", "count=1.5", "rate=fast", "seed", "count=-1", "rate=0", "vocabulary=3"]
)
def test_what_no_world_has_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="world"):
        open_source(f"world:{text}", SourceContext())


def test_an_endless_world_cannot_be_drained_and_makes_no_queries() -> None:
    with pytest.raises(BadInput, match="give it a count"):
        open_source("world", SourceContext(drain=True))
    with pytest.raises(BadInput, match="give it to --posts"):
        open_source("world", SourceContext(OPS))


def test_its_clock_starts_with_the_posts_of_a_second_when_it_is_first_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(world_source.time, "monotonic", lambda: now[0])
    source = WorldSource(World(), rate=10.0, count=1000)
    assert source.limit(500) == 510
    now[0] = 102.0
    assert source.limit(510) == 530
    assert source.limit(510, drain=True) == 1000
    now[0] = 1e6
    assert source.limit(530) == 1000
    assert WorldSource(World()).limit(0) == ENDLESS


def test_worlds_of_another_seed_are_other_sources_and_of_another_rate_the_same() -> None:
    assert WorldSource(World(seed=1)).name != WorldSource(World(seed=2)).name
    assert WorldSource(World(rate=5.0)).name == WorldSource(World(rate=9.0)).name
