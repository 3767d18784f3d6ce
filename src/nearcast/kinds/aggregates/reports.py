"""Reports of standing aggregates (STAR §5.2): what was counted by interval, added up over each window.

A window is a run of intervals, so a report costs what has been counted, never what has been posted; and a long one is
made of few, where files have layers of them (`kinds.aggregates.time_layers`). Windows of one series that have the same
intervals with posts have the same groups, which are added up once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

import numpy as np
import pyarrow as pa

from nearcast.common.op_schema import BEGINNING
from nearcast.engine.batch import BatchPlan
from nearcast.engine.open_state import open_files, speller
from nearcast.engine.ticks import Due, TickReports
from nearcast.kinds.aggregates.answer_rows import rows_of
from nearcast.kinds.aggregates.group_by import nothing
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.interval_counts import class_of, interval_of
from nearcast.kinds.aggregates.query import AggregateQuery, Ordering, Output
from nearcast.kinds.aggregates.series import Aggregates
from nearcast.kinds.aggregates.state import StoredCounts, open_counts
from nearcast.kinds.aggregates.tick_runs import Sent, sent
from nearcast.reader.row_format import json_texts
from nearcast.reader.stop_words import stop_terms
from nearcast.storage.lexicon import Speller
from nearcast.storage.manifest import Manifest


class AggregatesReports:
    def share(self, due: Due, worker: int, workers: int) -> Due:
        return due.take(np.flatnonzero(due.rows.seq % workers == worker))

    def report(self, plan: BatchPlan, after: Manifest, due: Due) -> TickReports:
        stop = stop_terms(plan.settings.stop_words, plan.tokenizer)
        return report_aggregates(plan, after, due, speller(open_files(plan), after), stop)


ROLE = AggregatesReports()


def report_aggregates(plan: BatchPlan, after: Manifest, due: Due, spell: Speller, stop: np.ndarray) -> TickReports:
    """All reports that are due."""
    asked, added = ask(Aggregates(due.rows), due, open_counts(plan.state, after))
    texts = Texts(asked, added, spell, stop)
    rows, found, empty = [], [], due.empty.copy()
    for row, each in enumerate(asked):
        busy = {moment: place for moment, window in each.busy.items() if (place := texts.place(each, window)) >= 0}
        run = [int(empty[row])]
        some = list(sent(int(due.begin[row]), int(due.count[row]), each.beat, busy, bool(due.final[row]), run))
        empty[row] = run[0]
        rows += [row] * len(some)
        found += some
    return TickReports(
        np.array(rows, np.int64),
        np.array([each.window_end for each in found], np.int64),
        np.array([each.skipped for each in found], np.int64),
        empty,
        texts=pa.array([texts.of(asked[row], each) for row, each in zip(rows, found, strict=True)], pa.string()),
    )


@dataclass(frozen=True)
class DueSeries:
    """A row that has beats due: its query, the class of its series, and the number of the window of each beat that has
    posts in it.
    """

    query: AggregateQuery
    columns: str
    shape: Shape
    beat: int
    busy: dict[int, int]


def ask(aggregates: Aggregates, due: Due, counts: StoredCounts) -> tuple[list[DueSeries], dict[Shape, Groups]]:
    """All rows that have beats due, and what their windows add up to: by class, and there by the window's number."""
    window, beat, _, series = due.rows.ticks.T
    asked = [
        DueSeries(*each, {})
        for each in zip(aggregates.queries, aggregates.texts, aggregates.shapes, beat.tolist(), strict=True)
    ]
    by_class: dict[Shape, list[int]] = {}
    for row, one in enumerate(asked):
        by_class.setdefault(class_of(one.shape), []).append(row)
    added = {}
    for shape, rows in by_class.items():
        of, at = _moments(counts, shape, due, np.array(rows, np.int64))
        length = np.gcd(window[of], beat[of])
        first = np.where(window[of] > 0, (at - window[of]) // length, BEGINNING)
        numbers, added[shape] = counts.added_up(shape, series[of], first, interval_of(at, length))
        for row, moment, number in zip(of.tolist(), at.tolist(), numbers.tolist(), strict=True):
            if number >= 0:
                asked[row].busy[moment] = number
    return asked, added


def _moments(counts: StoredCounts, shape: Shape, due: Due, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of some rows of a class, the beats that may have posts: (row, beat). Of one beat alone that shows soon enough."""
    single = rows[due.count[rows] == 1]
    of, at = [single], [due.begin[single]]
    for row in rows[due.count[rows] > 1].tolist():
        window, beat, _, series = due.rows.ticks[row].tolist()
        ends = counts.intervals(shape, series) * gcd(window, beat)
        beats = _beats_with_posts(ends, window, beat, int(due.begin[row]), int(due.count[row]))
        of.append(np.full(len(beats), row, np.int64))
        at.append(np.array(beats, np.int64))
    return np.concatenate(of), np.concatenate(at)


def _beats_with_posts(ends: np.ndarray, window: int, beat: int, begin: int, count: int) -> list[int]:
    """The beats due whose window has an interval with posts, given where those end; without a window, one before."""
    last = begin + (count - 1) * beat
    found: set[int] = set()
    for end in ends.tolist():
        first = max(begin, -(-end // beat) * beat)
        final = min(last, (end + window - 1) // beat * beat) if window else last
        found.update(range(first, final + 1, beat))
        if not window:
            break
    return sorted(found)


RUN = "\0window"  # an attribute that no post has: which window a group belongs to


class Texts:
    """The rows of reports as JSON, each window written once for each query.

    A query is answered for all its windows at once, as one that is grouped by them first.
    """

    def __init__(
        self, asked: Sequence[DueSeries], added: dict[Shape, Groups], spell: Speller, stop: np.ndarray
    ) -> None:
        self.spell, self.stop = spell, stop
        wanted: dict[str, tuple[DueSeries, set[int]]] = {}  # the windows of each query
        for each in asked:
            wanted.setdefault(each.columns, (each, set()))[1].update(each.busy.values())
        self.written: list[str] = []
        self.places: dict[tuple[str, int], int] = {}
        self.nothing: dict[str, str] = {}
        for columns, (each, mine) in wanted.items():
            if mine:
                self._write_all(columns, each, mine, added[class_of(each.shape)])

    def _write_all(self, columns: str, asked: DueSeries, windows: set[int], added: Groups) -> None:
        rows = np.flatnonzero(np.isin(added.values[:, 0], np.array(list(windows), np.int64)))
        groups = added.take(rows) if len(rows) < len(added) else added
        by = (RUN, *asked.shape.by)
        groups = replace(
            groups, shape=replace(asked.shape, by=by), kinds=np.delete(groups.kinds, 1, axis=1),
            values=np.delete(groups.values, 1, axis=1),
        )  # fmt: skip
        query = asked.query
        outputs, order = (Output(RUN, RUN), *query.outputs), (Ordering(RUN), *query.order)
        every = replace(query, outputs=outputs, group_by=by, order=order, limit=None)
        table = rows_of(every, groups, self.spell, self.stop)
        of = table[RUN].to_numpy()
        found = json_texts(table.drop_columns([RUN]))
        starts = np.flatnonzero(np.concatenate(([True], of[1:] != of[:-1]))) if len(of) else np.empty(0, np.int64)
        for begin, end in pairwise([*starts.tolist(), len(of)]):
            self.places[columns, int(of[begin])] = len(self.written)
            limit = end if query.limit is None else min(end, begin + query.limit)
            self.written.append(f"[{', '.join(found[begin:limit])}]")

    def place(self, asked: DueSeries, window: int) -> int:
        """Where the rows of a query for a window are, -1 if there is none."""
        place = self.places.get((asked.columns, window), -1)
        return -1 if place >= 0 and self.written[place] == "[]" else place

    def of(self, asked: DueSeries, report: Sent) -> str:
        if report.rows >= 0:
            return self.written[report.rows]
        if report.skipped or asked.query.group_by or report.window_end in asked.busy:
            return "[]"
        if asked.columns not in self.nothing:  # without GROUP BY there is a row, also of no posts
            table = rows_of(asked.query, nothing(asked.shape), self.spell, self.stop)
            self.nothing[asked.columns] = f"[{', '.join(json_texts(table))}]"
        return self.nothing[asked.columns]
