"""Subscriptions as columns: what is true of each, independent of any index."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import freeze, frozen
from nearcast.common.kernels.mix import id_keys

SPECIAL = {"points": 3, "ticks": 4, "scoring": 7}  # columns, and their width, that are empty where no row needs them
TELLING = {"points": 2, "ticks": 1, "scoring": 2}  # of their columns the one that is 0 where a row does not need them


@dataclass(frozen=True)
class Rows:
    """Subscriptions; `seq` is the number of the op that made one.

    `start` and `end` bound the times of the posts it wants; `life` is NEVER unless FOR still waits for the first post.
    `digest` is a hash of the query's meaning, by which a repeated subscription is recognised. `home` marks the one copy
    that counts where a subscription is kept by several workers. `points` has lon, lat and k of those that ask for the
    nearest (k is 0 for others), and is empty where none does. `ticks` has, alike, of those that report on a tick:
    window, SYNC, k of frequent terms (0 for aggregates), and the series of aggregates (`kinds.aggregates.series`).
    `scoring` has, alike, of those that ask for the most relevant: lon, lat, k, alpha, reach in km, and the window as a
    number of posts or in microseconds (0 for the one not given); their `words`, distinct terms ascending, are lists as
    those of `code`, with no offsets where no row asks for the most relevant.
    """

    seq: np.ndarray
    id: np.ndarray
    id_text: pa.StringArray
    start: np.ndarray
    end: np.ndarray
    life: np.ndarray
    digest: np.ndarray
    home: np.ndarray
    kinds: np.ndarray
    boxes: np.ndarray
    shape: np.ndarray
    shape_offsets: np.ndarray
    code: np.ndarray
    code_offsets: np.ndarray
    predicates: pa.StringArray
    columns: pa.StringArray
    sql: pa.StringArray
    points: np.ndarray = field(default_factory=lambda: np.empty((0, 3)))
    ticks: np.ndarray = field(default_factory=lambda: np.empty((0, 4), np.int64))
    scoring: np.ndarray = field(default_factory=lambda: np.empty((0, 7)))
    words: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    words_offsets: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint32))

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.seq)

    def keys(self) -> np.ndarray:
        """The 64-bit key of each id."""
        return id_keys(self.id, is_text(self.id_text, len(self)))

    def having(self, name: str) -> np.ndarray:
        """Which of them fill an optional column."""
        column = getattr(self, name)
        return column[:, TELLING[name]] > 0 if len(column) else np.zeros(len(self), np.bool_)

    def take(self, rows: np.ndarray) -> "Rows":
        picked = {}
        for each in fields(self):
            column = getattr(self, each.name)
            if each.name.removesuffix("_offsets") in ("shape", "code", "words", *SPECIAL):
                continue
            if isinstance(column, pa.Array):
                picked[each.name] = column.take(pa.array(rows)) if len(column) else column
            else:
                picked[each.name] = column.take(rows, axis=0)
        for name in SPECIAL:
            if self.having(name)[rows].any():
                picked[name] = getattr(self, name)[rows]
        for name in ("shape", "code", "words") if "scoring" in picked else ("shape", "code"):
            picked[name], picked[f"{name}_offsets"] = take_lists(
                getattr(self, name), getattr(self, f"{name}_offsets"), rows
            )
        return Rows(**picked)

    def arrays(self) -> dict[str, "np.ndarray | pa.StringArray"]:
        return {f"row_{each.name}": getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, "np.ndarray | pa.StringArray"]) -> "Rows":
        columns = {each.name: arrays[f"row_{each.name}"] for each in fields(cls) if f"row_{each.name}" in arrays}
        for name, width in (("boxes", 4), *SPECIAL.items()):
            if name in columns:
                columns[name] = np.asarray(columns[name]).reshape(-1, width)
        return cls(**columns)

    @classmethod
    def join(cls, parts: Sequence["Rows"]) -> "Rows":
        """Rows end to end, in the order given."""
        joined = {}
        lengths = [len(part) for part in parts]
        for each in fields(cls):
            columns = [getattr(part, each.name) for part in parts]
            if each.name.endswith("_offsets"):
                joined[each.name] = join_offsets(columns, lengths)
            elif isinstance(columns[0], pa.Array):
                joined[each.name] = join_strings(columns, lengths)
            elif each.name in SPECIAL and any(len(column) for column in columns):
                shapes = [(n, SPECIAL[each.name]) for n in lengths]
                filled = [c if len(c) else np.zeros(s, c.dtype) for c, s in zip(columns, shapes, strict=True)]
                joined[each.name] = np.concatenate(filled)
            else:
                joined[each.name] = np.concatenate(columns)
        return cls(**joined)

    @classmethod
    def concat(cls, parts: Sequence["Rows"]) -> "Rows":
        """Rows of several segments as one, each seq once."""
        rows = cls.join(parts)
        spans = sorted((int(part.seq.min()), int(part.seq.max())) for part in parts if len(part))
        if all(before[1] < after[0] for before, after in pairwise(spans)):
            return rows
        seqs, first = np.unique(rows.seq, return_index=True)
        if len(seqs) == len(rows):
            return rows
        homes = rows.home.copy()  # a copy may be home in a segment that is not the first
        homes[first] = np.maximum.reduceat(rows.home[np.argsort(rows.seq, kind="stable")], run_starts(rows.seq))
        return cls(**{**rows.__dict__, "home": homes}).take(first)


def run_starts(values: np.ndarray) -> np.ndarray:
    return np.flatnonzero(is_first(np.sort(values)))


def is_first(ordered: np.ndarray) -> np.ndarray:
    """Which of some sorted values are not the same as the one before."""
    out = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=out[1:])
    return out


def packed_order(codes: np.ndarray) -> np.ndarray:
    """The order of 64-bit codes by their highest bits, as many as leave room for the number of a row: words with their
    row in them are sorted in a third of the time that `argsort` takes.
    """
    room = np.uint64((1 << max(len(codes) - 1, 0).bit_length()) - 1)
    packed = (codes & ~room) | np.arange(len(codes), dtype=np.uint64)
    packed.sort()
    packed &= room
    return packed.view(np.int64)


def hashed_order(hashes: np.ndarray) -> np.ndarray:
    """The order of 64-bit hashes, of which hardly two share their highest bits."""
    order = packed_order(hashes)
    ordered = hashes[order]
    return order if (ordered[1:] >= ordered[:-1]).all() else np.argsort(hashes)


def is_text(id_text: pa.StringArray, length: int) -> np.ndarray:
    """Which ids are strings. A column of nothing but integers is stored empty."""
    if len(id_text) == 0:
        return frozen(np.zeros(length, np.bool_))
    return frozen(id_text.is_valid().to_numpy(zero_copy_only=False))


def optional_strings(column: "pa.Array | pa.ChunkedArray") -> pa.StringArray:
    """A string column, or an empty one where every value is null."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count == len(column):
        return pa.nulls(0, pa.string())
    return column.cast(pa.string())


def join_strings(columns: list[pa.StringArray], lengths: list[int]) -> pa.StringArray:
    if all(len(column) == 0 for column in columns):
        return pa.nulls(0, pa.string())
    filled = [c if len(c) else pa.nulls(n, pa.string()) for c, n in zip(columns, lengths, strict=True)]
    return pa.concat_arrays(filled)


def join_offsets(columns: list[np.ndarray], lengths: list[int]) -> np.ndarray:
    """Offsets end to end; rows of a part that has none have empty lists."""
    if not any(len(column) for column in columns):
        return np.empty(0, np.uint32)
    out = [np.zeros(1, np.uint32)]
    base = 0
    for column, length in zip(columns, lengths, strict=True):
        column = column if len(column) else np.zeros(length + 1, np.uint32)
        out.append((column[1:].astype(np.int64) + base).astype(np.uint32))
        base += int(column[-1])
    return np.concatenate(out)


def take_lists(values: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lists of the given rows, flattened anew, and their offsets."""
    if not len(values):
        return values, np.zeros(len(rows) + 1, offsets.dtype)
    begins = offsets[rows].astype(np.int64)
    taken, out = take_runs(values, begins, offsets[rows + 1].astype(np.int64) - begins)
    return taken, out.astype(offsets.dtype)


def take_runs(values: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs of values end to end, and their offsets."""
    out = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return values[np.arange(out[-1]) + np.repeat(begins - out[:-1], sizes)], out


def flat_lists(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """A column of lists as one array of values and the offsets of each list."""
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    offsets = lists.offsets.to_numpy()
    return lists.values.to_numpy()[offsets[0] : offsets[-1]], (offsets - offsets[0]).astype(np.uint32)
