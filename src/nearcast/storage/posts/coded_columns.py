"""Attributes of a segment as numbers: of each post the code of its value, and the values.

A search that asks for an attribute of a few posts reads the blocks they lie in. Reading blocks one by one for many
posts would take longer than anything else, so a column that is asked for a lot is read once as a whole and kept as
codes, 4 bytes a post. So are the posts in order of time, for searches over a short time. What was kept is dropped with
its segment, or when more than MOST_BYTES are kept in the process, the least recently used first. No answer depends on
what is kept.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk, frozen, numbers
from nearcast.common.post_schema import ATTRIBUTE_KINDS, attribute_column
from nearcast.storage.posts.attributes import satisfied
from nearcast.storage.posts.derived import attributes_of
from nearcast.storage.posts.kernels.grouping import picked, tally
from nearcast.storage.posts.post_segment import ATTRIBUTE_BLOCK, PostSegment
from nearcast.storage.posts.values import NO_STRINGS, TIME, Values

MOST_BYTES = 1 << 29
WORTH = 4  # a whole column costs no more than one of so many of its blocks, read one by one, or of its values derived
MOST_REMEMBERED = 1 << 20  # truth values, of predicates on a column
PASSES = 2  # over all posts of a segment cost as much as ordering them by time


@dataclass(frozen=True)
class Column:
    """An attribute of some posts. Values need not be distinct, nor occur."""

    codes: np.ndarray
    values: Values
    _satisfying: dict[str, tuple[np.ndarray, int]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def nbytes(self) -> int:
        values = self.values
        return int(self.codes.nbytes + 3 * values.values.nbytes + values.kinds.nbytes + values.strings.nbytes)

    def take(self, rows: np.ndarray) -> "Column":
        return Column(frozen(picked(self.codes, rows)), self.values)

    @cached_property
    def counts(self) -> np.ndarray:
        """How many posts have each value."""
        return tally(self.codes, len(self.values))

    def satisfying(self, predicate: list[Any]) -> tuple[np.ndarray, int]:
        """(which values satisfy a predicate, how many posts have one of them)."""
        text = json.dumps([predicate])
        found = self._satisfying.get(text)
        if found is None:
            wanted = frozen(satisfied(text, self.values.table(predicate[0])))
            found = wanted, int(self.counts[wanted].sum())
            if len(self._satisfying) * len(wanted) > MOST_REMEMBERED:
                self._satisfying.clear()
            self._satisfying[text] = found
        return found


def coded(table: pa.Table, name: str) -> Column:
    """The attribute `name` of the posts of a table with columns as in `post_schema`."""
    parts: list[Values] = []
    codes = np.zeros(len(table), np.int32)
    missing = np.ones(len(table), np.bool_)
    for kind in ATTRIBUTE_KINDS:
        column = attribute_column(name, kind)
        if column not in table.column_names:
            continue
        encoded = chunk(table[column]).dictionary_encode()
        indices = encoded.indices
        if len(table) and not indices.null_count:  # a post has one value, so there are no others
            return Column(numbers(indices), Values.of(encoded.dictionary, kind))
        here = numbers(indices.is_valid().cast(pa.uint8())) > 0
        codes[here] = numbers(indices.fill_null(0))[here] + sum(map(len, parts))
        parts.append(Values.of(encoded.dictionary, kind))
        missing &= ~here
    if missing.any() or not parts:
        codes[missing] = sum(map(len, parts))
        parts.append(Values.missing(1))
    return Column(frozen(codes), Values.join(parts))


def column_of(segment: PostSegment, rows: np.ndarray | None, name: str) -> Column:
    """The attribute `name` of some posts of a segment (None for all), stored or derived; `ts` is one too."""
    if name == "ts":
        ts = segment.ts_of(segment.all_rows if rows is None else rows)
        values = Values(np.full(len(ts), TIME, np.uint8), ts, NO_STRINGS)
        return Column(frozen(np.arange(len(ts), dtype=np.int32)), values)
    whole = whole_column(segment, name, len(segment) if rows is None else len(rows))
    if whole is not None:
        return whole if rows is None else whole.take(rows)
    return coded(attributes_of(segment, segment.all_rows if rows is None else rows, [name]), name)


def whole_column(segment: PostSegment, name: str, posts: int) -> Column | None:
    """The attribute of all posts of a segment, if it is kept, or is worth reading for a search that asks for it of so
    many posts.
    """
    kept = KEPT.get(segment, name)
    if kept is not None:
        return kept
    cost, price = posts, len(segment)
    if any(attribute_column(name, kind) in segment.attribute_columns for kind in ATTRIBUTE_KINDS):
        price = 1 + price // ATTRIBUTE_BLOCK
        cost = min(posts, price)

    def read() -> Column:
        return coded(attributes_of(segment, segment.all_rows, [name]), name)

    return KEPT.get(segment, name, cost * WORTH, price, read)


def kept_column(segment: PostSegment, name: str) -> Column | None:
    """The same, only if it is kept."""
    return KEPT.get(segment, name)


def time_order(segment: PostSegment, looked_at: int) -> np.ndarray | None:
    """The rows of a segment in order of time, if that is kept, or worth making for a search that would look at so many
    posts without it.
    """
    return KEPT.get(segment, ":time", looked_at, PASSES * len(segment), lambda: _by_time(segment))


def _by_time(segment: PostSegment) -> np.ndarray:
    return frozen(np.argsort(segment.ts_of(segment.all_rows), kind="stable").astype(np.int32))


class Kept:
    """What was made of segments, as long as it is used and there is room. Many threads may ask."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._made: WeakKeyDictionary[PostSegment, dict[str, Any]] = WeakKeyDictionary()
        self._used: WeakKeyDictionary[PostSegment, dict[str, int]] = WeakKeyDictionary()
        self._owed: WeakKeyDictionary[PostSegment, dict[str, int]] = WeakKeyDictionary()
        self._lock = Lock()
        self._clock = 0

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(_size(made) for parts in self._made.values() for made in parts.values())

    def get(
        self, segment: PostSegment, name: str, cost: int = 0, price: int = 0, make: Callable[[], Any] | None = None
    ) -> Any:
        """What was made under the name; else None, until what doing without has cost so far comes to its price."""
        with self._lock:
            self._clock += 1
            made = self._made.setdefault(segment, {}).get(name)
            if made is not None:
                self._used[segment][name] = self._clock
                return made
            if make is None:
                return None
            owed = self._owed.setdefault(segment, {})
            owed[name] = owed.get(name, 0) + cost
            if owed[name] < price:
                return None
        made = make()
        with self._lock:
            self._owed[segment][name] = 0
            if _size(made) <= self.most_bytes // 2:
                self._made[segment][name] = made
                self._used.setdefault(segment, {})[name] = self._clock
                self._shrink()
        return made

    def _shrink(self) -> None:
        everything = [(segment, name) for segment, parts in list(self._made.items()) for name in parts]
        total = sum(_size(self._made[segment][name]) for segment, name in everything)
        if total <= self.most_bytes:
            return
        for segment, name in sorted(everything, key=lambda each: self._used[each[0]][each[1]]):
            total -= _size(self._made[segment].pop(name))
            if total <= self.most_bytes:
                return


def _size(made: Any) -> int:
    return int(made.nbytes)


KEPT = Kept(MOST_BYTES)  # by all searches of this process
