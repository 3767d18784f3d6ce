"""Subscriptions by relevance: filing them, one segment for all workers, and all that stand as arrays."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.geo.shapes import EVERYWHERE
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.engine.batch import BatchPlan, open_segments
from nearcast.kinds.relevance import KIND
from nearcast.kinds.relevance.vectors import Idf, Profiles
from nearcast.storage.bundle import bundle_table
from nearcast.storage.files import write_table
from nearcast.storage.manifest import ENDS, SUBSCRIPTIONS, Manifest, SegmentRef
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows, take_lists
from nearcast.storage.subscriptions.subscription_segment import Directory, Segment
from nearcast.storage.subscriptions.subscription_set import read_logs, standing_ends

LON, LAT, K, ALPHA, REACH, POSTS, LENGTH = range(7)  # columns of Rows.scoring
MOST, LONGEST = "most", "longest"  # facts: the largest windows of a segment


def relevant_refs(manifest: Manifest) -> list[SegmentRef]:
    return [ref for ref in manifest.of(SUBSCRIPTIONS) if ref.asks == KIND.code]


def file_relevant(plan: BatchPlan, rows: Rows) -> SegmentRef:
    """Write new subscriptions, in the order of their ops. No directory: they are matched by an index in memory."""
    rows = rows.take(np.argsort(rows.seq, kind="stable"))
    nothing = np.empty(0, np.uint64)
    directory = Directory(PYRAMID.extent_array(), nothing, nothing, np.zeros(len(rows), np.bool_))
    name = plan.state.new_name(SUBSCRIPTIONS, plan.batch, 0)
    arrays = {**Segment.laid_out(rows, directory).arrays(), "summary": nothing}
    size = write_table(plan.state.path(name), bundle_table(arrays))
    facts = {"asks": KIND.code, MOST: int(rows.scoring[:, POSTS].max()), LONGEST: int(rows.scoring[:, LENGTH].max())}
    return SegmentRef(SUBSCRIPTIONS, name, len(rows), size, plan.batch, facts=facts)


@dataclass(frozen=True)
class Subscribers:
    """All of a manifest, by `seq`, ended ones too."""

    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def seq(self) -> np.ndarray:
        return self.rows.seq

    @cached_property
    def keys(self) -> np.ndarray:
        return self.rows.keys()

    @cached_property
    def conditional(self) -> np.ndarray:
        """Which of them have a WHERE."""
        rows = self.rows
        found = (rows.kinds != EVERYWHERE) | (np.diff(rows.code_offsets.astype(np.int64)) > 0)
        return found | rows.predicates.is_valid().to_numpy(zero_copy_only=False) if len(rows.predicates) else found

    @cached_property
    def windows(self) -> tuple[np.ndarray, np.ndarray]:
        """(posts, length in microseconds): one of them is 0."""
        return self.rows.scoring[:, POSTS].astype(np.int64), self.rows.scoring[:, LENGTH].astype(np.int64)

    @cached_property
    def k(self) -> np.ndarray:
        return self.rows.scoring[:, K].astype(np.int64)

    def places(self, seqs: np.ndarray) -> np.ndarray:
        """Where some of them are; -1 for those that are none."""
        if not len(self):
            return np.full(len(seqs), -1, np.int64)
        at = np.minimum(np.searchsorted(self.seq, seqs), len(self) - 1)
        return np.where(self.seq[at] == seqs, at, -1)

    def profiles(self, picked: np.ndarray, idf: Idf) -> Profiles:
        """As the indexes take them, with weights of a version."""
        rows = self.rows
        words, offsets = take_lists(rows.words, rows.words_offsets, picked)
        profile = rows.scoring[picked]
        lon, lat, alpha, reach = (np.ascontiguousarray(profile[:, column]) for column in (LON, LAT, ALPHA, REACH))
        return Profiles(lon, lat, alpha, reach, profile[:, K].astype(np.int64), *idf.weigh(words, offsets))


_stopped: tuple[tuple[object, ...], np.ndarray] | None = None
_subscribers: dict[tuple[str, ...], Subscribers] = {}


def open_subscribers(plan: BatchPlan, manifest: Manifest) -> Subscribers:
    """All of a manifest; kept in the process while its segments are the same."""
    names = [ref.name for ref in relevant_refs(manifest)]
    key = (plan.root, *names)
    if key not in _subscribers:
        _subscribers.clear()
        segments = open_segments(plan, names, manifest)
        rows = Rows.join([segment.rows for segment in segments.values()])
        if (np.diff(rows.seq) < 0).any():
            rows = rows.take(np.argsort(rows.seq, kind="stable"))
        _subscribers[key] = Subscribers(rows)
    return _subscribers[key]


def which_stand(plan: BatchPlan, manifest: Manifest, subscribers: Subscribers) -> np.ndarray:
    """Which of them have begun and not ended at the clock."""
    if manifest.clock is None:
        return np.zeros(len(subscribers), np.bool_)
    start, stop = subscribers.rows.start, _stops(plan, manifest, subscribers)
    return ((start == BEGINNING) | (start <= manifest.clock)) & (stop > manifest.clock)


def _stops(plan: BatchPlan, manifest: Manifest, subscribers: Subscribers) -> np.ndarray:
    """When each of them ends, all things considered; kept in the process while no op ends any."""
    global _stopped
    first = NEVER if manifest.first_post is None else manifest.first_post
    names = [ref.name for ref in relevant_refs(manifest)]
    key = (plan.root, first, *names, *(ref.name for ref in manifest.of(ENDS)))
    if _stopped is None or _stopped[0] != key:
        segments = open_segments(plan, names, manifest)
        ends = standing_ends(segments, read_logs(plan.state, manifest))
        stop = np.empty(len(subscribers), np.int64)
        for name, segment in segments.items():
            at = subscribers.places(segment.rows.seq)
            stop[at] = ends[name].applied(segment.rows, np.arange(len(segment)), first)
        _stopped = (key, stop)
    return _stopped[1]


def timeless(rows: Rows) -> Rows:
    """Without start and end: a window may have posts from before its subscription."""
    n = len(rows)
    ever = {"start": np.full(n, BEGINNING), "end": np.full(n, NEVER), "life": np.full(n, NEVER)}
    return replace(rows, **{name: frozen(values) for name, values in ever.items()})
