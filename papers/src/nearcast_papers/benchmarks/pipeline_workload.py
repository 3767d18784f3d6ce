"""The workload of `bench pipeline`: posts in Parquet files and subscriptions of one word, about one match a post."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearcast.common.text.tokenizer import Tokenizer
from nearcast.sources.world import World
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.subscription_segment import Segment
from nearcast_papers.benchmarks.bulk_queries import rows_of, term_counts, write_parquet
from nearcast_papers.benchmarks.figures import Progress
from nearcast_papers.query_sets import PostSample, sstd

A_FILE = 200_000  # posts
LEAST, MOST = 0.9, 1.1  # matches a post in the sample, so that all posts lie within 0.8-1.2
SLICES, SLICE = 8, 2_500  # of posts, spread over the stream, with which sides are chosen
SIDE = (3.6, 1.8)  # degrees, of 0.01% of the world (SSTD §7.1)


@dataclass(frozen=True)
class PipelineWorkload:
    """Where its files are, how its sides were scaled, and how many matches a post the sample had."""

    posts: Path
    ops: Path
    for_joins: Path
    count: int
    side_scale: float
    sampled_matches_a_post: float

    @property
    def side(self) -> tuple[float, float]:
        """Width and height of every region, in degrees."""
        return SIDE[0] * self.side_scale, SIDE[1] * self.side_scale


def make_workload(
    progress: Progress, folder: Path, world: World, posts: int, subscriptions: int, joined: int
) -> PipelineWorkload:
    """Write the files, those of the joins with the first `joined` posts only."""
    progress("choosing the sides of the subscriptions")
    sample, near = PostSample.of(world), slices(world, posts)
    scale, matches, queries = calibrated(sample, near, subscriptions, world.seed)
    progress(f"sides scaled by {scale:.4f}: {matches:.2f} matches a post")
    ops = folder / "ops" / "subscriptions.parquet"
    write_parquet(ops, queries)
    terms, _ = Tokenizer().terms(queries["text"])
    for_joins = folder / "joins"
    write_parquet(for_joins / "subscriptions" / "all.parquet", query_terms(queries, terms))
    for first in range(0, posts, A_FILE):
        table = world.posts(first, min(A_FILE, posts - first))
        write_parquet(folder / "posts" / f"{first:012d}.parquet", table)
        if first < joined:
            write_parquet(for_joins / "posts" / f"{first:012d}.parquet", post_terms(table.slice(0, joined - first)))
        progress(f"wrote {min(first + A_FILE, posts):,} of {posts:,} posts")
    return PipelineWorkload(folder / "posts", ops, for_joins, posts, scale, matches)


def slices(world: World, posts: int) -> pa.Table:
    """A sample over the whole length of the stream."""
    each = max(1, min(SLICE, posts // SLICES))
    return pa.concat_tables([world.posts(posts * i // SLICES, each) for i in range(SLICES)])


def calibrated(sample: PostSample, posts: pa.Table, count: int, seed: int) -> tuple[float, float, pa.Table]:
    """(scale, matches a post, queries): the scale at which a post has about one match, by trying."""
    terms, offsets = Tokenizer().terms(posts["text"])
    columns = PostColumns(
        posts["lon"].to_numpy(), posts["lat"].to_numpy(), np.zeros(len(posts), np.int64), terms, offsets
    )
    frequencies = term_counts(posts["text"])
    low, high, scale = 0.0, 0.0, 0.05
    for _ in range(30):
        queries = of_one_word(sample, count, seed, scale)
        found = Segment.build(rows_of(queries, frequencies), PYRAMID).match(columns)
        matches = len(found.posts) / len(posts)
        if LEAST <= matches <= MOST:
            break
        low, high = (scale, high) if matches < LEAST else (low, scale)
        scale = (low + high) / 2 if high else scale * 2
    return scale, matches, queries


def of_one_word(sample: PostSample, count: int, seed: int, side_scale: float) -> pa.Table:
    """SSTD's queries whose word is one term to the tokeniser, too: a join on equal words can find those."""
    parts: list[pa.Table] = []
    first = 0
    while sum(map(len, parts)) < count:
        table = sstd(sample, count, seed, first, side_scale=side_scale)
        _, offsets = Tokenizer().terms(table["text"])
        parts.append(table.filter(pa.array(np.diff(offsets) == 1)))
        first += count
    return pa.concat_tables(parts).slice(0, count).combine_chunks()


def post_terms(posts: pa.Table) -> pa.Table:
    """What the joins read of posts."""
    terms, offsets = Tokenizer().terms(posts["text"])
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms.view(np.int64)))
    return pa.table({"id": posts["id"], "lon": posts["lon"], "lat": posts["lat"], "terms": lists})


def query_terms(queries: pa.Table, terms: np.ndarray) -> pa.Table:
    """What the joins read of subscriptions."""
    boxes = {name: queries[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat")}
    return pa.table({"id": queries["id"], **boxes, "term": pa.array(terms.view(np.int64))})
