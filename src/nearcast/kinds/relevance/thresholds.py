"""The thresholds of all buffers, as this process knows them."""

from nearcast.engine.batch import BatchPlan
from nearcast.kinds.relevance.buffers import BufferChange, Thresholds, in_order
from nearcast.storage.manifest import BUFFERS, Manifest

_thresholds: dict[str, tuple[frozenset[str], Thresholds]] = {}  # by state: the files they come from


def open_thresholds(plan: BatchPlan, manifest: Manifest) -> Thresholds:
    """Those of all shares. Kept in the process: files that are new are added to what was known."""
    refs = in_order(manifest.of(BUFFERS))
    names = frozenset(ref.name for ref in refs)
    known, last = _thresholds.get(plan.root, (frozenset(), Thresholds.none()))
    fresh = [ref for ref in refs if ref.name not in known]
    if not known <= names:  # a base has come since, without those that have ended
        last, fresh = Thresholds.none(), refs
    thresholds = last.after([BufferChange.open(plan.state, ref) for ref in fresh])
    _thresholds.clear()
    _thresholds[plan.root] = (names, thresholds)
    return thresholds
