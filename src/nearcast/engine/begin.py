"""Before the first batch of a run: the state is created or opened, and has its router and first statistics."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from nearcast.common.errors import BadInput
from nearcast.common.kinds import kinds
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.engine.batch import BatchPlan, open_frequencies
from nearcast.engine.samples import op_sample, own_sample, post_sample
from nearcast.engine.settings import DAY, DERIVE, IDF_PERIOD, Settings
from nearcast.partitioning.router_sample import RouterSample
from nearcast.partitioning.routers.registry import DEFAULT, build, router_named
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.subscription_list import Subscriptions
from nearcast.sources.derive.specs import recorded
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import TERMS, Manifest, SegmentRef, commit
from nearcast.storage.term_table import TermTable

SampleTable: TypeAlias = pa.Table | Callable[[], pa.Table | None] | None  # or what reads it when it is needed


def create(state: StateDirectory, settings: Settings) -> Manifest:
    """A new state, or the one that is there."""
    names = ("keep_accents", "index", "keep", IDF_PERIOD)
    return state.create({name: getattr(settings, name) for name in names})


def begin(state: StateDirectory, settings: Settings, sample: SampleTable = None, ops: SampleTable = None) -> Manifest:
    """Create a state, or open it; give it a router and first term frequencies from a sample of posts and of raw ops.

    A state with another router than `settings` ask for gets that one, built from what the state holds; `align` then
    gives each worker its subscriptions.
    """
    manifest = with_derived(state, settings, create(state, settings))
    check_windows(state, settings)
    if manifest.router is None:
        return first_router(state, settings, manifest, read(sample), ops)
    plan = BatchPlan(str(state.root), manifest, settings, manifest.batch)
    if settings.router not in (None, plan.router.name):
        seen = own_sample(plan)
        if not len(seen.posts):
            posts = read(sample)
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


def read(table: SampleTable) -> pa.Table | None:
    return table() if callable(table) else table


def first_router(
    state: StateDirectory, settings: Settings, manifest: Manifest, posts: pa.Table | None, ops: SampleTable
) -> Manifest:
    after = manifest
    if posts is not None and len(posts):
        known = [sample_terms(state, settings, posts)]
        for kind in kinds():
            known += kind.standing.begin(state, settings, posts)
        after = replace(after, first_post=posts["ts"][0].as_py(), segments=tuple(known))
    plan = BatchPlan(str(state.root), after, settings)
    asked = None if router_named(settings.router or DEFAULT).blind else read(ops)
    queries = op_sample(asked, plan.tokenizer, open_frequencies(plan), plan.regions)
    seen = RouterSample(post_sample(posts, plan.tokenizer), queries)
    return commit(state.manifests, manifest, with_router(state, settings, after, seen))


def with_router(state: StateDirectory, settings: Settings, manifest: Manifest, seen: RouterSample) -> Manifest:
    name = f"router/{manifest.version + 1:012d}.arrow"
    RoutingTable(build(settings.router or DEFAULT, seen, settings.workers)).save(state.root / name)
    return replace(manifest, router=name, previous=None)


def sample_terms(state: StateDirectory, settings: Settings, sample: pa.Table) -> SegmentRef:
    """Term frequencies of a sample, so that the first subscriptions are filed under words that are rare."""
    tokenizer = Tokenizer(keep_accents=settings.keep_accents)
    terms, _ = tokenizer.terms(sample["text"])
    distinct, counts = np.unique(terms[terms != 0], return_counts=True)
    found, words = tokenizer.words_of(sample["text"], distinct)
    spelled = np.full(len(distinct), -1, np.int64)
    spelled[np.searchsorted(distinct, found)] = np.arange(len(found))
    table = TermTable(distinct, counts, pa.array(words, pa.string()).take(pa.array(spelled, mask=spelled < 0)))
    name = state.new_name(TERMS, 0, 0)
    return SegmentRef(TERMS, name, len(distinct), table.write(state.path(name)), 0)
