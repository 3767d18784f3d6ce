"""The most relevant posts of one segment (Skype §3), pruned by what other segments have found.

The words asked for are taken by weight, the heaviest first: the list of each is read, and a post is tried under the
first of its words. No post without the words so far can have a cosine above the length of the rest of the query's
vector (its prefix, §5.1, seen from the side of posts); where that is too little, the lists of the rest, which are the
long ones, are not read. A long list is read only where the k-th best so far leaves a place a chance. Conditions on
attributes come first, and those on words that are much rarer: then the posts that satisfy them are tried.
"""

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.expressions import Literal
from nearcast.common.geo import containment as regions
from nearcast.common.geo.shapes import Circle
from nearcast.kinds.relevance.kernels.relevant_posts import (
    SLACK,
    AskedRelevance,
    WordWeights,
    relevant_among,
    true_scores,
)
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.relevance.vectors import Idf
from nearcast.storage.posts.kernels.blocks import runs_touched
from nearcast.storage.posts.kernels.postings import rows_in_runs
from nearcast.storage.posts.kernels.segment_arrays import SpaceTimeRange
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import ANYTHING, NOTHING, Question, words_in
from nearcast.storage.posts.range_search import SegmentScan, search_range

LONG = 2_000  # posts of a list, from which on it is read by place
SEEDED = 20_000  # from here on a few near posts are tried first, for what they rule out
NEAREST_KM, WIDER, PLENTY = 10.0, 4.0, 30  # of those: the first circle, the next, and how many posts for each of k
RARER = 16  # times: then conditions come before lists, of which bounds leave most out
MOST_FOLDED = 256  # conjunctions
NO_BOUND = -np.inf


@dataclass(frozen=True)
class Target:
    """What is asked for: a place, alpha, reach, and words as a vector of unit length by one version of the idf."""

    lon: float
    lat: float
    alpha: float
    reach: float
    words: np.ndarray
    weights: np.ndarray
    idf: Idf

    @classmethod
    def of(cls, query: RelevantQuery, idf: Idf) -> "Target":
        terms = np.array(query.words, np.uint64)
        words, _, weights = idf.weigh(terms, np.array([0, len(terms)]))
        at = float(query.lon), float(query.lat)
        return cls(*at, float(query.alpha), float(query.reach_km), frozen(words), frozen(weights), idf)


@dataclass(frozen=True)
class RelevantHits:
    """Rows that may be among the k best, with scores that are right but for SLACK."""

    rows: np.ndarray
    scores: np.ndarray
    scan: SegmentScan


@dataclass(frozen=True)
class Known:
    """What has been worked out of a segment by one version: see `kinds.relevance.kernels.relevant_posts`."""

    idf: Idf
    rarity: np.ndarray
    lengths: np.ndarray


_known: "WeakKeyDictionary[PostSegment, Known]" = WeakKeyDictionary()


def known_of(segment: PostSegment, idf: Idf) -> Known:
    """Of the version that was last asked for."""
    found = _known.get(segment)
    if found is None or found.idf is not idf:
        found = Known(idf, np.zeros(len(segment.terms)), np.zeros(len(segment), np.float32))
        _known[segment] = found
    return found


def search_relevant(
    segment: PostSegment, question: Question, target: Target, best: np.ndarray, gone: np.ndarray = NOTHING
) -> RelevantHits:
    """All posts of the segment that have one of the words and may be among the k best.

    `best` is a heap of the k greatest scores over all segments, negated, the least of them first; it is kept up.
    """
    search = _Search(segment, question, target, best, gone)
    if not len(search.codes):
        return RelevantHits(NOTHING, np.empty(0), SegmentScan(len(segment), "vocabulary", "no post has the words", 0))
    words = search.conditions
    if words.impossible:
        return RelevantHits(
            NOTHING, np.empty(0), SegmentScan(len(segment), "vocabulary", "no post has the words asked for", 0)
        )
    rarer = len(words.drivers) > 0 and words.frequency * RARER < LONG + segment.counts[search.codes].sum()
    if question.predicates or rarer:
        return search.conditions_first()
    return search.lists() if segment.listed else search.scan()


def scores_of(segment: PostSegment, rows: np.ndarray, target: Target) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(score, nearness, cosine) of some posts, exactly."""
    posts = segment.columns(rows)
    vectors = target.idf.weigh(posts.terms, posts.offsets)
    asked = (target.lon, target.lat, target.alpha, target.reach, target.words, target.weights)
    return true_scores(*(*asked, posts.lon, posts.lat, *(frozen(each) for each in vectors)))


class _Search:
    def __init__(
        self, segment: PostSegment, question: Question, target: Target, best: np.ndarray, gone: np.ndarray
    ) -> None:
        self.segment, self.question, self.target, self.best, self.gone = segment, question, target, best, gone
        codes = segment.codes_of(target.words)
        order = np.argsort(-target.weights, kind="stable")
        order = order[codes[order] >= 0]
        self.conditions = words_in(question, segment)
        self.codes, self.pulls = frozen(codes[order].astype(np.int64)), frozen(target.weights[order])
        known = known_of(segment, target.idf)
        idf = target.idf
        words = (segment.terms, frozen(idf.term), idf.rarity(), idf.unknown)
        self.weighing = tuple(WordWeights(known.rarity, known.lengths, *words))
        at = (target.lon, target.lat, target.alpha, target.reach)
        self.asked = tuple(AskedRelevance(*at, self.codes, self.pulls))
        rarity = _weights(idf, target.words[order])
        self.most = np.cumsum((self.pulls * rarity)[::-1])[::-1]  # inner products of posts with words from there on
        self.caps = np.minimum(1.0, np.sqrt(np.cumsum((self.pulls**2)[::-1])[::-1]) * (1 + SLACK))
        self.tried = 0

    def lists(self) -> RelevantHits:
        """List by list."""
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        read, skipped = 0, 0
        for first, code in enumerate(self.codes.tolist()):
            cap = float(self.caps[first])
            count = int(self.segment.counts[code])
            floor = -self.best[0]
            if floor == NO_BOUND and count > SEEDED:
                floor = self.seed(first)
            if self.target.alpha + (1.0 - self.target.alpha) * cap < floor - SLACK:
                skipped = len(self.codes) - first
                break
            rows = self.listed(code, self.radius(floor, cap)) if count > LONG else self.listed(code)
            read += len(rows)
            parts.append(self.among(rows, first, floor, self.best))
        rows, scores = (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else (NOTHING, np.empty(0))
        why = f"{read:,} posts read from {len(self.codes) - skipped:,} lists, {skipped:,} lists left out"
        return RelevantHits(rows, scores, SegmentScan(len(self.segment), "words first", why, self.tried))

    def scan(self) -> RelevantHits:
        """A fresh segment has no lists."""
        rows, scores = self.among(self.segment.all_rows, 0, NO_BOUND, self.best)
        return RelevantHits(rows, scores, SegmentScan(len(self.segment), "scan", "fresh: all posts", self.tried))

    def conditions_first(self) -> RelevantHits:
        """The posts that satisfy the conditions, and have one of the words where that can be said along with them."""
        hits = search_range(self.segment, _with_one_of(self.question, self.target.words), self.gone)
        self.conditions, self.gone = ANYTHING, NOTHING  # which are met
        rows, scores = self.among(hits.rows, 0, NO_BOUND, self.best)
        return RelevantHits(rows, scores, replace(hits.scan, why=f"conditions first: {hits.scan.why}"))

    def among(self, rows: np.ndarray, first: int, floor: float, best: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not len(rows):
            return NOTHING, np.empty(0)
        bounds = (float(self.most[first]), float(self.caps[first]), float(floor))
        checks = (self.segment.columns_for_checks, self.gone, self.question.space_time, self.conditions.code)
        found, scores, read = relevant_among(rows, first, *bounds, best, self.asked, self.weighing, *checks)
        self.tried += int(read)
        return found, scores

    def seed(self, first: int) -> float:
        """No more than the k-th best score: that of some near posts."""
        count, size = int(self.segment.counts[self.codes[first]]), len(self.segment)
        km, wanted = NEAREST_KM, PLENTY * len(self.best) * size / count
        while True:
            begins, ends, touched = self.runs(km)
            if self.question.kind or touched >= min(wanted, size) or km > self.target.reach:
                break
            km *= WIDER
        rows = self.in_runs(int(self.codes[first]), begins, ends)
        best = np.full(len(self.best), np.inf)
        self.among(rows, first, NO_BOUND, best)
        return float(-best[0])

    def radius(self, floor: float, cap: float) -> float:
        """Farther posts score less than `floor`, whatever their words; at least the reach where there is no such."""
        alpha = self.target.alpha
        missing = floor - SLACK - (1.0 - alpha) * cap
        return self.target.reach * (alpha - missing) / alpha if missing > 0 else np.inf

    def runs(self, km: float) -> tuple[np.ndarray, np.ndarray, int]:
        """Runs of rows of the blocks that touch the question's region and time; where it asks for no region, those in a
        circle.
        """
        asked = self.question.space_time
        if not self.question.kind and km < self.target.reach:
            kind, box, shape = regions.encode(Circle(self.target.lon, self.target.lat, km * (1 + SLACK) + SLACK))
            circle = frozen(np.array(shape, np.float64))
            asked = tuple(SpaceTimeRange(int(kind), *box, circle, *self.question.time))
        begins, ends, touched = runs_touched(len(self.segment), self.segment.tree, asked)
        return begins, ends, int(touched)

    def listed(self, code: int, km: float | None = None) -> np.ndarray:
        if km is None:
            return self.in_runs(code, np.zeros(1, np.int64), np.full(1, len(self.segment)))
        return self.in_runs(code, *self.runs(km)[:2])

    def in_runs(self, code: int, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        rows, _ = rows_in_runs(code, self.segment.inverted, begins, ends)
        return rows


def _weights(idf: Idf, words: np.ndarray) -> np.ndarray:
    """The idf of each word."""
    if not len(idf.term):
        return np.full(len(words), idf.unknown)
    at = np.minimum(np.searchsorted(idf.term, words), len(idf.term) - 1)
    return np.where(idf.term[at] == words, idf.rarity()[at], idf.unknown)


def _with_one_of(question: Question, words: np.ndarray) -> Question:
    """The question, and that a post has one of the words, unless that makes too many conjunctions."""
    if len(question.conjunctions) * len(words) > MOST_FOLDED:
        return question
    wanted = [Literal((int(word),), False) for word in words.tolist()]
    both = tuple((each, *conjunction) for conjunction in question.conjunctions for each in wanted)
    return replace(question, conjunctions=both)
