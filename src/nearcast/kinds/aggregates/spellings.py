"""Strings of several `Spelling`s as those of one."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import arrow, frozen
from nearcast.storage.posts.values import Spelling

NO_SPELLING = Spelling(frozen(np.empty(0, np.int64)), pa.nulls(0, pa.string()))


FEW_STRINGS = 1_000  # of which it does not matter that most are not needed
MOST_REMEMBERED = 256

_lock = Lock()
_remembered: dict[tuple[int, ...], tuple[list[Spelling], Spelling]] = {}  # by the ids of those it holds


def united(spellings: Sequence[Spelling]) -> Spelling:
    """All strings of them, each once; those of the same few, which columns that are kept have, as the same object."""
    spellings = distinct(spellings)
    if len(spellings) < 2:
        return spellings[0] if spellings else NO_SPELLING
    if sum(len(each.hashes) for each in spellings) > FEW_STRINGS:
        return _united(spellings)
    key = tuple(id(each) for each in spellings)
    found = _remembered.get(key)
    if found is None:
        found = spellings, _united(spellings)
        with _lock:
            while len(_remembered) >= MOST_REMEMBERED:
                del _remembered[next(iter(_remembered))]
            _remembered[key] = found
    return found[1]


def _united(spellings: Sequence[Spelling]) -> Spelling:
    hashes = np.concatenate([each.hashes for each in spellings])
    known, first = np.unique(hashes, return_index=True)
    strings = pa.concat_arrays([each.strings for each in spellings])
    return Spelling(frozen(known), strings.take(arrow(first)))


def spelled(spellings: Sequence[Spelling], wanted: np.ndarray) -> Spelling:
    """The strings of some hashes (sorted), each from where it is met first."""
    hashes, strings = [], []
    for each in spellings:
        places = np.minimum(np.searchsorted(each.hashes, wanted), len(each.hashes) - 1)
        there = each.hashes[places] == wanted
        hashes.append(wanted[there])
        strings.append(each.strings.take(arrow(places[there])))
        wanted = wanted[~there]
        if not len(wanted):
            break
    return united([Spelling(*found) for found in zip(hashes, strings, strict=True)])


def distinct(spellings: Sequence[Spelling]) -> list[Spelling]:
    """Those that have strings, each once."""
    return list({id(each): each for each in spellings if len(each.hashes)}.values())
