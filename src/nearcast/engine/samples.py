"""Samples that routers are built from: of the posts and ops to come, or of what a state holds."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import chunk
from nearcast.common.geo.shapes import Region
from nearcast.common.kinds import codes
from nearcast.common.op_schema import BEGINNING, NEVER, SUBSCRIBE
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.engine.noted_searches import asked_by, joined, no_queries, open_searches
from nearcast.engine.op_encoding import encode_ops, file_ops
from nearcast.engine.settings import Inputs
from nearcast.partitioning.router_sample import CKQ, CRQ, Queries, RouterSample, SampledPosts
from nearcast.sources.op_records import normalise_ops
from nearcast.sources.protocol import OPS, SAMPLE, SourceContext
from nearcast.sources.records import posts_of
from nearcast.sources.registry import open_sources
from nearcast.storage.manifest import POSTS, SUBSCRIPTIONS
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.subscriptions.rows import Rows, take_lists
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends

MOST = 200_000  # posts, and queries
MOST_PARSED = 2_000  # queries given as SQL, at a millisecond each


def post_sample(posts: pa.Table | None, tokenizer: Tokenizer) -> SampledPosts:
    """Normalised posts as columns; at most so many, evenly spread."""
    if posts is None or not len(posts):
        nothing = np.empty(0)
        return SampledPosts(nothing, nothing, np.empty(0, np.int64), np.empty(0, np.uint64), np.zeros(1, np.int64))
    posts = posts.take(pa.array(spread_out(len(posts), MOST))) if len(posts) > MOST else posts
    lon, lat, ts = (chunk(posts[name]).to_numpy() for name in ("lon", "lat", "ts"))
    return SampledPosts(lon, lat, ts, *tokenizer.terms(posts["text"]))


def op_sample(
    raw: pa.Table | None,
    tokenizer: Tokenizer,
    frequencies: tuple[np.ndarray, np.ndarray],
    regions: Mapping[str, Region] | None = None,
) -> Queries:
    """The subscriptions and the searches among raw ops, but for subscriptions to the most relevant, which no router
    places.
    """
    if raw is None or not len(raw):
        return no_queries()
    raw = raw.filter(pc.is_in(raw["op"], pa.array(["subscribe", "search"])))
    parsed = np.flatnonzero(pc.is_valid(raw["sql"]).to_numpy())
    if len(parsed) > MOST_PARSED:
        kept = np.ones(len(raw), np.bool_)
        kept[parsed] = False
        kept[parsed[spread_out(len(parsed), MOST_PARSED)]] = True
        raw = raw.filter(pa.array(kept))
    ops, _ = encode_ops(raw, tokenizer, regions)
    elsewhere = np.isin(ops["asks"].to_numpy(), codes("distributed")) & (ops["op"].to_numpy() == SUBSCRIBE)
    ops = ops.filter(pa.array(~elsewhere)) if elsewhere.any() else ops
    return asked_by(file_ops(ops, frequencies))


def sampled_posts(inputs: Inputs) -> pa.Table | None:
    """The first posts to come, of each part of their source: for the router's extent and first term frequencies."""
    parts = []
    for source in open_sources(inputs.posts, SourceContext(mapping=inputs.mapping)):
        for head in source.heads():
            posts, _ = next(posts_of(head, inputs.mapping), (None, None))
            if posts is not None and len(posts):
                parts.append(posts.slice(0, SAMPLE))
    return pa.concat_tables(parts, promote_options="default").combine_chunks() if parts else None


def sampled_ops(inputs: Inputs) -> pa.Table | None:
    """The first raw ops to come, of each part of their source."""
    parts = []
    for source in open_sources(inputs.ops, SourceContext(OPS)):
        heads = source.heads()
        for head in heads:
            share, count = -(-MOST // len(heads)), 0
            for raw in head:
                ops, _ = normalise_ops(raw)
                parts.append(ops.slice(0, share - count))
                count += len(parts[-1])
                if count >= share:
                    break
    return pa.concat_tables(parts, promote_options="permissive") if parts else None


def own_sample(plan: BatchPlan) -> RouterSample:
    """Of a state: its newest posts, the subscriptions that stand, and the searches that were asked of late."""
    return RouterSample(own_posts(plan), joined([own_queries(plan), open_searches(plan)[0]]))


def own_posts(plan: BatchPlan) -> SampledPosts:
    parts, left = [], MOST
    for ref in sorted(plan.manifest.of(POSTS), key=lambda ref: -ref.max_ts):
        segment = PostSegment(plan.state.path(ref.name))
        parts.append(segment.columns(spread_out(len(segment), left)))
        left -= len(parts[-1])
        if left <= 0:
            break
    if not parts:
        return post_sample(None, plan.tokenizer)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]))])
    lon, lat, ts, terms = (np.concatenate([getattr(part, n) for part in parts]) for n in ("lon", "lat", "ts", "terms"))
    return SampledPosts(lon, lat, ts, terms, offsets.astype(np.int64))


def own_queries(plan: BatchPlan) -> Queries:
    segments = open_segments(
        plan, [ref.name for ref in plan.manifest.of(SUBSCRIPTIONS) if ref.asks not in codes("distributed")]
    )
    ends = standing_ends(segments, read_logs(plan.state, plan.manifest))
    first = NEVER if plan.manifest.first_post is None else plan.manifest.first_post
    clock = BEGINNING if plan.manifest.clock is None else plan.manifest.clock
    parts = []
    for name, segment in segments.items():
        stop = ends[name].applied(segment.rows, np.arange(len(segment)), first)
        parts.append(segment.rows.take(np.flatnonzero(stop > clock)))
    if not parts:
        return no_queries()
    rows = Rows.concat(parts)
    return queries_of(rows.take(spread_out(len(rows), MOST)) if len(rows) > MOST else rows)


def queries_of(rows: Rows) -> Queries:
    """Subscriptions as routers see them."""
    bounded = (rows.start != BEGINNING) & (rows.end != NEVER)
    life = np.where(bounded, rows.end - np.where(bounded, rows.start, 0), NEVER)
    near = rows.having("points")
    boxes, k = rows.boxes.copy(), np.zeros(len(rows), np.int64)
    if near.any():
        boxes[near] = rows.points[near][:, [0, 1, 0, 1]]
        k = rows.points[:, 2].astype(np.int64)
    type_ = np.where(near, CKQ, CRQ).astype(np.uint8)
    return Queries(type_, boxes, rows.code, rows.code_offsets.astype(np.int64), life, k)


def few_of(rows: Rows | Queries, picked: np.ndarray) -> Queries:
    """Some subscriptions to ranges as routers see them; of all their columns only what routers ask for is read."""
    code, offsets = take_lists(rows.code, rows.code_offsets, picked)
    offsets = offsets.astype(np.int64)
    if isinstance(rows, Queries):
        return Queries(rows.type[picked], rows.boxes[picked], code, offsets, rows.life[picked], rows.k[picked])
    start, end = rows.start[picked], rows.end[picked]
    bounded = (start != BEGINNING) & (end != NEVER)
    life = np.where(bounded, end - np.where(bounded, start, 0), NEVER)
    count = len(picked)
    return Queries(np.full(count, CRQ, np.uint8), rows.boxes[picked], code, offsets, life, np.zeros(count, np.int64))


def spread_out(count: int, most: int) -> np.ndarray:
    """At most so many of `count` rows, evenly spread."""
    return np.arange(count) if count <= most else np.arange(most) * count // most
