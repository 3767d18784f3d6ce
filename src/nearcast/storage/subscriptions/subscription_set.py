"""The standing subscriptions of a manifest: many segments, and the ends that later ops gave to their rows.

Small segments are matched together through an overlay built in memory, so that a batch costs little more with twenty
unmerged segments than with one. The overlay is a cache of this process, keyed by the names it was built from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import freeze
from nearcast.common.kernels.lookup import sorted_members
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.storage.bundle import open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ENDS, Manifest
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.kernels.versions import latest_rows, rows_of_versions
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Directory, Ends, Line, Matches, Segment

FEW_ROWS = 150_000
OVERLAY_ROWS = 400_000
ENDS_KEPT = 100
KEPT = 3  # overlays: a process may work for several workers in turn


@dataclass(frozen=True)
class EndLog:
    """Ends given by ops: the version `seq` of the id with `key`, and every earlier one, ends at `end` if not before."""

    key: np.ndarray
    seq: np.ndarray
    end: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def empty(cls) -> "EndLog":
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def concat(cls, parts: Iterable["EndLog"]) -> "EndLog":
        parts = [cls.empty(), *parts]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("key", "seq", "end")))

    def about(self, keys: np.ndarray) -> "EndLog":
        """The entries of some ids, whose keys are sorted."""
        some = sorted_members(keys, self.key)
        return EndLog(self.key[some], self.seq[some], self.end[some])

    def of(self, segment: Segment) -> Ends:
        """The ends that concern rows of a segment."""
        rows, which = rows_of_versions(segment.id_keys, segment.id_rows, segment.records, self.key, self.seq)
        return Ends.least(len(segment), rows, self.end[which])


def read_logs(state: StateDirectory, manifest: Manifest) -> dict[str, EndLog]:
    """The ends of a manifest that are not folded into their segments yet, by the name of their file."""
    logs = {}
    for ref in manifest.of(ENDS):
        arrays = open_bundle(state.path(ref.name))
        logs[ref.name] = EndLog(*(np.asarray(arrays[name]) for name in ("key", "seq", "end")))
    return logs


_ends: dict[str, tuple[frozenset[str], Ends]] = {}  # of segments, by name, with the logs they come from


def standing_ends(segments: Mapping[str, Segment], logs: Mapping[str, EndLog]) -> dict[str, Ends]:
    """The ends that concern each segment. Kept in the process: a log that is new is added to what was known."""
    for name in list(_ends)[: max(0, len(_ends) - ENDS_KEPT)]:
        del _ends[name]
    for name, segment in segments.items():
        seen, ends = _ends.get(name, (frozenset(), None))
        if ends is None or not seen <= logs.keys():
            seen, ends = frozenset(), Ends.none(len(segment))
        fresh = EndLog.concat(logs[log] for log in logs.keys() - seen)
        _ends[name] = (frozenset(logs), ends.joined(fresh.of(segment)) if len(fresh) else ends)
    return {name: _ends[name][1] for name in segments}


@dataclass(frozen=True)
class Versions:
    """The newest version of some ids: `seq` is -1 where there is none."""

    seq: np.ndarray
    digest: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Overlay:
    """Several small segments as one in memory: rows end to end, directories merged."""

    names: tuple[str, ...]
    directory: Directory
    segment: Segment

    _kept: ClassVar[list["Overlay"]] = []  # a cache of the process, the last used first

    @classmethod
    def of(cls, segments: Mapping[str, Segment]) -> "Overlay":
        """One that is kept, if it is of these segments, or if it can grow by those that are new; else a new one."""
        fitting = [each for each in cls._kept if segments.keys() >= set(each.names)]
        last = max(fitting, key=lambda each: len(each.segment), default=None)
        fresh = tuple(sorted(segments.keys() - set(() if last is None else last.names)))
        overlay = cls._grown(last, fresh, segments) if last is None or fresh else last
        cls._kept = [overlay, *(each for each in cls._kept if each is not last)][:KEPT]
        return overlay

    @classmethod
    def _grown(cls, last: "Overlay | None", fresh: tuple[str, ...], segments: Mapping[str, Segment]) -> "Overlay":
        parts = [segments[name] for name in fresh]
        rows = Rows.join([*([] if last is None else [last.segment.rows]), *(part.rows for part in parts)])
        directories = [*([] if last is None else [last.directory]), *(Directory.laid(part) for part in parts)]
        directory = reduce(Directory.joined, directories)
        names = fresh if last is None else last.names + fresh
        return cls(names, directory, Segment.laid_out(rows, directory, by_id=False))


class SubscriptionSet:
    """Exact over all its segments, each pair of post and subscription once.

    `ends` are those of this batch, `logs` those that are committed, by name.
    """

    def __init__(
        self,
        segments: Mapping[str, Segment],
        ends: EndLog,
        first_post: int = NEVER,
        logs: Mapping[str, EndLog] | None = None,
    ) -> None:
        self.segments = {name: segment for name, segment in segments.items() if len(segment)}
        self.ends = ends
        self.first_post = first_post
        self.logs = logs or {}

    @cached_property
    def parts(self) -> list[tuple[Segment, Ends]]:
        """What to match, the small segments as one, each with the ends of its rows."""
        known = standing_ends(self.segments, self.logs)
        if len(self.ends):
            known = {name: ends.joined(self.ends.of(self.segments[name])) for name, ends in known.items()}
        small = self._small()
        parts = [(segment, known[name]) for name, segment in self.segments.items() if name not in small]
        if small:
            overlay = Overlay.of({name: self.segments[name] for name in small})
            sizes = [len(self.segments[name]) for name in overlay.names]
            parts.append((overlay.segment, Ends.side_by_side([known[name] for name in overlay.names], sizes)))
        return parts

    def _small(self) -> set[str]:
        """Segments of one extent that are overlaid: of those with few rows the smallest, up to so many in all."""
        small: set[str] = set()
        total = 0
        for name in sorted(self.segments, key=lambda name: len(self.segments[name])):
            total += len(self.segments[name])
            if len(self.segments[name]) <= FEW_ROWS and total <= OVERLAY_ROWS:
                small.add(name)
        extents = {tuple(self.segments[name].extent.tolist()) for name in small}
        return small if len(small) > 1 and len(extents) == 1 else set()

    def match(self, posts: PostColumns, wanted: np.ndarray | None = None) -> list[tuple[Rows, Matches]]:
        """Matches by part; `wanted` (in Z-order) restricts the posts."""
        line = Line.of(posts, wanted)
        found = []
        for segment, ends in self.parts:
            latest = segment.latest[0]
            some = line if latest == NEVER else line.until(latest)
            if len(some):
                found.append((segment.rows, segment.match(some, ends, self.first_post)))
        return found

    def newest(self, keys: np.ndarray) -> Versions:
        """The newest version of each id, ended or not; the keys are sorted."""
        seq = np.full(len(keys), -1, np.int64)
        digest = np.zeros(len(keys), np.uint64)
        end = np.full(len(keys), BEGINNING, np.int64)
        log = EndLog.concat([self.ends, *self.logs.values()]).about(keys)
        for segment in self.segments.values():
            rows = latest_rows(segment.id_keys, segment.id_rows, segment.records, keys)
            newer = np.flatnonzero(rows >= 0)
            newer = newer[segment.rows.seq[rows[newer]] > seq[newer]]
            if len(newer):
                picked = rows[newer]
                seq[newer] = segment.rows.seq[picked]
                digest[newer] = segment.rows.digest[picked]
                end[newer] = log.of(segment).applied(segment.rows, picked, self.first_post)
        return Versions(seq, digest, end)


def ids_of(rows: Rows, picked: np.ndarray) -> tuple[np.ndarray, pa.StringArray]:
    """Integer and textual ids of some rows."""
    texts = rows.id_text.take(pa.array(picked)) if len(rows.id_text) else pa.nulls(len(picked), pa.string())
    return rows.id[picked], texts
