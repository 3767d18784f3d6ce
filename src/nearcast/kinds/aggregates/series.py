"""Standing aggregates that can share what they keep (STAR §5.2, *general cases*).

A *series* is a set of standing aggregates with the same conditions and the same partial results: GROUP BY, measures,
length of an interval and class of windows. Posts are counted once for all of a series, by interval; a report adds up
the intervals of its window.

- The interval of a series is the greatest common divisor of window and beat, so that every window of every beat is
  made of whole intervals, also one that is no multiple of its beat. Interval j is the time ((j − 1)·r, j·r].
- Windows are put into classes by powers of two, as the paper puts queries into groups by the size of their windows, so
  that a short one does not keep partial results for as long as a long one does.
- An aggregate without a window counts from its start; its series has that start, and keeps its partial results for
  ever, also when the posts are gone.

A series is known by the number of the op that began it. Who joins it later finds what it has kept so far; where a
series has ended and another begins, what the first has kept is not the second's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from nearcast.common.op_schema import BEGINNING
from nearcast.kinds.aggregates.answer_rows import shape_of
from nearcast.kinds.aggregates.groups import Shape
from nearcast.kinds.aggregates.query import AggregateQuery, decode_aggregates
from nearcast.language import decode_code
from nearcast.storage.subscriptions.rows import Rows


@dataclass(frozen=True)
class Series:
    """`row` is one of the rows that belong to it: their conditions are the same. `interval` and `reach` in
    microseconds: `reach` is how long what was counted is needed, 0 for ever.
    """

    number: int
    row: int
    shape: Shape
    interval: int
    reach: int
    start: int


class Aggregates:
    """The aggregates of some rows, each with its series."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @cached_property
    def texts(self) -> list[str]:
        """What each row asks of its groups, as `language.encode` writes it."""
        return list(self.rows.columns.to_pylist())

    @cached_property
    def queries(self) -> list[AggregateQuery]:
        """The same, without conditions; equal ones are one."""
        known = {text: decode_aggregates(text) for text in dict.fromkeys(self.texts)}
        return [known[text] for text in self.texts]

    @cached_property
    def shapes(self) -> list[Shape]:
        known = {query: shape_of(query) for query in dict.fromkeys(self.queries)}
        return [known[query] for query in self.queries]

    @cached_property
    def series(self) -> list[Series]:
        """Each series once, by its number."""
        numbers, firsts = np.unique(self.rows.ticks[:, 3], return_index=True)
        return [self._series(int(number), int(row)) for number, row in zip(numbers, firsts, strict=True)]

    def _series(self, number: int, row: int) -> Series:
        window, beat = self.rows.ticks[row, :2].tolist()
        start = int(self.rows.start[row]) if window == 0 else BEGINNING
        return Series(number, row, self.shapes[row], gcd(window, beat), reach_of(window), start)

    @cached_property
    def keys(self) -> list[tuple[Any, ...]]:
        """What rows of one series have in common."""
        rows = self.rows
        boxes, kinds, starts = rows.boxes.tolist(), rows.kinds.tolist(), rows.start.tolist()
        predicates = rows.predicates.to_pylist() if len(rows.predicates) else [None] * len(rows)
        out = []
        for row, (window, beat) in enumerate(rows.ticks[:, :2].tolist()):
            code = rows.code[rows.code_offsets[row] : rows.code_offsets[row + 1]].tolist()
            words = frozenset(frozenset(conjunction) for conjunction in decode_code(code))  # however they are filed
            shape = rows.shape[rows.shape_offsets[row] : rows.shape_offsets[row + 1]].tobytes()
            times = (gcd(window, beat), reach_of(window), None if window else starts[row])
            out.append((kinds[row], *boxes[row], shape, words, predicates[row], self.shapes[row], *times))
        return out

    def numbered(self, standing: Iterable["Aggregates"], horizon: int) -> Rows:
        """These rows with their series: one that stands, or else one that begins with the first of them.

        A row that starts before `horizon` has reports to send of the past, which a series that stands may have left
        behind: it shares one only with rows that come with it and start when it does.
        """
        known: dict[tuple[Any, ...], int] = {}
        for others in standing:
            known.update(
                (((*key, None), n) for key, n in zip(others.keys, others.rows.ticks[:, 3].tolist(), strict=True))
            )
        numbers = []
        for key, seq, start in zip(self.keys, self.rows.seq.tolist(), self.rows.start.tolist(), strict=True):
            numbers.append(known.setdefault((*key, None if start >= horizon else start), seq))
        ticks = self.rows.ticks.copy()
        ticks[:, 3] = numbers
        return Rows(**{**self.rows.__dict__, "ticks": ticks})


def reach_of(window: int) -> int:
    """The class of a window: the power of two that it is no longer than; 0 where there is none."""
    return 1 << (window - 1).bit_length() if window else 0
