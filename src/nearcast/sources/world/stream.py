"""`World`: a stream of posts, what happens in it, and who would like to know."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.sources.world import post_generator
from nearcast.sources.world.bursts import Burst, bursts_between
from nearcast.sources.world.subscriptions import subscriptions
from nearcast.sources.world.world_vocabulary import SMALLEST

DEFAULT_START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


@dataclass(frozen=True)
class World:
    """A seeded stream of posts that looks like the world.

    Everything it returns is a pure function of these fields and the arguments. `start` is in microseconds, `rate` in
    posts per second of stream time, the same day and night over the whole earth; `vocabulary` is the number of
    distinct words, real and invented.
    """

    seed: int = 1
    start: int = DEFAULT_START
    rate: float = 2000.0
    vocabulary: int = 50_000

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise BadInput(f"the seed of a world must be 0 or more, not {self.seed}")
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise BadInput(f"the rate of a world must be a number of posts per second above 0, not {self.rate}")
        if self.vocabulary < SMALLEST:
            raise BadInput(f"the vocabulary of a world must have at least {SMALLEST} words, not {self.vocabulary}")

    def posts(self, first: int, count: int) -> pa.Table:
        """The posts with the ids [first, first + count), in order of time; columns as in `post_generator.SCHEMA`."""
        if first < 0 or count < 0:
            raise BadInput(f"posts are counted from 0: cannot make {count} posts from number {first} on")
        tables = [post_generator.SCHEMA.empty_table()]
        for number in range(first // post_generator.BLOCK, -(-(first + count) // post_generator.BLOCK) if count else 0):
            base = number * post_generator.BLOCK
            begin, end = max(first, base), min(first + count, base + post_generator.BLOCK)
            block = post_generator.block(self.seed, self.start, float(self.rate), self.vocabulary, number)
            tables.append(block.slice(begin - base, end - begin))
        return pa.concat_tables(tables)

    def time_of(self, index: int) -> int:
        """About when a post is written, in microseconds: within the time that one block of posts takes."""
        return self.start + int(index / self.rate * 1e6)

    def bursts(self, begin: int | None = None, end: int | None = None) -> list[Burst]:
        """The bursts that draw posts at some time in [begin, end); the first hour, unless told."""
        begin = self.start if begin is None else begin
        end = begin + 3_600_000_000 if end is None else end
        return bursts_between(self.seed, self.start, begin, end)

    def subscriptions(self, count: int) -> list[tuple[str, str]]:
        """`count` subscriptions (id, SQL) that a person could have written; the first ones catch the first bursts."""
        return subscriptions(self.seed, self.bursts(), count)
