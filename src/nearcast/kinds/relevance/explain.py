"""EXPLAIN of the most relevant: the version of the idf, and what each score is made of."""

from collections.abc import Iterator
from dataclasses import dataclass

from nearcast.common.geo.distance import haversine_km
from nearcast.kinds.relevance.idf import IdfSet
from nearcast.kinds.relevance.query import RelevantQuery
from nearcast.kinds.relevance.search import RelevantRows
from nearcast.kinds.relevance.segment_search import Target, scores_of
from nearcast.reader.reader import Reader
from nearcast.reader.roles import PlanPart, Step
from nearcast.reader.row_format import post_rows
from nearcast.storage.dictionary import spelled


def explain_relevance(reader: Reader, query: RelevantQuery, answer: RelevantRows) -> PlanPart:
    place = f"({query.lon:g}, {query.lat:g}), alpha {query.alpha:g}, reach {query.reach_km:,.0f} km"
    order = f"most relevant to {place} first, ties by later time, then id, the first {query.k:,}"
    return PlanPart(order, rows=_scores(reader, query, answer))


def _scores(reader: Reader, query: RelevantQuery, answer: RelevantRows) -> Iterator[Step]:
    """The version of the idf, and of each row the parts of its score."""
    window = "all posts" if query.window_posts is None else f"the newest {query.window_posts:,} posts"
    yield "idf", f"version {answer.idf}; {window}"
    for row, parts in zip(post_rows(answer.posts, ("id",)), score_parts(reader, query, answer), strict=True):
        near = f"{query.alpha:g} × nearness {parts.nearness:.6f} ({parts.km:,.3f} km)"
        alike = f"{1 - query.alpha:g} × cosine {parts.cosine:.6f}"
        words = " + ".join(f"{word} {mine:.6f} × {theirs:.6f}" for word, mine, theirs in parts.words)
        yield f"score of {row['id']}", f"{parts.score:.6f} = {near} + {alike} ({words})"


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


def score_parts(reader: Reader, query: RelevantQuery, answer: RelevantRows) -> list[ScoreParts]:
    """Of each post of an answer, in its order."""
    target = Target.of(query, IdfSet(reader.state, reader.manifest).at(answer.idf))
    wanted = dict(zip(target.words.tolist(), target.weights.tolist(), strict=True))
    words = dict(zip(wanted, spelled(reader.dictionary, target.words), strict=True))
    out: dict[int, ScoreParts] = {}
    for each in answer.parts:
        posts = each.segment.columns(each.rows)
        terms, offsets, weights = target.idf.weigh(posts.terms, posts.offsets)
        parts = zip(*(values.tolist() for values in scores_of(each.segment, each.rows, target)), strict=True)
        for n, (place, (score, near, alike)) in enumerate(zip(each.places.tolist(), parts, strict=True)):
            own = slice(offsets[n], offsets[n + 1])
            weighted = zip(terms[own].tolist(), weights[own].tolist(), strict=True)
            shared = tuple((words[term], wanted[term], weight) for term, weight in weighted if term in wanted)
            km = haversine_km(target.lon, target.lat, float(posts.lon[n]), float(posts.lat[n]))
            out[place] = ScoreParts(score, near, km, alike, shared)
    return [out[place] for place in sorted(out)]
