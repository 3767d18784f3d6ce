"""The standing subscriptions of a manifest: many segments, and the ends that later ops gave to their rows.

Small segments are matched together through an overlay built in memory, so that a batch costs little more with twenty
unmerged segments than with one. The overlay is a cache of this process, keyed by the names it was built from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from nearcast.index.filing import Filing
from nearcast.index.pyramid import PYRAMID
from nearcast.index.rows import Rows
from nearcast.index.segment import Directory, Ends, Line, Matches, PostColumns, Segment
from nearcast.kernels.lookup import latest_rows, rows_of_versions
from nearcast.model.ops import BEGINNING, NEVER
from nearcast.state.bundle import open_bundle
from nearcast.state.directory import StateDirectory
from nearcast.state.manifest import ENDS, Manifest

OVERLAY_ROWS = 400_000  # segments are overlaid, smallest first, up to so many rows in all


@dataclass(frozen=True)
class EndLog:
    """Ends given by ops: the version `seq` of the id with `key`, and every earlier one, ends at `end` if not before."""

    key: np.ndarray
    seq: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def empty(cls) -> "EndLog":
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def concat(cls, parts: Sequence["EndLog"]) -> "EndLog":
        parts = [cls.empty(), *parts]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("key", "seq", "end")))

    def of(self, segment: Segment) -> Ends:
        """The ends that concern rows of a segment."""
        rows, which = rows_of_versions(segment.id_keys, segment.id_rows, segment.records, self.key, self.seq)
        if not len(rows):
            return Ends.none(len(segment))
        distinct, inverse = np.unique(rows, return_inverse=True)
        ends = np.full(len(distinct), NEVER, np.int64)
        np.minimum.at(ends, inverse, self.end[which])
        return Ends.of(len(segment), distinct, ends)


def read_ends(state: StateDirectory, manifest: Manifest) -> EndLog:
    """All ends of a manifest that are not folded into their segments yet."""
    logs = []
    for ref in manifest.of(ENDS):
        arrays = open_bundle(state.path(ref.name))
        logs.append(EndLog(*(np.asarray(arrays[name]) for name in ("key", "seq", "end"))))
    return EndLog.concat(logs)


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
    filing: Filing
    directory: Directory
    segment: Segment

    _latest: ClassVar["Overlay | None"] = None  # a cache of the process

    @classmethod
    def of(cls, segments: Mapping[str, Segment], filing: Filing) -> Segment:
        """The last one, if these are its segments, or if it can grow by those that are new; else a new one."""
        last = cls._latest
        if last is None or last.filing != filing or not segments.keys() >= set(last.names):
            last = None
        names = () if last is None else last.names
        fresh = tuple(sorted(segments.keys() - set(names)))
        if last is None or fresh:
            cls._latest = last = cls._grown(last, fresh, segments, filing)
        return last.segment

    @classmethod
    def _grown(
        cls, last: "Overlay | None", fresh: tuple[str, ...], segments: Mapping[str, Segment], filing: Filing
    ) -> "Overlay":
        rows = Rows.join([segments[name].rows for name in fresh])
        directory = Directory.of(rows, filing)
        if last is not None:
            rows = Rows.join([last.segment.rows, rows])
            directory = last.directory.joined(directory)
        names = fresh if last is None else last.names + fresh
        return cls(names, filing, directory, Segment.laid_out(rows, directory))


class SubscriptionSet:
    """Exact over all its segments, each pair of post and subscription once, if `disjoint` or else after `unique`."""

    def __init__(
        self, segments: Mapping[str, Segment], ends: EndLog, first_post: int = NEVER, filing: Filing = PYRAMID
    ) -> None:
        self.first_post = first_post
        small: list[str] = []
        total = 0
        for name in sorted(segments, key=lambda name: len(segments[name])):
            if total + len(segments[name]) <= OVERLAY_ROWS:
                small.append(name)
                total += len(segments[name])
        chosen = [segment for name, segment in segments.items() if name not in small or len(small) < 2]
        if len(small) >= 2:
            chosen.append(Overlay.of({name: segments[name] for name in small}, filing))
        self.parts = [(segment, ends.of(segment)) for segment in chosen if len(segment)]

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
        """The newest version of each id, ended or not."""
        seq = np.full(len(keys), -1, np.int64)
        digest = np.zeros(len(keys), np.uint64)
        end = np.full(len(keys), BEGINNING, np.int64)
        for segment, ends in self.parts:
            rows = latest_rows(segment.id_keys, segment.id_rows, segment.records, keys)
            newer = np.flatnonzero(rows >= 0)
            newer = newer[segment.rows.seq[rows[newer]] > seq[newer]]
            if len(newer):
                picked = rows[newer]
                seq[newer] = segment.rows.seq[picked]
                digest[newer] = segment.rows.digest[picked]
                end[newer] = ends.applied(segment.rows, picked, self.first_post)
        return Versions(seq, digest, end)


def ids_of(rows: Rows, picked: np.ndarray) -> tuple[np.ndarray, pa.StringArray]:
    """Integer and textual ids of some rows."""
    texts = rows.id_text.take(pa.array(picked)) if len(rows.id_text) else pa.nulls(len(picked), pa.string())
    return rows.id[picked], texts
