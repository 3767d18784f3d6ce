"""The subscriptions of a state, as people wrote them or would have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow
from nearcast.common.expressions import Conjunction, Literal
from nearcast.common.kinds import Kind, kind_coded
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.language import decode_code
from nearcast.reader.reader import Reader
from nearcast.reader.select_text import region_condition
from nearcast.storage.bundle import open_bundle
from nearcast.storage.directory import StateDirectory
from nearcast.storage.manifest import ENDS, SUBSCRIPTIONS, TERMS, SegmentRef
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Segment
from nearcast.storage.subscriptions.subscription_set import EndLog
from nearcast.storage.term_table import TermTable

STANDING, WAITING, ENDED = "standing", "waiting", "ended"


@dataclass(frozen=True)
class Subscription:
    """One version of a subscription: its results are the posts whose time is in [start, end), None for no bound.

    `sql` is the text it was made from, or one that means the same where it came as columns. It is `standing`, `waiting`
    while the clock has not reached its start, or `ended`; one that was replaced before any post has neither bound.
    """

    id: str | int
    sql: str
    start: int | None
    end: int | None
    status: str

    def row(self) -> dict[str, Any]:
        return {"id": self.id, "sql": self.sql, "start": self.start, "end": self.end, "status": self.status}


@dataclass(frozen=True)
class SubscriptionPart:
    """The rows of a segment of subscriptions, which are of one kind, and when each ends."""

    kind: Kind
    rows: Rows
    end: np.ndarray


class Subscriptions:
    """All subscriptions of a manifest, in the order of their ops. Texts are made only as they are read."""

    def __init__(self, source: Reader | StateDirectory | str | Path) -> None:
        self.reader = source if isinstance(source, Reader) else Reader(source)
        ends = _ends(self.reader)
        self.parts = [_part(self.reader, ref, ends) for ref in self.reader.manifest.of(SUBSCRIPTIONS)]

    @cached_property
    def _places(self) -> np.ndarray:
        """(seq, part, row, end, status) of each version, sorted by seq, each once."""
        clock = self.reader.manifest.clock
        now = BEGINNING if clock is None else clock
        pieces = [np.empty((0, 5), np.int64)]
        for number, part in enumerate(self.parts):
            rows, stop = part.rows, part.end
            status = np.where(stop <= np.maximum(now, rows.start), 2, np.where(rows.start > now, 1, 0))
            columns = (rows.seq, np.full(len(rows), number), np.arange(len(rows)), stop, status)
            pieces.append(np.stack(columns, axis=1).astype(np.int64))
        places = np.concatenate(pieces)
        return places[np.unique(places[:, 0], return_index=True)[1]]

    def counts(self) -> dict[str, int]:
        """How many there are of each status."""
        counts = np.bincount(self._places[:, 4], minlength=3)
        return dict(zip((STANDING, WAITING, ENDED), counts.tolist(), strict=True))

    def longest_window(self) -> int:
        """Of those that stand or wait and whose kind counts the posts of a window, in microseconds; 0 if there are
        none.
        """
        clock = self.reader.manifest.clock
        now = BEGINNING if clock is None else clock
        longest = 0
        for part in self.parts:
            if part.kind.windowed and len(part.rows.ticks):
                some = part.end > np.maximum(now, part.rows.start)
                longest = max(longest, int(part.rows.ticks[some, 0].max(initial=0)))
        return longest

    def __len__(self) -> int:
        """How many stand or wait."""
        return int((self._places[:, 4] < 2).sum())

    def has(self, id_: str | int) -> bool:
        """Whether one stands or waits under this very id: a number is not its digits."""
        alive = self._places[self._places[:, 4] < 2]
        for number, part in enumerate(self.parts):
            rows = part.rows
            at = alive[alive[:, 1] == number, 2]
            texts = rows.id_text.take(arrow(at)) if len(rows.id_text) else pa.nulls(len(at), pa.string())
            if isinstance(id_, str):
                same = pc.fill_null(pc.equal(texts, id_), False)
            else:
                same = pc.and_(texts.is_null(), arrow(rows.id[at] == id_))
            if pc.any(same).as_py():
                return True
        return False

    def __iter__(self) -> Iterator[Subscription]:
        """Those that stand or wait."""
        return self.all(ended=False)

    def all(self, ended: bool = True) -> Iterator[Subscription]:
        for _, number, row, stop, status in self._places.tolist():
            if status < 2 or ended:
                part = self.parts[number]
                rows = part.rows
                name = rows.id_text[row].as_py() if len(rows.id_text) else None
                begin = int(rows.start[row])
                yield Subscription(
                    id=int(rows.id[row]) if name is None else name,
                    sql=(rows.sql[row].as_py() if len(rows.sql) else None) or self._written(part.kind, rows, row),
                    start=None if begin == BEGINNING else begin,
                    end=None if stop in (BEGINNING, NEVER) else stop,
                    status=(STANDING, WAITING, ENDED)[status],
                )

    def _written(self, kind: Kind, rows: Rows, row: int) -> str:
        """A SELECT that means what the columns of a row mean."""
        code = rows.code[rows.code_offsets[row] : rows.code_offsets[row + 1]]
        part = kind.search.select(rows, row, self._word)
        shared = (region_condition(rows, row), self._words(decode_code([int(c) for c in code])))
        conditions = [condition for condition in (*shared, *part.conditions) if condition]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        life = int(rows.life[row])
        ends = f" FOR {life / 1e6:.15g} SECONDS" if life != NEVER else ""
        return f"SELECT {part.what} FROM stream{where}{part.after}{ends}"

    def _words(self, conjunctions: Sequence[Conjunction]) -> str:
        if not any(conjunctions):
            return ""
        parts = [" AND ".join(self._literal(literal) for literal in each) for each in conjunctions]
        text = parts[0] if len(parts) == 1 else " OR ".join(f"({p})" if " AND " in p else p for p in parts)
        return f"text CONTAINS '{text}'"

    def _literal(self, literal: Literal) -> str:
        words = [self._word(term) for term in literal.terms]
        text = words[0] if len(words) == 1 else '"' + " ".join(words) + '"'
        return f"NOT {text}" if literal.negative else text

    def _word(self, term: int) -> str:
        return self._dictionary.get(term, f"word{term:016x}")

    @cached_property
    def _dictionary(self) -> dict[int, str]:
        """The words of all terms that subscriptions use and posts have shown."""
        parts = [each for part in self.parts for each in (part.rows.code, part.rows.words)]
        wanted = np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))
        words: dict[int, str] = {}
        for ref in self.reader.manifest.of(TERMS):
            table = TermTable.open(self.reader.state.path(ref.name))
            at = np.flatnonzero(np.isin(table.term, wanted) & table.word.is_valid().to_numpy(zero_copy_only=False))
            words |= {int(table.term[i]): table.word[i].as_py() for i in at.tolist()}
        return words


def _ends(reader: Reader) -> EndLog:
    logs = []
    for ref in reader.manifest.of(ENDS):
        columns = open_bundle(reader.state.path(ref.name))
        logs.append(EndLog(*(np.asarray(columns[key]) for key in ("key", "seq", "end"))))
    return EndLog.concat(logs)


def _part(reader: Reader, ref: SegmentRef, ends: EndLog) -> SubscriptionPart:
    arrays = open_bundle(reader.state.path(ref.name))
    arrays.pop("summary", None)
    segment = Segment.from_arrays(arrays)
    first = NEVER if reader.manifest.first_post is None else reader.manifest.first_post
    end = ends.of(segment).applied(segment.rows, np.arange(len(segment)), first)
    return SubscriptionPart(kind_coded(ref.asks), segment.rows, end)
