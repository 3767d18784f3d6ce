"""Subscriptions to frequent terms, grouped by region (SSTD's CTQ §6.1): what is due at some beats, counted
over the posts of a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.geo.shapes import EVERYWHERE
from nearcast.engine.ticks import Due
from nearcast.kinds.terms.kernels.cell_reports import report_cells
from nearcast.kinds.terms.kernels.report_arrays import (
    DueReports,
    MemberRegions,
    ReportGroups,
    Spellings,
    WindowPosts,
)
from nearcast.kinds.terms.kernels.tick_reports import MOST, cut_groups, report_groups
from nearcast.kinds.terms.window import FREQUENT, PostWindow
from nearcast.language import decode_code
from nearcast.storage.posts.question import NOTHING, Question
from nearcast.storage.subscriptions.filing import WORLD
from nearcast.storage.subscriptions.kernels.register import z_codes
from nearcast.storage.subscriptions.rows import Rows

SPREAD = 2.0  # times as large as its largest region may the bounding box of a group be
MANY_ROWS, MANY_POSTS = 200, 20_000  # from which on tables of cells are made
BY_PLACE = -1  # in place of a list of posts
WHOLE = (-180.0, -90.0, 180.0, 90.0)


@dataclass(frozen=True)
class Reports:
    """Report i is of `row[i]` and about the window that ends at `window_end[i]`; its words end at `rows_end[i]`.

    `skipped` is not 0 where it stands for so many empty ones.
    """

    row: np.ndarray
    window_end: np.ndarray
    skipped: np.ndarray
    rows_end: np.ndarray
    terms: pa.LargeStringArray
    counts: np.ndarray
    empty: np.ndarray  # of each row of what was due, afterwards

    def __len__(self) -> int:
        return len(self.row)

    def lists(self) -> pa.ListArray:
        """The rows of each report."""
        offsets = pa.array(np.concatenate([[0], self.rows_end]).astype(np.int32))
        fields = [self.terms.cast(pa.string()), pa.array(self.counts)]
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, ["term", "count"]))


def share_of(due: Due, worker: int, workers: int) -> Due:
    """The part of one worker: whole groups, dealt out in turn."""
    order, firsts, _ = groups(due.rows)
    group = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
    return due if workers == 1 else due.take(np.sort(order[group % workers == worker]))


def groups(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(order, firsts, conditions): rows in an order in which those of a group are neighbours, where groups begin, and a
    number of each row's words and attributes, 0 for none.
    """
    conditions = _conditions(rows)
    boxes = rows.boxes
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    z = z_codes(frozen(middle[:, 0].copy()), frozen(middle[:, 1].copy()), np.array(WORLD))
    area = np.abs(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    size = np.floor(np.log2(np.maximum(area, 1e-18)) / 2).astype(np.int64)
    columns = (size, rows.ticks[:, 1], rows.ticks[:, 0], conditions)
    order = np.lexsort((z, *columns))
    changes = np.zeros(len(order), np.bool_)
    for column in columns:
        changes[1:] |= column[order][1:] != column[order][:-1]
    firsts = cut_groups(frozen(np.ascontiguousarray(boxes[order])), np.cumsum(changes), MOST, SPREAD)
    return order, firsts, conditions


def _conditions(rows: Rows) -> np.ndarray:
    out = np.zeros(len(rows), np.int64)
    has = np.diff(rows.code_offsets.astype(np.int64)) > 0
    if len(rows.predicates):
        has |= rows.predicates.is_valid().to_numpy(zero_copy_only=False)
    known: dict[tuple[bytes, str | None], int] = {}
    for row in np.flatnonzero(has).tolist():
        code = rows.code[rows.code_offsets[row] : rows.code_offsets[row + 1]].tobytes()
        predicates = rows.predicates[row].as_py() if len(rows.predicates) else None
        out[row] = known.setdefault((code, predicates), len(known) + 1)
    return out


def report(due: Due, window: PostWindow) -> Reports:
    """All reports that are due. `window` has the posts later than `due.since`."""
    at_once = _at_once(due, window)
    parts = [(rows, _from_cells(due.take(rows), window)) for rows in at_once]
    rest = np.setdiff1d(np.arange(len(due)), np.concatenate([np.empty(0, np.int64), *at_once]))
    if len(rest):
        parts.append((rest, _sliding(due.take(rest), window)))
    return _united(parts, len(due), window)


Found = tuple[np.ndarray, ...]  # what the kernels give, and the empty reports in a row afterwards


def _at_once(due: Due, window: PostWindow) -> list[np.ndarray]:
    """Many rows without words and attributes that report at one beat on one window: tables of cells pay for them."""
    beats = due.rows.ticks
    plain = np.flatnonzero((_conditions(due.rows) == 0) & (due.count == 1))
    if len(plain) < MANY_ROWS or len(window) < MANY_POSTS:
        return []
    kinds = np.stack([due.begin[plain], beats[plain, 0], beats[plain, 1]], axis=1)
    _, which, counts = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
    return [plain[which.ravel() == number] for number in np.flatnonzero(counts >= MANY_ROWS).tolist()]


def _from_cells(due: Due, window: PostWindow) -> Found:
    order, firsts, _ = groups(due.rows)
    due = due.take(order)
    rows, now = due.rows, int(due.begin[0])
    length, beat = rows.ticks[0, :2].tolist()
    cells = window.cells(now - length, now)
    empty, k = due.empty.copy(), frozen(rows.ticks[:, 2].copy())
    found = report_cells(
        cells.posts, cells.tables, cells.ranked, FREQUENT, _spellings(window), frozen(firsts), _regions(rows), k,
        np.int64(now), np.int64(beat), empty, frozen(due.final),
    )  # fmt: skip
    return _ordered(order, found, empty)


def _spellings(window: PostWindow) -> Spellings:
    return Spellings(window.lexicon.prefixes, window.lexicon.starts, window.lexicon.data)


def _regions(rows: Rows) -> MemberRegions:
    """As kernels take them."""
    offsets = frozen(rows.shape_offsets.astype(np.int64))
    return MemberRegions(rows.kinds, frozen(np.ascontiguousarray(rows.boxes)), rows.shape, offsets)


def _ordered(order: np.ndarray, found: Found, empty: np.ndarray) -> Found:
    """What was found of rows in some order, by the rows."""
    after = np.empty(len(order), np.int64)
    after[order] = empty
    return (order[found[0]], *found[1:], after)


def _sliding(due: Due, window: PostWindow) -> Found:
    order, firsts, conditions = groups(due.rows)
    due = due.take(order)
    rows = due.rows
    lists = [_listed(due, window, a, b, conditions[order[a]]) for a, b in pairwise(firsts)]
    list_starts = np.cumsum([0, *(len(each) for each in lists)])
    several = bool((due.count > 1).any()) or len(np.unique(due.begin[due.count > 0])) > 1
    nothing = frozen(np.empty(0, np.int64))
    heads, empty = firsts[:-1], due.empty.copy()
    times = (window.by_time, window.rank) if several else (nothing, nothing)
    posts = WindowPosts(window.z, window.lon, window.lat, window.ts, *times, window.starts, window.codes, window.parts)
    beats = (frozen(rows.ticks[heads, 0]), frozen(rows.ticks[heads, 1]))
    listed = (frozen(np.concatenate([nothing, *lists])), frozen(list_starts))
    grouped = ReportGroups(frozen(firsts), *beats, *listed)
    progress = DueReports(frozen(due.begin), frozen(due.count), empty, frozen(due.final))
    k = frozen(rows.ticks[:, 2].copy())
    found = report_groups(posts, _spellings(window), grouped, _regions(rows), k, progress)
    return _ordered(order, found, empty)


def _united(parts: Sequence[tuple[np.ndarray, Found]], count: int, window: PostWindow) -> Reports:
    empty = np.zeros(count, np.int64)
    columns: list[list[np.ndarray]] = [[] for _ in range(6)]
    base = 0
    for rows, (row, ends, skipped, rows_end, words, counts, after) in parts:
        empty[rows] = after
        for column, values in zip(columns, (rows[row], ends, skipped, base + rows_end, words, counts), strict=True):
            column.append(values)
        base += len(words)
    row, ends, skipped, rows_end, words, counts = (np.concatenate([NOTHING, *column]) for column in columns)
    return Reports(row, ends, skipped, rows_end, window.lexicon.words(words), counts, empty)


def _listed(due: Due, window: PostWindow, first: int, last: int, conditions: int) -> np.ndarray:
    """The posts that have the words and attributes that a group asks for, or BY_PLACE if it asks for none."""
    if not conditions:
        return np.array([BY_PLACE])
    rows = due.rows
    some = due.count[first:last] > 0
    if not some.any():
        return np.empty(0, np.int64)
    begin = due.begin[first:last][some]
    until = int((begin + (due.count[first:last][some] - 1) * rows.ticks[first, 1]).max())
    alone = last - first == 1
    question = Question(
        int(rows.kinds[first]) if alone else EVERYWHERE,
        tuple(rows.boxes[first].tolist()) if alone else WHOLE,
        rows.shape[rows.shape_offsets[first] : rows.shape_offsets[last]] if alone else rows.shape[:0],
        decode_code(rows.code[rows.code_offsets[first] : rows.code_offsets[first + 1]].tolist()),
        int(begin.min()) - int(rows.ticks[first, 0]) + 1, until + 1,
        rows.predicates[first].as_py() if len(rows.predicates) else None,
    )  # fmt: skip
    return window.search(question)
