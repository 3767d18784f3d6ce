"""The k nearest posts, asked once (SSTD's SKQ): nearest first, ties by id."""

from collections.abc import Callable

import numpy as np

from nearcast.kinds.nearest.query import NearestQuery
from nearcast.reader.answer import PostRows
from nearcast.reader.current_answer import CurrentAnswer
from nearcast.reader.post_order import Hit, ordered, rows_by_segment
from nearcast.reader.reader import Reader
from nearcast.reader.roles import Options, PlanPart, SearchRole
from nearcast.reader.select_text import SelectPart, exact_number
from nearcast.storage.posts.nearest_search import search_nearest
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.posts.range_search import meets_predicates
from nearcast.storage.subscriptions.rows import Rows

MORE = 8  # times as many of the nearest are looked at, where attributes have rejected some


class NearestSearch(SearchRole):
    def answer(self, reader: Reader, query: NearestQuery, options: Options) -> PostRows:
        return nearest_to(reader, reader.question(query), query.lon, query.lat, query.k, query.columns)

    def explain(self, reader: Reader, query: NearestQuery, answer: PostRows) -> PlanPart:
        return PlanPart(f"nearest to ({query.lon:g}, {query.lat:g}) first, ties by id, the first {query.k:,}")

    def current(self, reader: Reader, query_id: str | int) -> CurrentAnswer | None:
        from nearcast.kinds.nearest.current import current_nearest

        return current_nearest(reader, query_id)

    def select(self, rows: Rows, row: int, word: Callable[[int], str]) -> SelectPart:
        lon, lat, k = rows.points[row].tolist()
        return SelectPart(
            after=f" ORDER BY DISTANCE(loc, POINT({exact_number(lon)}, {exact_number(lat)})) LIMIT {int(k)}"
        )


def nearest_to(
    reader: Reader, question: Question, lon: float, lat: float, k: int, columns: tuple[str, ...] | None
) -> PostRows:
    """The k nearest posts that satisfy a question. The largest segments go first: what they give is the radius that the
    others are pruned by (SSTD §6.2).
    """
    group, members = reader.segment_group(question, columns)
    total = int(group.rows[members].sum())
    k = wanted = min(k, total)
    while True:
        result = search_nearest(group, members, question, lon, lat, wanted)
        hits: list[Hit] = [(group[number], rows) for number, rows, _ in result.hits]
        km = np.concatenate([np.empty(0), *(part for *_, part in result.hits)])
        complete = len(km) < wanted or wanted == total
        if question.predicates:
            keep = [meets_predicates(segment, question, rows) for segment, rows in hits]
            hits = [(segment, rows[mask]) for (segment, rows), mask in zip(hits, keep, strict=True)]
            km = km[np.concatenate([np.empty(0, np.bool_), *keep])]
        if not question.predicates or complete or len(km) >= k:
            break
        wanted = min(MORE * wanted, total)
    order = ordered(hits, km, k) if len(km) else NOTHING
    effort = reader.group_effort(question, [result])
    return PostRows(rows_by_segment(hits, order), columns, effort, {"distance_km": km[order]})


ROLE = NearestSearch()
