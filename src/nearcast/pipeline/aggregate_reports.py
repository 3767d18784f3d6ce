"""Reports of standing aggregates (STAR, seed 003 §5.2): what was counted by interval, added up over each window.

A window is a run of intervals, so a report costs what has been counted, never what has been posted. Windows of one
series that have the same intervals with posts have the same groups, which are added up once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

import numpy as np

from nearcast.index.aggregate import nothing
from nearcast.index.answers import rows_of
from nearcast.index.beat_runs import Sent, sent
from nearcast.index.groups import Groups, Shape
from nearcast.index.lexicon import Speller
from nearcast.index.partials import Timeline, class_of, interval_of
from nearcast.index.series import Aggregates
from nearcast.index.term_groups import Due
from nearcast.model.queries import AggregateQuery, Ordering, Output
from nearcast.pipeline.partials import open_partials
from nearcast.pipeline.plan import Plan
from nearcast.reader.rows import json_texts
from nearcast.state.manifest import Manifest


@dataclass(frozen=True)
class Reports:
    """Report i is of `row[i]` of what was due; `texts` are its rows as JSON; `empty` as in `index.term_groups`."""

    row: np.ndarray
    window_end: np.ndarray
    skipped: np.ndarray
    texts: list[str]
    empty: np.ndarray


def report_aggregates(plan: Plan, after: Manifest, due: Due, spell: Speller, stop: np.ndarray) -> Reports:
    """All reports that are due."""
    aggregates = Aggregates(due.rows)
    series = np.unique(due.rows.beats[:, 3])
    kept = open_partials(plan.state, after, series)
    lines = {shape: Timeline(groups) for shape, groups in kept.parts.items()}
    asked = [Asked.of(aggregates, due, row, lines) for row in range(len(due))]
    texts = Texts(asked, lines, spell, stop)
    rows, found, empty = [], [], due.empty.copy()
    for row, each in enumerate(asked):
        busy = {moment: place for moment, run in each.busy.items() if (place := texts.place(each, run)) >= 0}
        run = [int(empty[row])]
        some = list(sent(int(due.begin[row]), int(due.count[row]), each.beat, busy, bool(due.final[row]), run))
        empty[row] = run[0]
        rows += [row] * len(some)
        found += some
    return Reports(
        np.array(rows, np.int64),
        np.array([each.window_end for each in found], np.int64),
        np.array([each.skipped for each in found], np.int64),
        [texts.of(asked[row], each) for row, each in zip(rows, found, strict=True)],
        empty,
    )


Run = tuple[int, int]


@dataclass(frozen=True)
class Asked:
    """A row that has beats due: its query, the class of its series, and the run of partial results of each beat that
    has any.
    """

    query: AggregateQuery
    columns: str
    shape: Shape
    beat: int
    busy: dict[int, Run]

    @classmethod
    def of(cls, aggregates: Aggregates, due: Due, row: int, lines: dict[Shape, Timeline]) -> "Asked":
        window, beat, _, series = due.rows.beats[row].tolist()
        length = gcd(window, beat)
        begin, count = int(due.begin[row]), int(due.count[row])
        shape = aggregates.shapes[row]
        line = lines.get(class_of(shape))
        busy: dict[int, Run] = {}
        if line is not None:
            for moment in _beats_with_posts(line.times(series) * length, window, beat, begin, count):
                first = (moment - window) // length if window else None
                busy[moment] = line.run(series, first, interval_of(moment, length))
        return cls(aggregates.queries[row], aggregates.texts[row], shape, beat, busy)


def _beats_with_posts(ends: np.ndarray, window: int, beat: int, begin: int, count: int) -> list[int]:
    """The beats due whose window has an interval with posts, given where those end; without a window, one before."""
    last = begin + (count - 1) * beat
    if count == 1:
        some = (ends <= begin) & (ends > begin - window) if window else ends <= begin
        return [begin] if some.any() else []
    found: set[int] = set()
    for end in ends.tolist():
        first = max(begin, -(-end // beat) * beat)
        final = min(last, (end + window - 1) // beat * beat) if window else last
        found.update(range(first, final + 1, beat))
        if not window:
            break
    return sorted(found)


RUN = "\0run"  # an attribute that no post has: which run of partial results a group belongs to


class Texts:
    """The rows of reports as JSON, each run of partial results added up once, and written once for each query.

    A query is answered for all its runs at once, as one that is grouped by them first.
    """

    def __init__(self, asked: Sequence[Asked], lines: dict[Shape, Timeline], spell: Speller, stop: np.ndarray) -> None:
        self.spell, self.stop = spell, stop
        runs: dict[Shape, dict[Run, int]] = {}  # those of each class, numbered
        wanted: dict[str, tuple[Asked, dict[Run, None]]] = {}  # those of each query
        for each in asked:
            known = runs.setdefault(class_of(each.shape), {})
            _, mine = wanted.setdefault(each.columns, (each, {}))
            for run in each.busy.values():
                known.setdefault(run, len(known))
                mine[run] = None
        added = {shape: lines[shape].added_up(list(some)) for shape, some in runs.items() if some}
        self.written: list[str] = []
        self.places: dict[tuple[str, Run], int] = {}
        self.nothing: dict[str, str] = {}
        for columns, (each, mine) in wanted.items():
            if mine:
                numbers = runs[class_of(each.shape)]
                self._write_all(columns, each, {numbers[run]: run for run in mine}, added[class_of(each.shape)])

    def _write_all(self, columns: str, asked: Asked, runs: dict[int, Run], added: Groups) -> None:
        rows = np.flatnonzero(np.isin(added.values[:, 0], np.array(list(runs), np.int64)))
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
            self.places[columns, runs[int(of[begin])]] = len(self.written)
            limit = end if query.limit is None else min(end, begin + query.limit)
            self.written.append(f"[{', '.join(found[begin:limit])}]")

    def place(self, asked: Asked, run: Run) -> int:
        """Where the rows of a query for a run of partial results are, -1 if there is none."""
        place = self.places.get((asked.columns, run), -1)
        return -1 if place >= 0 and self.written[place] == "[]" else place

    def of(self, asked: Asked, report: Sent) -> str:
        if report.rows >= 0:
            return self.written[report.rows]
        if report.skipped or asked.query.group_by or report.window_end in asked.busy:
            return "[]"
        if asked.columns not in self.nothing:  # without GROUP BY there is a row, also of no posts
            table = rows_of(asked.query, nothing(asked.shape), self.spell, self.stop)
            self.nothing[asked.columns] = f"[{', '.join(json_texts(table))}]"
        return self.nothing[asked.columns]
