"""Range keyword search in one segment (SSTD's SRQ): which posts satisfy a question.

The planner knows from counts how often each word occurs and how many rows lie in the blocks that the region and the
time touch, and takes the cheapest of: words first (the inverted lists, then each post's place), place first (all posts
of the blocks), or both (only those parts of the lists that lie in the blocks). A fresh segment has no lists.
"""

from dataclasses import dataclass

import numpy as np

from nearcast.index.attributes import names_in, satisfied
from nearcast.index.derived import attributes_of
from nearcast.index.posts import PostSegment
from nearcast.index.question import NOTHING, Question, words_in
from nearcast.kernels.ranges import range_rows

METHODS = ("place first", "words first", "words in place")


@dataclass(frozen=True)
class Looked:
    """How a segment was searched: for EXPLAIN."""

    rows: int
    method: str
    why: str
    candidates: int


@dataclass(frozen=True)
class Hits:
    rows: np.ndarray
    looked: Looked


def search_range(segment: PostSegment, question: Question, gone: np.ndarray = NOTHING) -> Hits:
    """The rows that satisfy the question, ascending; `gone` are deleted rows, ascending."""
    hits = _rows(segment, question, gone)
    if question.predicates and len(hits.rows):
        return Hits(hits.rows[meets_predicates(segment, question, hits.rows)], hits.looked)
    return hits


def meets_predicates(segment: PostSegment, question: Question, rows: np.ndarray) -> np.ndarray:
    """Which of the rows satisfy the conditions on attributes."""
    if not question.predicates:
        return np.ones(len(rows), np.bool_)
    return satisfied(question.predicates, attributes_of(segment, rows, names_in(question.predicates)))


def _rows(segment: PostSegment, question: Question, gone: np.ndarray) -> Hits:
    size = len(segment)
    words = words_in(question, segment)
    if words.impossible:
        return Hits(NOTHING, Looked(size, "vocabulary", "no post has the words", 0))
    index = (size, words.drivers, words.enough, segment.counts, *segment.inverted, *segment.tree)
    checks = (*segment.columns_for_checks, gone, *question.place, words.code, *question.time)
    rows, method, touched, runs, candidates = range_rows(*(*index, *checks))
    why = f"{touched:,} of {size:,} posts in {runs:,} runs of blocks touched"
    if not segment.listed:
        return Hits(rows, Looked(size, "scan", f"fresh: {why}", candidates))
    lists = f"{words.frequency:,} posts in the lists" if len(words.drivers) else "no word to start from"
    return Hits(rows, Looked(size, METHODS[method], f"{lists}, {why}", candidates))
