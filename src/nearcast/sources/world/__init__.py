"""A world that can be computed: posts, bursts and subscriptions as pure functions of a seed.

The map (cities, districts, towns) and the vocabulary are the same in every world; the seed decides what is posted, and
where and when something happens. Any process can produce any slice of the stream, so the generator needs no state, and
a stream replayed after a crash is the same stream. Nothing here imports Spark.

`World` is the stream; `query_sets` holds the papers' bulk query sets.
"""

from nearcast.sources.world.bursts import Burst
from nearcast.sources.world.post_generator import SCHEMA
from nearcast.sources.world.stream import World

__all__ = ["SCHEMA", "Burst", "World"]
