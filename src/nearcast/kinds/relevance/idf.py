"""The versions of term statistics of a manifest as `Idf`, which of them each subscriber uses, and how posts are
counted for the next.
"""

from collections.abc import Iterable

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.common.queries import Query
from nearcast.kinds.relevance.idf_versions import (
    SAMPLED,
    TermStatistics,
    in_order,
    open_version,
    version_of,
    wanted_versions,
)
from nearcast.kinds.relevance.vectors import Idf
from nearcast.language import encode_conditions
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import IDF, Manifest
from nearcast.storage.posts.kernels.vocabulary import encode_terms
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.term_counts import Counting, count_terms

MOST_OPEN = 8

_opened: dict[tuple[str, str], Idf] = {}


class IdfSet:
    """The versions that a manifest has; tables are mapped when they are first asked for, once in a process."""

    def __init__(self, state: StateDirectory, manifest: Manifest) -> None:
        self.state = state
        self.refs = in_order(manifest.of(IDF))

    @property
    def versions(self) -> tuple[int, ...]:
        """Oldest first."""
        return tuple(version_of(ref) for ref in self.refs)

    def newest(self) -> Idf:
        return self._open(len(self.refs) - 1) if self.refs else Idf.none()

    def at(self, version: int) -> Idf:
        """One of the versions; with none, 0 is where all words weigh the same."""
        if version in self.versions:
            return self._open(self.versions.index(version))
        if not self.refs and version == SAMPLED:
            return Idf.none()
        kept = ", ".join(map(str, self.versions)) or f"{SAMPLED}, before any post was counted"
        raise BadInput(f"version {version} of the idf is not kept: there is {kept}")

    def used(self, keys: np.ndarray, clock: int, period: int) -> np.ndarray:
        """The version that each id (its 64-bit key) uses at a clock: a function of these two, and of the stream."""
        counted = np.array([version_of(ref) for ref in self.refs if not ref.facts["sampled"]], np.int64)
        oldest = self.versions[0] if self.refs else SAMPLED
        if not len(counted):
            return np.full(len(keys), oldest)
        at = np.searchsorted(counted, wanted_versions(keys, clock, period), side="right") - 1
        return np.where(at >= 0, counted[at], oldest)

    def _open(self, at: int) -> Idf:
        ref = self.refs[at]
        key = str(self.state.root), ref.name
        if key not in _opened:
            while len(_opened) >= MOST_OPEN:
                _opened.pop(next(iter(_opened)), None)
            counts = open_version(self.state, ref)
            _opened[key] = Idf(version_of(ref), counts.posts, frozen(counts.term), frozen(counts.count))
        return _opened[key]


def time_question(since: int, until: int) -> Question:
    """All posts with since <= time < until."""
    return Question.of({**encode_conditions(Query()), "since": since, "until": until})


def count_posts(parts: Iterable[tuple[PostSegment, np.ndarray]], since: int, until: int) -> TermStatistics:
    """The term statistics of the posts with since <= time < until of some segments, whose deleted rows (ascending) do
    not count.
    """
    return TermStatistics.summed([_counted(segment, gone, time_question(since, until)) for segment, gone in parts])


def _counted(segment: PostSegment, gone: np.ndarray, question: Question) -> TermStatistics:
    low, high = segment.times[-2:].tolist() if len(segment) else (question.until, question.until)
    if question.is_apart(low, high):
        return TermStatistics.none()
    if question.covers(low, high) and not len(gone):
        words = segment.vocabulary
        return _sorted(words.terms, words.counts, len(segment), high)
    found = count_terms(segment, question, gone, Counting.ALL)
    if not len(found.posts):
        return TermStatistics.none()
    ts = segment.ts_of(segment.all_rows)
    inside = (ts >= question.since) & (ts < question.until)
    inside[gone] = False
    return _sorted(segment.terms, found.counts[:-1], int(found.posts[0]), int(ts[inside].max()))


def _sorted(terms: np.ndarray, counts: np.ndarray, posts: int, latest: int) -> TermStatistics:
    """By term, without the boundary and terms that no post has."""
    some = np.flatnonzero((counts > 0) & (terms != 0))
    some = some[np.argsort(terms[some])]
    return TermStatistics(posts, terms[some], counts[some].astype(np.int64), latest)


def count_lists(terms: np.ndarray, offsets: np.ndarray) -> TermStatistics:
    """The statistics of texts given by their terms, with 0 at boundaries."""
    rows = frozen(np.arange(len(offsets) - 1))
    _, _, _, seen, counts = encode_terms(frozen(terms), frozen(offsets.astype(np.int64)), rows)
    some = np.flatnonzero(seen != 0)
    some = some[np.argsort(seen[some])]
    return TermStatistics(len(rows), seen[some], counts[some].astype(np.int64))
