"""Route: normalised posts and raw ops → packets for workers. It writes nothing."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk
from nearcast.common.post_schema import REJECTS as REJECTED
from nearcast.engine.batch import BatchPlan, open_frequencies, placed_summary
from nearcast.engine.op_encoding import encode_ops, file_ops
from nearcast.engine.op_packets import pack_ops
from nearcast.engine.packets import POSTS, REJECTS, SEEN, by_worker, pack
from nearcast.engine.post_copies import MARKS, matchers, spread
from nearcast.engine.previous_table import LEAF
from nearcast.engine.routing_view import RoutingView
from nearcast.partitioning.routing_table import EVERYTHING, NO_WORDS
from nearcast.reader.row_format import json_row, post_rows
from nearcast.sources.derive.specs import derived
from nearcast.storage.posts.post_segment import post_fingerprints

Packets = Iterator[tuple[int, bytes]]
OPS_AT_ONCE = 1 << 17  # arrays of more take new memory each time, and the system a third of the time to clear it
FUTURE = "time lies too far in the future"


def route_posts(plan: BatchPlan, posts: pa.Table, order: int, drop: bool = True) -> Packets:
    """Words, leaf and worker of each post, and whether some subscription there may want it.

    With `--keep none` a post that none can want goes nowhere (PS2Stream's H2, Tornado's textual summary); otherwise it
    is only stored. `drop` is False where the batch may carry subscriptions that the summary does not know yet. Posts
    from too far in the future are rejects. What was read is counted, whatever becomes of it, and moves the clock.
    """
    posts, rejects = without_future(plan, posts)
    yield from route_rejects(plan, rejects, order)
    if not len(posts):
        return
    workers = plan.settings.workers
    terms, offsets = plan.tokenizer.terms(posts["text"])
    posts = derived(plan.root, plan.derives, posts, (terms, offsets), plan.tokenizer)
    lon, lat, ts = (chunk(posts[name]).to_numpy() for name in ("lon", "lat", "ts"))
    router, previous = plan.router, plan.previous
    prints = post_fingerprints(posts) if router.textual or router.hashes or previous else NO_WORDS
    leaves = router.store(lon, lat, terms, offsets, prints)
    cells = router.summary_cells(lon, lat)
    columns, summary = (lon, lat, terms, offsets), placed_summary(plan) if drop else EVERYTHING
    to = router.match(*columns, leaves, summary, cells)
    marks = RoutingView(cells, terms, offsets).marks(plan, drop, np.diff(to[0]) > 0 if router.shares else None)
    posts = posts.append_column("leaf", pa.array(leaves)).append_column(MARKS, pa.array(marks))
    posts = posts.append_column("terms", pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms)))
    owners = router.owners(workers)[leaves]
    seen = {"posts": len(posts), "dropped": 0, "earliest": int(ts.min()), "latest": int(ts.max())}
    some = np.ones(len(posts), np.bool_)
    if plan.settings.keep == "none":
        some = marks != 0
        seen["dropped"] = int((~some).sum())
    for packet in pack(SEEN, pa.table({name: [value] for name, value in seen.items()}), order):
        yield order % workers, packet
    if router.textual or previous is not None:
        matched = matchers(router, workers, *to)
        if previous is not None:
            old = previous.table.store(*columns, prints)
            posts = posts.append_column(LEAF, pa.array(old))
            matched |= matchers(previous.table, workers, *previous.table.match(*columns, old, summary, cells))
        yield from spread(plan, posts, prints, matched, order)
        return
    if seen["dropped"]:
        posts, owners = posts.filter(pa.array(some)), owners[some]
    for worker, table in by_worker(posts, owners, workers):
        for packet in pack(POSTS, table, order, plan.spool):
            yield worker, packet


def without_future(plan: BatchPlan, posts: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(posts, rejects): none later than the batch's arrival plus `--max-future`, so one fast clock poisons nothing."""
    limit = plan.settings.max_future
    if limit is None or plan.arrival is None or not len(posts):
        return posts, REJECTED.empty_table()
    early = chunk(posts["ts"]).to_numpy() > plan.arrival + limit
    if not early.any():
        return posts, REJECTED.empty_table()
    shown = [json.dumps(json_row(row), ensure_ascii=False) for row in post_rows(posts.filter(pa.array(early)))]
    return posts.filter(pa.array(~early)), pa.table([[FUTURE] * len(shown), shown], schema=REJECTED)


def route_ops(plan: BatchPlan, raw: pa.Table, order: int) -> Packets:
    """Every worker hears of every op, to work out what it means as all others do, and gets the queries it keeps."""
    for piece, begin in enumerate(range(0, len(raw), OPS_AT_ONCE)):
        some = raw.slice(begin, OPS_AT_ONCE)
        ops, rejects = encode_ops(some, plan.tokenizer, plan.regions, longest=plan.settings.retention)
        yield from pack_ops(plan, file_ops(ops, open_frequencies(plan)), order, piece)
        yield from route_rejects(plan, rejects, order, piece)


def route_rejects(plan: BatchPlan, rejects: pa.Table, order: int, piece: int = 0) -> Packets:
    for packet in pack(REJECTS, rejects, order, plan.spool, piece):
        yield order % plan.settings.workers, packet
