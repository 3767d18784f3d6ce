"""Counting posts that are no longer kept (`SELECT APPROXIMATE …`, STAR §7): what coarse slots say of a place and a
time is added to what is counted of the posts that are kept.

A count is then an estimate, and comes with what it is at least and at most: of `n` the columns `n_at_least` and
`n_at_most`, of each term of a TopK the fields `at_least` and `at_most`. They hold for certain, for the posts that were
there when they left.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.kinds.aggregates.groups import Groups
from nearcast.kinds.aggregates.query import AggregateQuery, Measure
from nearcast.storage.lexicon import Speller
from nearcast.storage.posts.coarse_slots import CoarseCounts

TERMS = pa.list_(pa.struct([("term", pa.string()), *((name, pa.int64()) for name in ("count", "at_least", "at_most"))]))


@dataclass(frozen=True)
class Coarse:
    """The part of an answer that comes from coarse slots: so many posts."""

    estimate: int
    at_least: int
    at_most: int


def is_for_coarse_slots(query: AggregateQuery) -> bool:
    """Whether coarse slots can answer it: APPROXIMATE counts and TopK by place and time alone, of all posts."""
    alone = query.text is None and not query.predicates and not query.group_by
    plain = not query.having and not query.order and query.limit is None
    known = (Measure("count"), Measure("topk", "text"))
    measures = [each.value for each in query.outputs if isinstance(each.value, Measure)]
    counted = all(Measure(each.function, each.of) in known for each in measures)
    return query.approximate and alone and plain and counted


def with_coarse(
    query: AggregateQuery, groups: Groups, tally: CoarseCounts, spell: Speller, stop: np.ndarray
) -> tuple[pa.Table, Coarse]:
    """The one row of an answer. `groups` are of the posts that are kept, with exact counts of terms."""
    coarse = Coarse(*(int(each[0]) for each in (tally.posts.estimate, tally.posts.at_least, tally.posts.at_most)))
    exact = int(groups.posts.sum())
    columns: dict[str, pa.Array] = {}
    for output in query.outputs:
        assert isinstance(output.value, Measure)
        if output.value.function == "topk":
            columns[output.name] = pa.array([_most_frequent(groups, tally, output.value.k, spell, stop)], TERMS)
        else:
            columns[output.name] = pa.array([exact + coarse.estimate])
            columns[f"{output.name}_at_least"] = pa.array([exact + coarse.at_least])
            columns[f"{output.name}_at_most"] = pa.array([exact + coarse.at_most])
    return pa.table(columns), coarse


def _most_frequent(
    groups: Groups, tally: CoarseCounts, k: int, spell: Speller, stop: np.ndarray
) -> list[dict[str, object]]:
    """The k terms with the greatest estimates, ties by term."""
    terms = np.union1d(groups.term, tally.terms)
    terms = terms[~np.isin(terms, stop)]
    if not len(terms) or k < 1:
        return []
    exact = _of(terms, groups.term, groups.term_posts, 0)
    found = tally.by_term
    count, least = (exact + _of(terms, tally.terms, each, 0) for each in (found.estimate, found.at_least))
    most = exact + _of(terms, tally.terms, found.at_most, tally.unlisted)
    kth = np.partition(count, len(count) - min(k, len(count)))[len(count) - min(k, len(count))]
    best = np.flatnonzero(count >= kth)
    words = spell(terms[best]).to_pylist()
    columns = (words, *(each[best].tolist() for each in (count, least, most)))
    rows = sorted(zip(*columns, strict=True), key=lambda row: (-row[1], row[0]))[:k]
    return [dict(zip(("term", "count", "at_least", "at_most"), row, strict=True)) for row in rows]


def _of(terms: np.ndarray, known: np.ndarray, counts: np.ndarray, otherwise: int) -> np.ndarray:
    """The count of each term; `known` has each at most once."""
    out = np.full(len(terms), otherwise, np.int64)
    there = np.isin(known, terms)
    out[np.searchsorted(terms, known[there])] = counts[there]
    return out
