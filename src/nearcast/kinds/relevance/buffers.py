"""Buffers on disk: derived state, as a log. A base has the members of all buffers of a share; a delta, what a batch
brought to them. So a batch writes in proportion to what came, and a restart reads instead of working out anew.

What a buffer holds is a function of the posts that came to it since it was last filled, of its threshold, and of its
window (`kinds.relevance.skyband`): so all deltas can be applied at once, and in any process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_table
from nearcast.storage.manifest import BUFFERS, Manifest, SegmentRef

SHARE, SHARES, BASE = "share", "shares", "base"  # facts
NEW = -1  # the version of a buffer that was never filled
DELTAS = 16  # so many may wait, or
WEIGHT = 0.5  # of the size of their base


@dataclass(frozen=True)
class BufferChange:
    """What a batch (or, in a base, all batches) did to the buffers of a share.

    `seq` (sorted) are those whose threshold or version is new: `theta`, `version`. Of these, `filled` (sorted) were
    filled anew, each with the posts starts[i]:starts[i + 1] of `number` and `score`. Posts `came_number` came to
    `came_seq` with `came_score`.
    """

    seq: np.ndarray
    theta: np.ndarray
    version: np.ndarray
    filled: np.ndarray
    starts: np.ndarray
    number: np.ndarray
    score: np.ndarray
    came_seq: np.ndarray
    came_number: np.ndarray
    came_score: np.ndarray

    @classmethod
    def open(cls, state: StateDirectory, ref: SegmentRef) -> "BufferChange":
        arrays = open_bundle(state.path(ref.name))
        return cls(**{each.name: np.asarray(arrays[each.name]) for each in fields(cls)})

    def write(self, state: StateDirectory, batch: int, share: int, shares: int, base: bool) -> SegmentRef:
        name = state.new_name(BUFFERS, batch, share)
        size = write_table(state.path(name), bundle_table({f.name: getattr(self, f.name) for f in fields(self)}))
        facts = {SHARE: share, SHARES: shares, BASE: base}
        return SegmentRef(BUFFERS, name, len(self.number) + len(self.came_number), size, batch, share, facts=facts)

    def __len__(self) -> int:
        return len(self.seq) + len(self.came_seq) + len(self.filled)


@dataclass(frozen=True)
class Thresholds:
    """What each buffer takes: posts with a score of at least `theta`, by a version of idf; by `seq`."""

    seq: np.ndarray
    theta: np.ndarray
    version: np.ndarray

    @classmethod
    def none(cls) -> "Thresholds":
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32))

    def after(self, changes: Sequence[BufferChange]) -> "Thresholds":
        """The last change of each counts."""
        for at, change in enumerate(changes):
            if not self._has(change.seq):
                return self._joined(changes[at:])
            self = self._with(change)
        return self

    def _has(self, seqs: np.ndarray) -> bool:
        at = np.minimum(np.searchsorted(self.seq, seqs), max(len(self.seq) - 1, 0))
        return not len(seqs) or (len(self.seq) > 0 and bool((self.seq[at] == seqs).all()))

    def _with(self, change: BufferChange) -> "Thresholds":
        at = np.searchsorted(self.seq, change.seq)
        theta, version = self.theta.copy(), self.version.copy()
        theta[at], version[at] = change.theta, change.version
        return Thresholds(self.seq, theta, version)

    def _joined(self, changes: Sequence[BufferChange]) -> "Thresholds":
        seq = np.concatenate([self.seq, *(change.seq for change in changes)])
        order = np.argsort(seq, kind="stable")
        last = np.ones(len(seq), np.bool_)
        last[:-1] = seq[order][1:] != seq[order][:-1]
        picked = order[last]
        theta = np.concatenate([self.theta, *(change.theta for change in changes)])
        version = np.concatenate([self.version, *(change.version for change in changes)])
        return Thresholds(seq[picked], theta[picked], version[picked])


def in_order(refs: Sequence[SegmentRef]) -> list[SegmentRef]:
    return sorted(refs, key=lambda ref: (ref.batch, not ref.facts[BASE], ref.name))


def of_share(manifest: Manifest, share: int, shares: int) -> list[SegmentRef]:
    """The files that have what a share needs: its own, or all where the number of workers has changed."""
    refs = in_order(manifest.of(BUFFERS))
    if any(ref.facts[SHARES] != shares for ref in refs):
        return refs
    return [ref for ref in refs if ref.facts[SHARE] == share]


def wants_base(refs: Sequence[SegmentRef], shares: int) -> bool:
    """Whether a new base is due: deltas are many or large, or the shares have changed."""
    bases = [ref.size for ref in refs if ref.facts[BASE]]
    deltas = [ref.size for ref in refs if not ref.facts[BASE]]
    changed = any(ref.facts[SHARES] != shares for ref in refs)
    return changed or len(deltas) >= DELTAS or sum(deltas) > WEIGHT * sum(bases)


def gathered(changes: Sequence[BufferChange], mine: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(places in `mine`, numbers, scores): the posts that came to some buffers (`mine`, sorted) since each was last
    filled, of changes in their order.
    """
    filled_at = np.full(len(mine), -1, np.int64)
    parts = []
    for at, change in enumerate(changes):
        owner = np.repeat(change.filled, np.diff(change.starts))
        for seqs, numbers, scores, late in (
            (owner, change.number, change.score, 0),
            (change.came_seq, change.came_number, change.came_score, 1),
        ):
            rows = np.minimum(np.searchsorted(mine, seqs), max(len(mine) - 1, 0))
            own = mine[rows] == seqs if len(mine) else np.zeros(len(seqs), np.bool_)
            parts.append((rows[own], numbers[own], scores[own], np.full(int(own.sum()), 2 * at + 1 - late)))
        rows = np.minimum(np.searchsorted(mine, change.filled), max(len(mine) - 1, 0))
        own = mine[rows] == change.filled if len(mine) else np.zeros(len(change.filled), np.bool_)
        filled_at[rows[own]] = 2 * at + 1  # what came in the same batch is among what it was filled with
    none = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
    rows, numbers, scores, when = (np.concatenate([part[i] for part in [none, *parts]]) for i in range(4))
    keep = when >= filled_at[rows]
    return rows[keep], numbers[keep], scores[keep]
