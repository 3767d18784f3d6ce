"""The most relevant posts (Skype §3), asked once: best first, ties by later time, then id."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.kernels.relevant_posts import SLACK
from nearcast.kinds.relevance.newest_posts import EVERYTHING, newest_posts
from nearcast.kinds.relevance.query import HALF_WORLD_KM, RelevantQuery
from nearcast.kinds.relevance.segment_search import Target, scores_of, search_relevant
from nearcast.reader.answer import PostRows
from nearcast.reader.current_answer import CurrentAnswer
from nearcast.reader.post_order import Hit, ordered, rows_by_segment
from nearcast.reader.reader import OpenSegment, Reader
from nearcast.reader.roles import Options, PlanPart, SearchRole
from nearcast.reader.select_text import SelectPart, exact_number
from nearcast.storage.posts.question import NOTHING
from nearcast.storage.posts.range_search import SegmentScan
from nearcast.storage.subscriptions.rows import Rows


@dataclass(frozen=True, kw_only=True)
class RelevantRows(PostRows):
    """Posts with their `score`; `idf` is the version of the term statistics that the scores come from."""

    idf: int

    @property
    def footnote(self) -> str:
        return f"scores by version {self.idf} of the idf"


class RelevanceSearch(SearchRole):
    options: ClassVar = {"idf": "a version of the idf is for ORDER BY RELEVANCE: this search has no scores"}

    def answer(self, reader: Reader, query: RelevantQuery, options: Options) -> RelevantRows:
        return most_relevant(reader, query, options.get("idf"))

    def explain(self, reader: Reader, query: RelevantQuery, answer: RelevantRows) -> PlanPart:
        from nearcast.kinds.relevance.explain import explain_relevance

        return explain_relevance(reader, query, answer)

    def current(self, reader: Reader, query_id: str | int) -> CurrentAnswer | None:
        from nearcast.kinds.relevance.current import current_relevant

        return current_relevant(reader, query_id)

    def select(self, rows: Rows, row: int, word: Callable[[int], str]) -> SelectPart:
        lon, lat, k, alpha, reach, posts, window = rows.scoring[row].tolist()
        terms = rows.words[rows.words_offsets[row] : rows.words_offsets[row + 1]].tolist()
        words = " ".join(word(term) for term in terms)
        far = "" if reach == HALF_WORLD_KM else f", {exact_number(reach)} km"
        length = f"{int(posts)} POSTS" if posts else f"{window / 1e6:.15g} SECONDS"
        place = f"POINT({exact_number(lon)}, {exact_number(lat)})"
        call = f"RELEVANCE({place}, '{words}', {exact_number(alpha)}{far})"
        return SelectPart(after=f" ORDER BY {call} DESC LIMIT {int(k)} WINDOW {length}")


def most_relevant(reader: Reader, query: RelevantQuery, version: int | None = None) -> RelevantRows:
    """The k posts of highest score by a version of the idf, the newest unless given."""
    versions = IdfSet(reader.state, reader.manifest)
    idf = versions.newest() if version is None else versions.at(version)
    target, question = Target.of(query, idf), reader.question(query)
    cut = EVERYTHING if query.window_posts is None else newest_posts(reader, query.window_posts)
    question = replace(question, since=max(question.since, cut.since))
    segments = sorted(reader.segments(question, query.columns), key=lambda each: -len(each.segment))
    k = min(query.k, sum(len(each.segment) for each in segments))
    best = np.full(max(1, k), np.inf)
    parts: list[tuple[OpenSegment, np.ndarray, np.ndarray]] = []
    scans: list[tuple[str, SegmentScan]] = []
    for each in segments:
        candidates = search_relevant(each.segment, question, target, best, cut.hidden(each))
        scans.append((each.ref.name, candidates.scan))
        parts.append((each, candidates.rows, candidates.scores))
    hits: list[Hit] = []
    scores = [np.empty(0)]
    for each, rows, near in parts:
        rows = rows[near >= -best[0] - 2 * SLACK]
        if len(rows):
            hits.append((each.segment, rows))
            scores.append(scores_of(each.segment, rows, target)[0])
    order, score = best_first(hits, np.concatenate(scores), k)
    effort = reader.effort(question, lambda: scans)
    return RelevantRows(rows_by_segment(hits, order), query.columns, effort, {"score": score}, idf=idf.version)


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


ROLE = RelevanceSearch()
