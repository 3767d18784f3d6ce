"""Posts that meet the conditions, asked once (SSTD's SRQ): newest first, ties by id."""

from dataclasses import replace

import numpy as np

from nearcast.kinds.range.query import RangeQuery
from nearcast.reader.answer import PostRows
from nearcast.reader.post_order import Hit, ordered, rows_by_segment
from nearcast.reader.reader import Reader
from nearcast.reader.roles import Options, PlanPart, SearchRole
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.range_search import GroupHits, search_range_in


class RangeSearch(SearchRole):
    def answer(self, reader: Reader, query: RangeQuery, options: Options) -> PostRows:
        """All segments at once; with a LIMIT the newest first, and older ones only as far as they are needed."""
        question = reader.question(query)
        group, members = reader.segment_group(question, query.columns)
        hits: list[Hit] = []
        times: list[np.ndarray] = []
        searches: list[GroupHits] = []
        width = len(members) if query.limit is None else 1
        while len(members):
            result = search_range_in(group, members[:width], question)
            searches.append(result)
            for number, rows in result.hits:
                hits.append((group[number], rows))
                times.append(group[number].ts_of(rows))
            members, width = members[width:], 2 * width
            if query.limit is not None:
                question = _narrowed(question, times, query.limit)
                members = members[~question.is_apart(*reader.times[members].T)]
        effort = reader.group_effort(question, searches)
        if not hits:
            return PostRows((), query.columns, effort)
        order = ordered(hits, -np.concatenate(times), query.limit)
        return PostRows(rows_by_segment(hits, order), query.columns, effort)

    def explain(self, reader: Reader, query: RangeQuery, answer: PostRows) -> PlanPart:
        first = "" if query.limit is None else f", the first {query.limit:,}"
        return PlanPart(f"newest first, ties by id{first}")


def _narrowed(question: Question, times: list[np.ndarray], limit: int) -> Question:
    """With enough newer posts in hand, older ones need not be looked for."""
    if not limit or sum(len(part) for part in times) < limit:
        return question
    ts = np.concatenate(times)
    return replace(question, since=max(question.since, int(np.partition(ts, len(ts) - limit)[len(ts) - limit])))


ROLE = RangeSearch()
