"""Subscriptions given as columns, without SQL, as their kinds see them (`roles.QueryRole.encode_bulk`).

There may be a million of them: kinds look at whole columns at once.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:  # it compiles kernels, which a text takes none of
    from nearcast.common.text.tokenizer import Tokenizer

TOO_LONG = "its window is longer than posts are kept (--retention)"
_WHOLE = "k is not a whole number of at least 1"
LONGEST_SECONDS = 1e12


@dataclass(frozen=True)
class BulkColumns:
    """`longest` is the length that the window of a subscription may have at most (`--retention`), in microseconds;
    `reasons` has why a row is refused, by its number in the table.
    """

    table: pa.Table
    tokenizer: "Tokenizer"
    longest: int | None = None
    reasons: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.table)

    def has(self, *names: str) -> bool:
        """Whether there is a column of one of these names."""
        return not {*names}.isdisjoint(self.table.column_names)

    def is_set(self, name: str) -> np.ndarray:
        """Which rows have a value in a column: NaN is none."""
        if not self.has(name):
            return np.zeros(len(self), np.bool_)
        return pc.invert(pc.is_null(self.table[name], nan_is_null=True)).to_numpy()

    def numbers(self, name: str) -> np.ndarray:
        """A column as doubles, NaN where it is not set."""
        if not self.has(name):
            return np.full(len(self), np.nan)
        return self.table[name].cast(pa.float64()).to_numpy()

    def refuse(self, rows: np.ndarray, reason: str) -> None:
        """Refuse the rows that `rows` is true of."""
        for row in np.flatnonzero(rows):
            self.reasons[int(row)] = reason

    def k(self, rows: np.ndarray, default: float = np.nan) -> np.ndarray:
        """The column `k` of some rows, `default` where it is not set: whole numbers, 0 for other rows and where it is
        none, which is refused.
        """
        k = self.numbers("k")
        k = np.where(np.isnan(k), default, k)
        good = rows & is_whole(k)
        self.refuse(rows & ~good, _WHOLE)
        return np.where(good, k, 0).astype(np.int64)

    def place(self, rows: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
        """The columns `lon` and `lat` of some rows, a place whose `what` posts are asked for; 0 for other rows."""
        lon, lat = self.numbers("lon"), self.numbers("lat")
        good = rows & (np.abs(lon) <= 180) & (np.abs(lat) <= 90)
        reason = f"k asks for the {what} to a place: give lon in -180..180 and lat in -90..90"
        self.refuse(rows & ~good, reason)
        return np.where(good, lon, 0.0), np.where(good, lat, 0.0)


def is_whole(numbers: np.ndarray) -> np.ndarray:
    """Which are whole numbers of at least 1."""
    return (numbers >= 1) & (numbers < 2**53) & (numbers == np.floor(numbers))


def is_length(seconds: np.ndarray) -> np.ndarray:
    """Which are lengths of time of at least a microsecond."""
    return (seconds >= 1e-6) & (seconds < LONGEST_SECONDS)
