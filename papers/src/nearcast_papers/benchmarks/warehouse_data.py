"""PostMaker of `bench warehouse`: those of `search_data`, with the attributes that STAR's queries ask for (STAR §8.1).

The paper derives attributes from place, text and time by tools, and has 50 topics. Here `topic` follows from a post's
first word or from where it is, so it is no more evenly spread than those are; `area` is one of 72 squares of 30
degrees. Half of the posts have a `price`, and `user` has some thousands of values, few of them frequent.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast_papers.benchmarks.search_data import PostMaker

TOPICS = 50
USERS = 5_000
AREA = 30.0  # degrees
REGION = 10.0  # degrees, of places with a topic of their own
A_CHUNK = 50_000  # posts, of a stream


class TaggedPosts(PostMaker):
    """With `copies`, what another database would store of each post is written there, as Parquet."""

    def __init__(self, count: int, vocabulary: int, seed: int, copies: Path | None = None) -> None:
        super().__init__(count, vocabulary, seed)
        self.copies = copies
        if copies is not None:
            copies.mkdir(parents=True)

    def take(self, count: int) -> tuple[pa.Table, np.ndarray]:
        first = self.made
        table, ranks = super().take(count)
        lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
        topic, area = topics(lon, lat, ranks), areas(lon, lat)
        users = (USERS ** self.rng.random(count)).astype(np.int32)
        price = pa.array(np.round(self.rng.lognormal(2.0, 1.0, count), 2), mask=self.rng.random(count) < 0.5)
        for name, column in (
            ("topic:s", topic),
            ("area:s", area),
            ("user:s", named("user", users)),
            ("price:f", price),
        ):
            table = table.append_column(name, column)
        if self.copies is not None:
            words = pa.FixedSizeListArray.from_arrays(pa.array(ranks.reshape(-1)), ranks.shape[1])
            kept = {name: table[name] for name in ("ts", "lon", "lat")} | {"topic": topic, "area": area, "words": words}
            pq.write_table(pa.table(kept), self.copies / f"{first:012d}.parquet", compression="lz4")
        return table, ranks


def stream(posts: int, vocabulary: int, seed: int, rate: float) -> list[pa.Table]:
    """PostMaker as a source gives them, `rate` of them in a second of stream time."""
    source, tables = TaggedPosts(posts, vocabulary, seed), []
    for first in range(0, posts, A_CHUNK):
        table, _ = source.take(min(A_CHUNK, posts - first))
        numbers = table["id"].to_numpy()
        ts = pa.array(STREAM_START + (numbers * (1e6 / rate)).astype(np.int64))
        table = table.set_column(table.schema.get_field_index("ts"), "ts", ts)
        tables.append(table.drop_columns(["leaf", "terms"]))
    return tables


STREAM_START = 1_700_000_040_000_000  # a full minute


def topics(lon: np.ndarray, lat: np.ndarray, ranks: np.ndarray) -> pa.StringArray:
    """Of a post's first word, or of where it is, as its second word decides."""
    here = np.floor(lon / REGION) * 7 + np.floor(lat / REGION) * 13
    return named("topic", np.where(ranks[:, 1] % 2 == 0, ranks[:, 0], here.astype(np.int64)) % TOPICS)


def areas(lon: np.ndarray, lat: np.ndarray) -> pa.StringArray:
    across, up = (np.clip(np.floor(each / AREA), -6, 5).astype(np.int64) + 6 for each in (lon, lat))
    return named("area", across * 6 + up - 3)


def named(what: str, numbers: np.ndarray) -> pa.StringArray:
    """`topic7` and so on."""
    known, which = np.unique(numbers, return_inverse=True)
    names = pa.array([f"{what}{number}" for number in known.tolist()], pa.string())
    return names.take(pa.array(which.reshape(-1)))
