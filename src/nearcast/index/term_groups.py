"""Subscriptions to frequent terms, grouped by region (SSTD's CTQ, seed 000 §6.1): what is due at some beats, counted
over the posts of a window.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nearcast.index.filing import WORLD
from nearcast.index.question import Question
from nearcast.index.rows import Rows, frozen
from nearcast.index.window import Window
from nearcast.kernels.beats import cut_groups, report_groups
from nearcast.kernels.register import z_codes
from nearcast.language import decode_code
from nearcast.model.regions import EVERYWHERE

MOST = 16  # of a group: more share the common table, and have less in common
SPREAD = 2.0  # times as large as its largest region may the bounding box of a group be
BY_PLACE = -1  # in place of a list of posts
WHOLE = (-180.0, -90.0, 180.0, 90.0)


@dataclass(frozen=True)
class Due:
    """Rows, each with `count` beats due from `begin` on, after `empty` reports in a row; no more follow if `final`."""

    rows: Rows
    begin: np.ndarray
    count: np.ndarray
    empty: np.ndarray
    final: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, picked: np.ndarray) -> "Due":
        return Due(self.rows.take(picked), *(each[picked] for each in (self.begin, self.count, self.empty, self.final)))

    def share(self, worker: int, workers: int) -> "Due":
        """The part of one worker: whole groups, dealt out in turn."""
        order, firsts, _ = groups(self.rows)
        group = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        return self if workers == 1 else self.take(np.sort(order[group % workers == worker]))

    @property
    def since(self) -> int:
        """No window of a beat that is due has posts from before this, or at it."""
        due = self.count > 0
        return int((self.begin - self.rows.beats[:, 0])[due].min()) if due.any() else 0


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
    columns = (size, rows.beats[:, 1], rows.beats[:, 0], conditions)
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


def report(due: Due, window: Window) -> Reports:
    """All reports that are due. `window` has the posts later than `due.since`."""
    order, firsts, conditions = groups(due.rows)
    due = due.take(order)
    rows = due.rows
    lists = [_listed(due, window, a, b, conditions[order[a]]) for a, b in pairwise(firsts)]
    list_starts = np.cumsum([0, *(len(each) for each in lists)])
    several = bool((due.count > 1).any()) or len(np.unique(due.begin[due.count > 0])) > 1
    nothing = np.empty(0, np.int64)
    empty = due.empty.copy()
    heads = firsts[:-1]
    lexicon = window.lexicon
    row, ends, skipped, rows_end, words, counts = report_groups(
        window.z, window.lon, window.lat, window.ts,
        window.by_time if several else frozen(nothing), window.rank if several else frozen(nothing),
        window.starts, window.codes, window.parts, lexicon.prefixes, lexicon.starts, lexicon.data,
        frozen(firsts), rows.kinds, frozen(np.ascontiguousarray(rows.boxes)), rows.shape,
        frozen(rows.shape_offsets.astype(np.int64)),
        frozen(rows.beats[heads, 0]), frozen(rows.beats[heads, 1]), frozen(rows.beats[:, 2].copy()),
        frozen(due.begin), frozen(due.count), empty, frozen(due.final),
        frozen(np.concatenate([nothing, *lists])), frozen(list_starts),
    )  # fmt: skip
    after = np.empty(len(order), np.int64)
    after[order] = empty
    return Reports(order[row], ends, skipped, rows_end, lexicon.words(words), counts, after)


def _listed(due: Due, window: Window, first: int, last: int, conditions: int) -> np.ndarray:
    """The posts that have the words and attributes that a group asks for, or BY_PLACE if it asks for none."""
    if not conditions:
        return np.array([BY_PLACE])
    rows = due.rows
    some = due.count[first:last] > 0
    if not some.any():
        return np.empty(0, np.int64)
    begin = due.begin[first:last][some]
    until = int((begin + (due.count[first:last][some] - 1) * rows.beats[first, 1]).max())
    alone = last - first == 1
    question = Question(
        int(rows.kinds[first]) if alone else EVERYWHERE,
        tuple(rows.boxes[first].tolist()) if alone else WHOLE,
        rows.shape[rows.shape_offsets[first] : rows.shape_offsets[last]] if alone else rows.shape[:0],
        decode_code(rows.code[rows.code_offsets[first] : rows.code_offsets[first + 1]].tolist()),
        int(begin.min()) - int(rows.beats[first, 0]) + 1, until + 1,
        rows.predicates[first].as_py() if len(rows.predicates) else None,
    )  # fmt: skip
    return window.search(question)
