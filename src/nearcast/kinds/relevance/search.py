"""Searches for the most relevant posts (Skype §3) over all segments, and what their scores are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nearcast.common.geo.distance import haversine_km
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.kernels.relevant_posts import SLACK
from nearcast.kinds.relevance.newest_posts import EVERYTHING, newest_posts
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.relevance.segment_search import Taste, scores_of, search_relevant
from nearcast.reader.answer import Found, Hit, ordered, pick
from nearcast.storage.dictionary import spelt
from nearcast.storage.posts.question import NOTHING
from nearcast.storage.posts.range_search import Looked

if TYPE_CHECKING:
    from nearcast.reader.reader import Opened, Reader


def find_relevant(reader: "Reader", query: RelevantQuery, version: int | None = None) -> Found:
    """The k posts of highest score, ties by later time, then id; by a version of the idf, the newest unless given."""
    versions = IdfSet(reader.state, reader.manifest)
    idf = versions.newest() if version is None else versions.at(version)
    taste, question = Taste.of(query, idf), reader.question(query)
    cut = EVERYTHING if query.window_posts is None else newest_posts(reader, query.window_posts)
    question = replace(question, since=max(question.since, cut.since))
    opened = sorted(reader.segments(question, query.columns), key=lambda each: -len(each.segment))
    k = min(query.k, sum(len(each.segment) for each in opened))
    best = np.full(max(1, k), np.inf)
    parts: list[tuple[Opened, np.ndarray, np.ndarray]] = []
    looked: list[tuple[str, Looked]] = []
    for each in opened:
        found = search_relevant(each.segment, question, taste, best, cut.hidden(each))
        looked.append((each.ref.name, found.looked))
        parts.append((each, found.rows, found.scores))
    hits: list[Hit] = []
    scores = [np.empty(0)]
    for each, rows, near in parts:
        rows = rows[near >= -best[0] - 2 * SLACK]
        if len(rows):
            hits.append((each.segment, rows))
            scores.append(scores_of(each.segment, rows, taste)[0])
    order, score = best_first(hits, np.concatenate(scores), k)
    return Found(
        pick(hits, order), query.columns, reader.effort(question, lambda: looked), score=score, idf=idf.version
    )


def best_first(hits: Sequence[Hit], scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(the k best of all hits end to end, their scores)."""
    if not len(scores):
        return NOTHING, scores
    ts = np.concatenate([segment.ts_of(rows) for segment, rows in hits])
    by_both = np.lexsort((-ts, -scores))
    later = (np.diff(scores[by_both]) != 0) | (np.diff(ts[by_both]) != 0)
    rank = np.empty(len(scores), np.int64)
    rank[by_both] = np.concatenate(([0], np.cumsum(later)))
    order = ordered(hits, rank, k)
    return order, scores[order]


@dataclass(frozen=True)
class ScoreParts:
    """What the score of a post is made of; `words` are those that it shares, each with its weight in the query and in
    the post.
    """

    score: float
    nearness: float
    km: float
    cosine: float
    words: tuple[tuple[str, float, float], ...]


def score_parts(reader: "Reader", query: RelevantQuery, found: Found) -> list[ScoreParts]:
    """Of each post of an answer, in its order."""
    assert found.idf is not None
    taste = Taste.of(query, IdfSet(reader.state, reader.manifest).at(found.idf))
    asked = dict(zip(taste.words.tolist(), taste.weights.tolist(), strict=True))
    spelling = dict(zip(asked, spelt(reader.dictionary, taste.words), strict=True))
    out: dict[int, ScoreParts] = {}
    for each in found.picked:
        posts = each.segment.columns(each.rows)
        terms, offsets, weights = taste.idf.weigh(posts.terms, posts.offsets)
        parts = zip(*(values.tolist() for values in scores_of(each.segment, each.rows, taste)), strict=True)
        for n, (place, (score, near, alike)) in enumerate(zip(each.places.tolist(), parts, strict=True)):
            own = slice(offsets[n], offsets[n + 1])
            theirs = zip(terms[own].tolist(), weights[own].tolist(), strict=True)
            shared = tuple((spelling[term], asked[term], weight) for term, weight in theirs if term in asked)
            km = haversine_km(taste.lon, taste.lat, float(posts.lon[n]), float(posts.lat[n]))
            out[place] = ScoreParts(score, near, km, alike, shared)
    return [out[place] for place in sorted(out)]
