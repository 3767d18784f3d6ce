"""One batch in one process: the same route, work and commit that Spark runs, for tests, benchmarks and small jobs."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from nearcast.pipeline.commit import commit_batch, following
from nearcast.pipeline.plan import Plan
from nearcast.pipeline.route import route_ops, route_posts, route_rejects
from nearcast.pipeline.second_round import second_round
from nearcast.pipeline.settings import Settings
from nearcast.pipeline.work import work
from nearcast.routing.uniform_grid import UniformGrid
from nearcast.state.directory import StateDirectory
from nearcast.state.manifest import TERMS, Manifest, SegmentRef, commit
from nearcast.state.sweep import empty_spool
from nearcast.state.terms import TermTable
from nearcast.text.tokenizer import Tokenizer


def create(state: StateDirectory, settings: Settings) -> Manifest:
    """A new state, or the one that is there."""
    return state.create({"keep_accents": settings.keep_accents, "index": settings.index, "keep": settings.keep})


def begin(
    state: StateDirectory, settings: Settings, sample: pa.Table | Callable[[], pa.Table | None] | None = None
) -> Manifest:
    """Create a state, or open it; give it a router and first term frequencies from a sample of posts."""
    manifest = create(state, settings)
    if manifest.router is None:
        manifest = first_router(state, settings, manifest, sample() if callable(sample) else sample)
    return manifest


def first_router(state: StateDirectory, settings: Settings, manifest: Manifest, sample: pa.Table | None) -> Manifest:
    lon = sample["lon"].to_numpy() if sample is not None else np.empty(0)
    lat = sample["lat"].to_numpy() if sample is not None else np.empty(0)
    name = f"router/{manifest.version + 1:012d}.json"
    UniformGrid.from_sample(lon, lat).save(state.root / name)
    after = replace(manifest, router=name)
    if sample is not None and len(sample):
        after = replace(after, first_post=sample["ts"][0].as_py(), segments=(sample_terms(state, settings, sample),))
    return commit(state.manifests, manifest, after)


def sample_terms(state: StateDirectory, settings: Settings, sample: pa.Table) -> SegmentRef:
    """Term frequencies of a sample, so that the first subscriptions are filed under words that are rare."""
    tokenizer = Tokenizer(keep_accents=settings.keep_accents)
    terms, _ = tokenizer.terms(sample["text"])
    distinct, counts = np.unique(terms[terms != 0], return_counts=True)
    found, words = tokenizer.words_of(sample["text"], distinct)
    spelt = np.full(len(distinct), -1, np.int64)
    spelt[np.searchsorted(distinct, found)] = np.arange(len(found))
    table = TermTable(distinct, counts, pa.array(words, pa.string()).take(pa.array(spelt, mask=spelt < 0)))
    name = state.new_name(TERMS, 0, 0)
    return SegmentRef(TERMS, name, len(distinct), table.write(state.path(name)), 0)


def run_batch(
    state: StateDirectory,
    settings: Settings,
    posts: Iterable[pa.Table] = (),
    ops: pa.Table | None = None,
    rejects: pa.Table | None = None,
    query_id: str = "local",
    arrival: int | None = None,
) -> Manifest:
    """Route, work, commit. Posts are normalised tables in the order of the stream; ops are raw."""
    manifest = state.newest()
    plan = Plan(str(state.root), manifest, settings, manifest.batch + 1, arrival)
    inboxes: list[list[bytes]] = [[] for _ in range(settings.workers)]
    routed = [route_posts(plan, table, 1 + order, drop=ops is None) for order, table in enumerate(posts)]
    if ops is not None:
        routed.append(route_ops(plan, ops, 0))
    if rejects is not None:
        routed.append(route_rejects(plan, rejects, 0))
    for packets in routed:
        for worker, packet in packets:
            inboxes[worker].append(packet)
    reports = [work(plan, worker, packets) for worker, packets in enumerate(inboxes)]
    more = second_round(
        plan, following(plan, query_id, reports), reports, lambda done: [done(n) for n in range(settings.workers)]
    )
    after = commit_batch(plan, query_id, reports, more)
    empty_spool(state)
    return after
