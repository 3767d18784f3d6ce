"""A hash of what each query means, by which a repeated subscription is recognised."""

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import chunk, frozen
from nearcast.common.kernels.hashing import hash_strings
from nearcast.common.kernels.lookup import digests
from nearcast.common.kernels.mix import fingerprints
from nearcast.common.op_schema import RANGE
from nearcast.language.known_kinds import known
from nearcast.storage.subscriptions.rows import flat_lists, take_lists

_CONDITIONS = ("min_lon", "min_lat", "max_lon", "max_lat", "since", "until", "life")
_TEXTS = {"predicates": 3, "columns": 5}  # and their salts
_SCORING = 4  # numbers at most


def digests_of(queries: pa.Table) -> np.ndarray:
    """The digests of encoded queries, taken before their words are ordered by frequency."""
    shape, shape_offsets = flat_lists(queries["shape"])
    code, code_offsets = flat_lists(queries["code"])
    numbers = [queries[name].to_numpy().view(np.uint64) for name in _CONDITIONS]
    numbers.append(queries["region_kind"].to_numpy().astype(np.uint64))
    extra = np.zeros(len(queries), np.uint64)
    for name, salt in _TEXTS.items():
        if queries[name].null_count < len(queries):
            extra += _texts(chunk(queries[name])) * np.uint64(salt)
    asks = queries["asks"].to_numpy()
    for kind in known().claiming if (asks != RANGE).any() else ():
        rows = np.flatnonzero(asks == kind.code)
        if len(rows):
            identity = kind.query.identity
            extra[rows] += _pairs(queries, rows, *identity) if identity else _particulars(queries, rows)
    return digests(tuple(frozen(each) for each in numbers), shape, shape_offsets, code, code_offsets, extra)


def _texts(texts: pa.StringArray) -> np.ndarray:
    """A hash of each text, 0 for a null."""
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    hashed = hash_strings(data, offsets.astype(np.int64)).view(np.uint64)
    return np.where(texts.is_null().to_numpy(zero_copy_only=False), np.uint64(0), hashed)


def _pairs(queries: pa.Table, rows: np.ndarray, first: str, second: str) -> np.ndarray:
    """A hash of the kind, `k` and two columns of numbers."""
    asks, k, one, other = (_numbers(queries, name, rows) for name in ("asks", "k", first, second))
    ones = np.ones(len(rows), np.bool_)
    columns = (k, ones, asks.astype(np.int64), one.astype(np.float64), other.astype(np.float64))
    return fingerprints(*(frozen(each) for each in columns))


def _particulars(queries: pa.Table, rows: np.ndarray) -> np.ndarray:
    """A hash of all columns that a kind may use; -0.0 and 0.0 are one place."""
    names = ("asks", "k", "at_lon", "at_lat")
    columns = [_numbers(queries, name, rows).astype(np.float64) for name in names]
    columns += list(_scoring(queries, rows).T)
    window, sync = (_numbers(queries, name, rows) for name in ("window", "sync"))
    reports = np.zeros(len(rows), np.uint64)
    if window.any() or sync.any():
        reports = window.view(np.uint64) * np.uint64(_TEXTS["columns"]) + sync.view(np.uint64) * np.uint64(7)
    words, offsets = take_lists(*flat_lists(queries["words"]), rows)
    nowhere, none = frozen(np.empty(0)), np.zeros(len(rows) + 1, np.uint32)
    numbers = tuple(frozen((each + 0.0).view(np.uint64)) for each in columns)
    return digests(numbers, nowhere, none, words, offsets, reports)


def _numbers(queries: pa.Table, name: str, rows: np.ndarray) -> np.ndarray:
    values = queries[name].to_numpy()
    return values if len(rows) == len(values) else values[rows]


def _scoring(queries: pa.Table, rows: np.ndarray) -> np.ndarray:
    """The numbers in the column `scoring`, one row a query, 0 where it has fewer."""
    values, offsets = flat_lists(queries["scoring"])
    begins, ends = offsets[rows].astype(np.int64), offsets[rows + 1].astype(np.int64)
    at = begins[:, None] + np.arange(_SCORING)
    padded = np.append(values, 0.0)
    return padded[np.where(at < ends[:, None], at, len(values))]
