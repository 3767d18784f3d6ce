"""Values of any type as flat arrays: a type and 64 bits each. A whole number or a time is itself, another number the
bits of its double, a truth value 0 or 1, and a string its hash, which `Spelling` leads back from.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.common.arrays import arrow, freeze, frozen, numbers
from nearcast.common.kernels.hashing import hash_strings
from nearcast.common.post_schema import ATTRIBUTE_KINDS, attribute_column
from nearcast.storage.posts.kernels.grouping import numbered, paired

WHOLE, REAL, TIME, STRING, TRUTH, MISSING = range(6)  # types of values
KIND_OF = {"i": WHOLE, "f": REAL, "b": TRUTH, "s": STRING, "t": TIME, "j": STRING}
PLACE_OF = np.array([0, 0, 1, 2, 3, 4])  # numbers before times before strings before truth values; nulls last
EXACT = 2**53  # whole numbers up to here are doubles
LAST = np.int64(2**62)  # the rank of a missing value
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_STRINGS = pa.nulls(0, pa.string())


@dataclass(frozen=True)
class Spelling:
    """Strings by their hashes, which are sorted."""

    hashes: np.ndarray
    strings: pa.StringArray

    @cached_property
    def ranks(self) -> np.ndarray:
        """Numbers in the order of the strings."""
        ranks: np.ndarray = numbers(pc.rank(self.strings, tiebreaker="dense")).astype(np.int64)
        return ranks


@dataclass(frozen=True)
class Values:
    """`strings` has the string of each value that is one (null elsewhere), and is empty where none is."""

    kinds: np.ndarray
    values: np.ndarray
    strings: pa.StringArray

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.kinds)

    @classmethod
    def of(cls, column: pa.Array, kind: str) -> "Values":
        """The values of an attribute column of one kind; a NaN is missing."""
        kinds = np.full(len(column), KIND_OF[kind], np.uint8)
        strings = NO_STRINGS
        if kind in ("s", "j"):
            strings, bits = column, string_hashes(column)
        elif kind == "f":
            bits = numbers(column.fill_null(np.nan)).view(np.int64)
            kinds[np.isnan(bits.view(np.float64))] = MISSING
        else:
            bits = numbers(column.cast(pa.int64()).fill_null(0))
        if column.null_count:
            kinds[numbers(column.is_null().cast(pa.uint8())) > 0] = MISSING
        return cls(kinds, np.where(kinds == MISSING, 0, bits), strings)

    @classmethod
    def of_doubles(cls, values: np.ndarray, there: np.ndarray) -> "Values":
        kinds = np.where(there & ~np.isnan(values), REAL, MISSING).astype(np.uint8)
        return cls(kinds, np.where(kinds == REAL, values, 0.0).view(np.int64), NO_STRINGS)

    @classmethod
    def missing(cls, count: int) -> "Values":
        return cls(np.full(count, MISSING, np.uint8), np.zeros(count, np.int64), NO_STRINGS)

    @classmethod
    def join(cls, parts: "list[Values]") -> "Values":
        strings = NO_STRINGS
        if any(len(part.strings) for part in parts):
            strings = pa.concat_arrays([p.strings if len(p.strings) else pa.nulls(len(p), pa.string()) for p in parts])
        kinds, values = (np.concatenate([getattr(p, name) for p in parts]) for name in ("kinds", "values"))
        return cls(kinds, values, strings)

    def take(self, rows: np.ndarray) -> "Values":
        strings = self.strings.take(arrow(rows)) if len(self.strings) else self.strings
        return Values(self.kinds[rows], self.values[rows], strings)

    def normal(self) -> "Values":
        """Numbers as grouped: a double that is whole, and has 64 bits, as that whole number."""
        if not (self.kinds == REAL).any():
            return self
        doubles = self.values.view(np.float64)
        whole = (self.kinds == REAL) & (doubles == np.floor(doubles)) & (doubles >= -(2.0**63)) & (doubles < 2.0**63)
        bits = np.where(whole, np.where(whole, doubles, 0.0).astype(np.int64), self.values)
        return Values(np.where(whole, np.uint8(WHOLE), self.kinds), bits, self.strings)

    @cached_property
    def grouped(self) -> "tuple[np.ndarray | None, Values]":
        """Equal ones as one (5 and 5.0, a string and the same JSON): (the number of each, the values of the numbers);
        no numbers where all are different.
        """
        normal = self.normal()
        codes, firsts = number_values(normal.kinds, normal.values)
        return (None, normal) if len(firsts) == len(normal) else (codes, normal.take(firsts))

    @cached_property
    def spelling(self) -> Spelling:
        """Each string once."""
        if not len(self.strings):
            return Spelling(frozen(np.empty(0, np.int64)), NO_STRINGS)
        rows = np.flatnonzero(self.kinds == STRING)
        hashes, first = np.unique(self.values[rows], return_index=True)
        return Spelling(frozen(hashes), self.strings.take(arrow(rows[first])))

    @cached_property
    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and times as pairs of doubles whose sum they are; of other values anything."""
        if not (self.kinds == REAL).any() and (np.abs(self.values) <= EXACT).all():
            return frozen(self.values.astype(np.float64)), frozen(np.zeros(len(self)))
        upper = ((self.values >> 32).astype(np.float64)) * 2.0**32
        lower = (self.values & 0xFFFFFFFF).astype(np.float64)
        high = upper + lower
        low = lower - (high - upper)
        real = self.kinds == REAL
        return frozen(np.where(real, self.values.view(np.float64), high)), frozen(np.where(real, 0.0, low))

    @cached_property
    def uniform(self) -> int:
        """The kind that all of them are, -1 if there is no such."""
        return int(self.kinds[0]) if len(self) and bool((self.kinds == self.kinds[0]).all()) else -1

    # -- as Arrow ------------------------------------------------------------------------------------------------------

    def _only(self, kind: int) -> pa.Array:
        """The values of one kind, null where a value has another."""
        if kind == STRING:
            return self.strings if len(self.strings) else pa.nulls(len(self), pa.string())
        target = {WHOLE: pa.int64(), REAL: pa.float64(), TIME: ATTRIBUTE_KINDS["t"], TRUTH: pa.bool_()}[kind]
        flat = arrow(self.values.view(np.float64)) if kind == REAL else arrow(self.values)
        if self.uniform == kind:
            return flat if flat.type.equals(target) else flat.cast(target)
        return pc.if_else(arrow(self.kinds == kind), flat, pa.scalar(None, flat.type)).cast(target)

    def table(self, name: str) -> pa.Table:
        """As columns of the attribute `name`, one a kind, that predicates are asked of."""
        columns = {attribute_column(name, letter): column for letter, column in self._columns.items()}
        return pa.table({"": pa.nulls(len(self)), **columns})

    @cached_property
    def _columns(self) -> dict[str, pa.Array]:
        """One a kind, by its letter."""
        have = set(np.unique(self.kinds).tolist())
        return {letter: self._only(kind) for letter, kind in KIND_OF.items() if kind in have and letter != "j"}

    def arrow(self) -> pa.Array:
        """As one array: of the type of their kind; numbers of both kinds as whole numbers where all are whole and one
        is no double, else as doubles, the nearest; other mixtures as strings.
        """
        if self.uniform >= 0 and self.uniform != MISSING:
            return self._only(self.uniform)
        have = set(np.unique(self.kinds).tolist()) - {MISSING}
        if len(have) == 1:
            return self._only(have.pop())
        if not have:
            return pa.nulls(len(self), pa.null())
        if have == {WHOLE, REAL}:
            normal = self.normal()
            if self.numbers[1][self.kinds == WHOLE].any() and not (normal.kinds == REAL).any():
                return normal._only(WHOLE)
            return pc.coalesce(self._only(REAL), self._only(WHOLE).cast(pa.float64(), safe=False))
        texts = [self._only(STRING)] if STRING in have else []
        for kind in sorted(have - {STRING}):
            texts.append(_time_texts(self) if kind == TIME else self._only(kind).cast(pa.string()))
        return pc.coalesce(*texts)

    # -- order ---------------------------------------------------------------------------------------------------------

    def ranks(self) -> np.ndarray:
        """Numbers in the order of the values, equal for equal ones; LAST for what is missing."""
        if self.uniform in (WHOLE, TIME) and self.values.min() > -LAST and self.values.max() < LAST:
            return self.values
        out = np.full(len(self), LAST)
        base = 0
        for place in range(4):
            rows = np.flatnonzero(PLACE_OF[self.kinds] == place)
            if len(rows):
                dense = self._dense(rows, place)
                out[rows] = dense + base
                base += int(dense.max()) + 1
        return out

    def _dense(self, rows: np.ndarray, place: int) -> np.ndarray:
        if place == 2:
            _, first, which = np.unique(self.values[rows], return_index=True, return_inverse=True)
            ranks = pc.rank(self.strings.take(arrow(rows[first])), tiebreaker="dense")
            return numbers(ranks).astype(np.int64)[which]
        if place == 0 and (self.kinds[rows] == REAL).any():
            high, low = (part[rows] for part in self.numbers)
            order = np.lexsort((low, high))
            out = np.zeros(len(rows), np.int64)
            out[order[1:]] = np.cumsum((np.diff(high[order]) != 0) | (np.diff(low[order]) != 0))
            return out
        return np.unique(self.values[rows], return_inverse=True)[1]


def number_values(kinds: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the number of each value, where each number is met first)."""
    codes, _ = numbered(frozen(values), 0)
    return numbered(frozen(paired(frozen(codes), 8, frozen(kinds.astype(np.int32)))), 0)


def string_hashes(strings: pa.StringArray) -> np.ndarray:
    """The 64 bits of each string; anything for a null."""
    if not len(strings):
        return np.empty(0, np.int64)
    offsets = np.frombuffer(strings.buffers()[1], np.int32)[strings.offset : strings.offset + len(strings) + 1]
    data = np.frombuffer(strings.buffers()[2] or b"", np.uint8)
    return hash_strings(data, offsets.astype(np.int64))


def _time_texts(values: Values) -> pa.StringArray:
    """ISO 8601, UTC."""
    texts: list[str | None] = []
    for kind, micros in zip(values.kinds.tolist(), values.values.tolist(), strict=True):
        moment = EPOCH + timedelta(microseconds=micros if kind == TIME else 0)
        texts.append(moment.isoformat().replace("+00:00", "Z") if kind == TIME else None)
    return pa.array(texts, pa.string())
