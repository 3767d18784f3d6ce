"""Route: normalised posts and raw ops → packets for workers. It writes nothing."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from nearcast.index.posts import chunk
from nearcast.kernels.grid import may_match
from nearcast.pipeline.encode_ops import encode_ops
from nearcast.pipeline.packets import DROPPED, OPS, POSTS, REJECTS, by_worker, pack
from nearcast.pipeline.plan import Plan, open_summary

Packets = Iterator[tuple[int, bytes]]


def route_posts(plan: Plan, posts: pa.Table, order: int, drop: bool = True) -> Packets:
    """Words, leaf and worker of each post, and whether some subscription there may want it.

    With `--keep none` a post that none can want goes nowhere (PS2Stream's H2, Tornado's textual summary), but its time,
    which may move the clock; otherwise it is only stored. `drop` is False where the batch may carry subscriptions that the
    summary does not know yet.
    """
    if not len(posts):
        return
    workers = plan.settings.workers
    terms, offsets = plan.tokenizer.terms(posts["text"])
    lon, lat = chunk(posts["lon"]).to_numpy(), chunk(posts["lat"]).to_numpy()
    leaves = plan.router.store(lon, lat)
    wanted = may_match(leaves, terms, offsets, open_summary(plan)) if drop else np.ones(len(posts), np.bool_)
    posts = posts.append_column("leaf", pa.array(leaves))
    posts = posts.append_column("wanted", pa.array(wanted))
    posts = posts.append_column("terms", pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(terms)))
    owners = plan.router.owners(workers)[leaves]
    if drop and plan.settings.keep == "none" and plan.manifest.clock is not None:
        ts = chunk(posts["ts"]).to_numpy()
        if plan.settings.max_future is not None:  # what may be a reject is a worker's to decide
            wanted = wanted | (ts > plan.manifest.clock + plan.settings.max_future)
        for packet in pack(DROPPED, pa.table({"ts": ts[~wanted]}), order):
            yield order % workers, packet
        posts, owners = posts.filter(pa.array(wanted)), owners[wanted]
    for worker, table in by_worker(posts, owners, workers):
        for packet in pack(POSTS, table, order):
            yield worker, packet


def route_ops(plan: Plan, raw: pa.Table, order: int) -> Packets:
    """Every worker gets every op: each works out alike what the ops mean, and files what concerns its leaves."""
    ops, rejects = encode_ops(raw, plan.tokenizer)
    for packet in pack(OPS, ops, order):
        for worker in range(plan.settings.workers):
            yield worker, packet
    yield from route_rejects(plan, rejects, order)


def route_rejects(plan: Plan, rejects: pa.Table, order: int) -> Packets:
    for packet in pack(REJECTS, rejects, order):
        yield order % plan.settings.workers, packet
