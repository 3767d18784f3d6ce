"""Versions of the stream's term statistics, which the idf of relevance comes from (Skype §3).

Version V counts the posts whose time is before V periods of stream time, the same however the stream is cut into
batches. It is made when the clock, less the lateness, passes that moment: what comes later still is counted in no
version. Where a period had no post there is no version of its own, so a version's number tells the period of the last
post that it counts. The statistics of a sample, where a state began with one, are version 0, and stand before all
others; no other version has that number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.files import write_table
from nearcast.storage.manifest import IDF, Manifest, SegmentRef

KEPT = 4  # versions; at any clock subscribers use two
SAMPLED = 0  # the version of a sample, and of no statistics at all


@dataclass(frozen=True)
class TermStatistics:
    """So many posts were counted, and term[i] (sorted, each once) is in count[i] of them; `latest` is the greatest time
    of these posts, None where there are none, or times do not matter.
    """

    posts: int
    term: np.ndarray
    count: np.ndarray
    latest: int | None = None

    @classmethod
    def none(cls) -> "TermStatistics":
        return cls(0, np.empty(0, np.uint64), np.empty(0, np.int64))

    @classmethod
    def summed(cls, parts: Sequence["TermStatistics"]) -> "TermStatistics":
        parts = [part for part in parts if part.posts] or [cls.none()]
        latest = max((part.latest for part in parts if part.latest is not None), default=None)
        if len(parts) == 1:
            return parts[0]
        term, place = np.unique(np.concatenate([part.term for part in parts]), return_inverse=True)
        weights = np.concatenate([part.count for part in parts])
        count = np.bincount(place, weights, len(term)).astype(np.int64)  # exact: far below 2**53
        return cls(sum(part.posts for part in parts), term, count, latest)


def wanted_versions(keys: np.ndarray, clock: int, period: int) -> np.ndarray:
    """⌊(clock - h·period) / period⌋ of ids whose 64-bit keys are h·2⁶⁴: each takes up a version at a moment of its own,
    spread evenly over the period after the version was made. Exact.
    """
    version, rest = divmod(clock, period)
    return version - (keys > np.uint64((rest << 64) // period)).astype(np.int64)


def next_versions(clock_before: int | None, clock: int | None, lateness: int, period: int) -> list[int]:
    """The versions that are due once the clock has gone on from `clock_before` to `clock`. Of many only the last two:
    no subscriber uses an older one from there on.
    """
    if clock is None:
        return []
    newest = (clock - lateness) // period
    if clock_before is None:
        return [newest - 1, newest]
    return list(range(max((clock_before - lateness) // period + 1, newest - 1), newest + 1))


def version_of(ref: SegmentRef) -> int:
    return int(ref.facts["version"])


def in_order(refs: Iterable[SegmentRef]) -> list[SegmentRef]:
    """Oldest first; that of a sample before all others."""
    return sorted(refs, key=lambda ref: (not ref.facts["sampled"], version_of(ref)))


def kept_versions(refs: Sequence[SegmentRef]) -> list[SegmentRef]:
    """All segments but old versions."""
    old = {ref.name for ref in in_order(ref for ref in refs if ref.kind == IDF)[:-KEPT]}
    return [ref for ref in refs if ref.name not in old] if old else list(refs)


def write_version(
    state: StateDirectory, batch: int, version: int, counts: TermStatistics, sampled: bool = False
) -> SegmentRef:
    name = state.new_name(IDF, batch, 0)
    arrays = {"term": counts.term, "count": counts.count.astype(np.uint32)}
    size = write_table(state.path(name), bundle_table(arrays))
    facts = {"version": version, "posts": counts.posts, "sampled": int(sampled)}
    return SegmentRef(IDF, name, len(counts.term), size, batch, facts=facts)


def open_version(state: StateDirectory, ref: SegmentRef) -> TermStatistics:
    arrays = open_bundle(state.path(ref.name))
    return TermStatistics(int(ref.facts["posts"]), np.asarray(arrays["term"]), np.asarray(arrays["count"]))


def newest_counted(manifest: Manifest) -> SegmentRef | None:
    """The newest version but that of a sample."""
    refs = [ref for ref in in_order(manifest.of(IDF)) if not ref.facts["sampled"]]
    return refs[-1] if refs else None
