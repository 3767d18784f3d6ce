"""Range keyword search in one segment (SSTD's SRQ): which posts satisfy a question.

The planner knows from counts how often each word occurs and how many rows lie in the blocks that the region and the
time touch, and takes the cheapest of: words first (the inverted lists, then each post's place), place first (all posts
of the blocks), or both (only those parts of the lists that lie in the blocks). A fresh segment has no lists. Where a
time is short, or a condition on an attribute is rare, these come first (`storage.posts.shortcuts`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.storage.posts.attributes import names_in, satisfied
from nearcast.storage.posts.coded_columns import whole_column
from nearcast.storage.posts.derived import attributes_of
from nearcast.storage.posts.kernels.check import check_rows
from nearcast.storage.posts.kernels.range_search import range_rows
from nearcast.storage.posts.kernels.segment_group import range_in
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NOTHING, Question, SegmentWords, words_in
from nearcast.storage.posts.segment_group import SegmentGroup, words_in_group
from nearcast.storage.posts.shortcuts import ShortcutCandidates, is_short, shortcut

METHODS = ("place first", "words first", "words in place")


@dataclass(frozen=True)
class SegmentScan:
    """How a segment was searched: for EXPLAIN."""

    rows: int
    method: str
    why: str
    candidates: int


@dataclass(frozen=True)
class Hits:
    rows: np.ndarray
    scan: SegmentScan


def search_range(segment: PostSegment, question: Question, gone: np.ndarray = NOTHING) -> Hits:
    """The rows that satisfy the question, ascending; `gone` are deleted rows, ascending."""
    words = words_in(question, segment)
    if words.impossible:
        return Hits(NOTHING, SegmentScan(len(segment), "vocabulary", "no post has the words", 0))
    first = shortcut(segment, question, words)
    hits = _rows(segment, question, words, gone) if first is None else _checked(segment, question, words, gone, first)
    rest = question.predicate_list
    if first is not None and first.settled is not None:
        rest = [each for each in rest if each is not first.settled]
    if rest and len(hits.rows):
        return Hits(hits.rows[_satisfy(segment, rest, hits.rows)], hits.scan)
    return hits


@dataclass(frozen=True)
class GroupHits:
    """Of those segments that have any, its number and the rows that satisfy the question, ascending, in the order in
    which the segments were asked for; `scans` tells how each was searched, by its number.
    """

    hits: list[tuple[int, np.ndarray]]
    scans: Callable[[], dict[int, SegmentScan]]


def search_range_in(group: SegmentGroup, members: np.ndarray, question: Question) -> GroupHits:
    """As `search_range`, in some members of a group by few calls; those that a shortcut may serve better one by one."""
    reached = members[group.reached(members, question)]
    words = words_in_group(question, group, reached)
    short = is_short(question, group.rows[words.members], *group.times[words.members].T)
    alone = words.together | short | bool(question.predicates)
    single = {n: search_range(group[n], question, group.gone[n]) for n in words.members[alone].tolist()}
    if single:
        words = words[np.flatnonzero(~alone)]
    rows, bounds, facts = range_in(group.table, words.members, words.for_kernels, question.space_time)
    numbers, counts = words.members.tolist(), np.diff(bounds)
    found = {numbers[n]: rows[bounds[n] : bounds[n + 1]] for n in np.flatnonzero(counts).tolist()}
    if single:
        found |= {n: hits.rows for n, hits in single.items() if len(hits.rows)}
        found = {n: found[n] for n in members.tolist() if n in found}

    def scans() -> dict[int, SegmentScan]:
        out = unsearched(group, members, reached)
        out |= {n: hits.scan for n, hits in single.items()}
        each = zip(numbers, words.frequency(group), words.driven, facts.tolist(), strict=True)
        return out | {n: _scan_of(group[n], frequency, driven, *more) for n, frequency, driven, more in each}

    return GroupHits(list(found.items()), scans)


def unsearched(group: SegmentGroup, members: np.ndarray, reached: np.ndarray) -> dict[int, SegmentScan]:
    """Of segments that were asked for and not searched, why: those that were reached lack the words."""
    out = {n: SegmentScan(len(group[n]), "bounds", "no post in the place and the time", 0) for n in members.tolist()}
    return out | {n: SegmentScan(len(group[n]), "vocabulary", "no post has the words", 0) for n in reached.tolist()}


def meets_predicates(segment: PostSegment, question: Question, rows: np.ndarray) -> np.ndarray:
    """Which of the rows satisfy the conditions on attributes."""
    return _satisfy(segment, question.predicate_list, rows)


def _satisfy(segment: PostSegment, predicates: list[list[Any]], rows: np.ndarray) -> np.ndarray:
    out = np.ones(len(rows), np.bool_)
    rest = []
    for predicate in predicates:
        column = whole_column(segment, predicate[0], len(rows))
        if column is None:
            rest.append(predicate)
        else:
            out &= column.satisfying(predicate)[0][column.codes[rows]]
    if rest:
        wanted = json.dumps(rest)
        out &= satisfied(wanted, attributes_of(segment, rows, names_in(wanted)))
    return out


def _checked(
    segment: PostSegment, question: Question, words: SegmentWords, gone: np.ndarray, first: ShortcutCandidates
) -> Hits:
    """Those of some candidates that are right."""
    rows = first.rows
    timely = first.timely or question.covers(*segment.times[-2:].tolist())
    if question.kind or len(words.code) or len(gone) or not timely:
        rows = check_rows(rows, segment.columns_for_checks, gone, question.space_time, words.code)
    return Hits(rows, SegmentScan(len(segment), first.method, first.why, len(first.rows)))


def _rows(segment: PostSegment, question: Question, words: SegmentWords, gone: np.ndarray) -> Hits:
    rows, *facts = range_rows(
        len(segment), words.drivers, words.enough, segment.inverted, segment.tree, segment.columns_for_checks, gone,
        question.space_time, words.code,
    )  # fmt: skip
    return Hits(rows, _scan_of(segment, words.frequency, len(words.drivers) > 0, *facts))


def _scan_of(
    segment: PostSegment, frequency: int, driven: bool, method: int, touched: int, runs: int, candidates: int
) -> SegmentScan:
    size = len(segment)
    why = f"{touched:,} of {size:,} posts in {runs:,} runs of blocks touched"
    if not segment.listed:
        return SegmentScan(size, "scan", f"fresh: {why}", candidates)
    lists = f"{frequency:,} posts in the lists" if driven else "no word to start from"
    return SegmentScan(size, METHODS[method], f"{lists}, {why}", candidates)
