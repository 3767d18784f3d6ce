"""Which worker holds which subscribers (DSkype §7): the distribution of a state, made when it is needed.

It decides who indexes whom and nothing else: buffers are settled at home, whoever found the candidates. So it may be
made anew between any two batches.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np

from nearcast.engine.batch import BatchPlan, open_frequencies
from nearcast.kinds.relevance.distributions.protocol import Distribution
from nearcast.kinds.relevance.distributions.registry import build, load, save
from nearcast.kinds.relevance.distributions.sample import MOST
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.ledger import Ledger
from nearcast.kinds.relevance.subscribers import open_subscribers
from nearcast.kinds.relevance.thresholds import open_thresholds
from nearcast.kinds.relevance.vectors import Vectors
from nearcast.storage.manifest import DISTRIBUTION, Manifest, SegmentRef

GROWN = 4  # times as many subscribers as it was made for: then it is made anew
DRIVER = 997  # in the names of its files


def open_distribution(plan: BatchPlan, manifest: Manifest) -> Distribution | None:
    """That of a manifest; None where one worker has all."""
    refs = manifest.of(DISTRIBUTION)
    if plan.settings.workers == 1 or not refs:
        return None
    return _opened(plan.state.path(refs[-1].name))


@lru_cache(maxsize=2)
def _opened(path: Path) -> Distribution:
    return load(path)


def is_fitting(plan: BatchPlan, manifest: Manifest) -> bool:
    """Whether the distribution that there is does for the subscribers and workers that there are."""
    if plan.settings.workers == 1:
        return True
    facts = [ref.facts for ref in manifest.of(DISTRIBUTION)]
    asked = (plan.settings.topk_distribution, plan.settings.workers)
    count = len(open_thresholds(plan, plan.manifest).seq)
    return bool(facts) and (facts[-1]["asked"], facts[-1]["workers"]) == asked and count <= GROWN * facts[-1]["rows"]


def distribute(plan: BatchPlan, after: Manifest) -> SegmentRef:
    """A distribution learned from the subscribers that have a threshold and the newest posts of the ledger."""
    thresholds = open_thresholds(plan, plan.manifest)
    subscribers = open_subscribers(plan, after)
    at = subscribers.places(thresholds.seq)
    known = np.flatnonzero(at >= 0)
    some = known[np.linspace(0, len(known) - 1, min(len(known), MOST)).astype(np.int64)] if len(known) else known
    idf = IdfSet(plan.state, after).newest()
    made = build(
        plan.settings.topk_distribution, subscribers.profiles(at[some], idf), thresholds.theta[some],
        newest_posts(plan, after), plan.settings.workers, open_frequencies(plan),
    )  # fmt: skip
    name = plan.state.new_name(DISTRIBUTION, plan.batch, DRIVER)
    size = save(made, plan.state.path(name))
    facts = {"asked": plan.settings.topk_distribution, "workers": plan.settings.workers, "rows": len(thresholds.seq)}
    return SegmentRef(DISTRIBUTION, name, len(thresholds.seq), size, plan.batch, facts=facts | {"name": made.name})


def newest_posts(plan: BatchPlan, after: Manifest) -> Vectors:
    """Of the ledger, in segments up to so many as a distribution looks at."""
    ledger, idf = Ledger.open(plan.state, after), IdfSet(plan.state, after).newest()
    parts, count = [], 0
    for ref in reversed(ledger.refs):
        parts.append(ledger.vectors(ref, idf))
        count += ref.rows
        if count >= MOST:
            break
    return Vectors.join(parts)
