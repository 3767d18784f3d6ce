"""Candidates by time, by an attribute or by several words, where these say more of a post than its place and its rarest
word do.

Posts lie by place, so a time that is short touches every block: in order of time, kept for segments that are searched
so, the posts of a window are a run. Where an attribute is kept as codes (`storage.posts.coded_columns`), how many posts
satisfy a condition on it is known beforehand, and finding them is a pass over small numbers. Of several frequent words,
reading their lists side by side is quicker than reading each post that has one of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.storage.posts.coded_columns import Column, kept_column, time_order
from nearcast.storage.posts.kernels.blocks import runs_touched
from nearcast.storage.posts.kernels.grouping import rows_coded, time_bounds
from nearcast.storage.posts.kernels.postings import rows_in_runs
from nearcast.storage.posts.kernels.range_search import CHECK, FETCH, READ_GAP
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question, SegmentWords

SCAN, SORT = 1.0, 20.0  # a step over codes, and the sorting of a row, in nanoseconds (as in kernels/ranges.py)
READ_POST = 400.0  # the words of a post, wherever it lies
FREQUENT = 2_000  # posts with the rarest of several words: fewer are quickly looked at
SHORT = 8  # a time is short if it is less than one of so many parts of the segment's
SMALL = 10_000  # posts, for which nothing is worth planning


@dataclass(frozen=True)
class ShortcutCandidates:
    """Rows, ascending, among which are all that satisfy a question. `timely` if they satisfy its time; they
    satisfy the predicate that is `settled`.
    """

    rows: np.ndarray
    method: str
    why: str
    timely: bool = False
    settled: list[Any] | None = None


def shortcut(segment: PostSegment, question: Question, words: SegmentWords) -> ShortcutCandidates | None:
    """The candidates, if that is cheaper than place and words."""
    if len(segment) < SMALL:
        return None
    first, last = segment.times[-2:].tolist()
    short = bool(is_short(question, len(segment), first, last))
    several = segment.listed and reads_together(words)
    if not short and not question.predicates and not several:
        return None
    otherwise = _cost(segment, question, words)
    attribute = _rarest(segment, question)
    by_attribute = np.inf if attribute is None else SCAN * len(segment) + (FETCH + CHECK) * attribute[2]
    by_lists = READ_GAP * int(segment.counts[list(words.together)].sum()) if several else np.inf
    timely = question.part_of(first, last) * len(segment)
    if short and (SORT + FETCH + CHECK) * timely < min(otherwise, by_attribute, by_lists):
        found = _by_time(segment, question, int(min(otherwise, by_attribute, by_lists) / CHECK))
        if found is not None:
            return found
    if several and by_lists < min(otherwise, by_attribute):
        return _by_lists(segment, words)
    if attribute is not None and by_attribute < otherwise:
        return _by_attribute(*attribute)
    return None


def is_short(question: Question, rows: Any, min_ts: Any, max_ts: Any) -> Any:
    """Whether a question's time is so short a part of a segment's that it may be worth to begin with it; of one
    segment or, by arrays, of several.
    """
    return (question.part_of(min_ts, max_ts) * SHORT < 1) & (rows >= SMALL)


def reads_together(words: SegmentWords) -> bool:
    """Whether the lists of several words may be worth reading side by side, where a segment has lists."""
    return len(words.together) > 1 and words.frequency > FREQUENT


def _cost(segment: PostSegment, question: Question, words: SegmentWords) -> float:
    """What `range_rows` would spend, about."""
    by_words = np.inf
    if len(words.drivers) and segment.listed:
        by_words = words.frequency * (READ_GAP + (FETCH if words.enough else READ_POST))
    if not question.kind:
        return min(by_words, len(segment) * CHECK)
    *_, touched = runs_touched(len(segment), segment.tree, question.space_time)
    return min(by_words, touched * CHECK)


def _by_lists(segment: PostSegment, words: SegmentWords) -> ShortcutCandidates:
    """Posts that have all of the words, by the lists of so many that reading on is no longer worth it."""
    begins, ends = np.zeros(1, np.int64), np.full(1, len(segment))
    read = 0
    for code in words.together:
        count = segment.counts[code]
        if read and READ_GAP * int(count) > READ_POST * len(begins):
            break
        rows, looked = rows_in_runs(np.int64(code), segment.inverted, begins, ends)
        begins, ends = rows, rows + 1
        read += int(looked)
    why = f"{len(begins):,} posts with {len(words.together)} words, by {read:,} places in their lists"
    return ShortcutCandidates(begins, "lists together", why)


def _by_time(segment: PostSegment, question: Question, looked_at: int) -> ShortcutCandidates | None:
    order = time_order(segment, looked_at)
    if order is None:
        return None
    ts = segment.arrays["ts"], segment.ts_width, segment.ts_base
    begin, end = time_bounds(*(order, *ts, *question.time))
    rows = np.sort(order[begin:end]).astype(np.int64)
    return ShortcutCandidates(rows, "time first", f"{len(rows):,} of {len(segment):,} posts in the time", timely=True)


def _rarest(segment: PostSegment, question: Question) -> tuple[Column, list[Any], int] | None:
    """Of the predicates on columns that are kept, the one that the fewest posts satisfy: (column, predicate, posts)."""
    best: tuple[Column, list[Any], int] | None = None
    for predicate in question.predicate_list:
        column = kept_column(segment, predicate[0])
        if column is not None:
            _, posts = column.satisfying(predicate)
            if best is None or posts < best[2]:
                best = column, predicate, posts
    return best


def _by_attribute(column: Column, predicate: list[Any], posts: int) -> ShortcutCandidates:
    rows = rows_coded(column.codes, column.satisfying(predicate)[0], posts)
    why = f"{posts:,} of {len(column.codes):,} posts by {predicate[0]}"
    return ShortcutCandidates(rows, "attribute first", why, settled=predicate)
