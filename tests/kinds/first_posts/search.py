"""The first post of each cell, asked once."""

from typing import ClassVar

import numpy as np

from nearcast.reader.answer import PostRows
from nearcast.reader.post_order import ordered, rows_by_segment
from nearcast.reader.reader import Reader
from nearcast.reader.roles import Options, PlanPart, SearchRole
from nearcast.storage.posts.range_search import search_range_in
from tests.kinds.first_posts.query import FirstPostsQuery


class FirstPostsSearch(SearchRole):
    options: ClassVar = {"south": "south is for the first posts of cells"}

    def answer(self, reader: Reader, query: FirstPostsQuery, options: Options) -> PostRows:
        """With the option `south`, only cells that begin south of it."""
        question = reader.question(query)
        group, members = reader.segment_group(question, query.columns)
        result = search_range_in(group, members, question)
        effort = reader.group_effort(question, [result])
        hits = [(group[number], rows) for number, rows in result.hits]
        if not hits:
            return PostRows((), query.columns, effort)
        order = ordered(hits, np.concatenate([segment.ts_of(rows) for segment, rows in hits]))
        places = [segment.places(rows) for segment, rows in hits]
        lon, lat = (np.floor(np.concatenate([each[axis] for each in places])) for axis in range(2))
        _, first = np.unique(np.stack([lon, lat])[:, order], axis=1, return_index=True)
        order = order[np.sort(first)]
        order = order[lat[order] < options.get("south", 90.0)]
        return PostRows(rows_by_segment(hits, order), query.columns, effort, {"cell_lat": lat[order]})

    def explain(self, reader: Reader, query: FirstPostsQuery, answer: PostRows) -> PlanPart:
        return PlanPart("earliest first, ties by id", (("cells", f"{len(answer):,}"),))


ROLE = FirstPostsSearch()
