"""One batch in one process: the same route, work and commit that Spark runs, for tests, benchmarks and small jobs."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.align import align
from nearcast.engine.batch import Plan, open_frequencies
from nearcast.engine.commit import commit_batch, following
from nearcast.engine.rebalancing import rebalance
from nearcast.engine.route import route_ops, route_posts, route_rejects
from nearcast.engine.samples import op_sample, own_sample, post_sample
from nearcast.engine.second_round import second_round
from nearcast.engine.settings import DAY, DERIVE, IDF_PERIOD, Settings
from nearcast.engine.work import work
from nearcast.kinds.relevance.idf_maintenance import sample_version
from nearcast.partitioning.router_sample import Sample
from nearcast.partitioning.routers.registry import DEFAULT, build, router_named
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.subscription_list import Subscriptions
from nearcast.sources.derive.specs import recorded
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import TERMS, Manifest, SegmentRef, commit
from nearcast.storage.sweep import empty_spool
from nearcast.storage.term_table import TermTable

Given: TypeAlias = pa.Table | Callable[[], pa.Table | None] | None


def create(state: StateDirectory, settings: Settings) -> Manifest:
    """A new state, or the one that is there."""
    names = ("keep_accents", "index", "keep", IDF_PERIOD)
    return state.create({name: getattr(settings, name) for name in names})


def begin(state: StateDirectory, settings: Settings, sample: Given = None, ops: Given = None) -> Manifest:
    """Create a state, or open it; give it a router and first term frequencies from a sample of posts and of raw ops.

    A state with another router than `settings` ask for gets that one, built from what the state holds; `align` then
    gives each worker its subscriptions.
    """
    manifest = with_derived(state, settings, create(state, settings))
    check_windows(state, settings)
    if manifest.router is None:
        return first_router(state, settings, manifest, given(sample), ops)
    plan = Plan(str(state.root), manifest, settings, manifest.batch)
    if settings.router not in (None, plan.router.name):
        seen = own_sample(plan)
        if not len(seen.posts):
            posts = given(sample)
            seen = seen if posts is None else replace(seen, posts=post_sample(posts, plan.tokenizer))
        return commit(state.manifests, manifest, with_router(state, settings, manifest, seen))
    return manifest


def check_windows(state: StateDirectory, settings: Settings) -> None:
    """No window that stands may be longer than posts are kept from now on, of which its terms are counted."""
    if settings.retention is None or settings.keep == "none":
        return
    if (longest := Subscriptions(state).longest_window()) > settings.retention:
        raise BadInput(
            f"--retention is shorter than a window of {longest / DAY:.3g} days that a subscription reports on: "
            "keep posts as long, or unsubscribe it first (nearcast subscriptions shows all)"
        )


def with_derived(state: StateDirectory, settings: Settings, manifest: Manifest) -> Manifest:
    """The manifest that records what is derived from now on; models are copied into the state."""
    if settings.derive is None:
        return manifest
    chosen = list(recorded(state.root, settings.derive))
    if chosen == manifest.settings.get(DERIVE, []):
        return manifest
    return commit(state.manifests, manifest, replace(manifest, settings={**manifest.settings, DERIVE: chosen}))


def given(table: Given) -> pa.Table | None:
    return table() if callable(table) else table


def first_router(
    state: StateDirectory, settings: Settings, manifest: Manifest, posts: pa.Table | None, ops: Given
) -> Manifest:
    after = manifest
    if posts is not None and len(posts):
        known = sample_terms(state, settings, posts), sample_version(state, settings, posts)
        after = replace(after, first_post=posts["ts"][0].as_py(), segments=known)
    plan = Plan(str(state.root), after, settings)
    asked = None if router_named(settings.router or DEFAULT).blind else given(ops)
    queries = op_sample(asked, plan.tokenizer, open_frequencies(plan), plan.regions)
    seen = Sample(post_sample(posts, plan.tokenizer), queries)
    return commit(state.manifests, manifest, with_router(state, settings, after, seen))


def with_router(state: StateDirectory, settings: Settings, manifest: Manifest, seen: Sample) -> Manifest:
    name = f"router/{manifest.version + 1:012d}.arrow"
    RoutingTable(build(settings.router or DEFAULT, seen, settings.workers)).save(state.root / name)
    return replace(manifest, router=name, former=None)


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
    began = time.perf_counter()
    manifest = align(state, settings)
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
    after = rebalance(state, settings, commit_batch(plan, query_id, reports, more, time.perf_counter() - began))
    empty_spool(state)
    return after
