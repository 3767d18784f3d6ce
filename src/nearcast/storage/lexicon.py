"""Words numbered as they come: one numbering for the posts of many segments, each of which has its own."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import arrow, frozen
from nearcast.common.kernels.top_words import word_prefixes

Speller = Callable[[np.ndarray], pa.StringArray]  # terms → their words
LEFT_OUT = -1


class Lexicon:
    """Numbers of terms, in no order, and their words, by which ties are broken."""

    def __init__(self, left_out: np.ndarray) -> None:
        """`left_out` are terms that are never counted (stop words)."""
        self.left_out = left_out
        self._terms = np.empty(0, np.uint64)  # sorted
        self._numbers = np.empty(0, np.int32)
        self.starts = frozen(np.zeros(1, np.int64))
        self.data = frozen(np.zeros(0, np.uint8))
        self.prefixes = frozen(np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self._terms)

    def numbers(self, terms: np.ndarray, spell: Speller) -> np.ndarray:
        """The number of each term; LEFT_OUT for those that are not counted, and for the boundary. New ones are spelled
        and added.
        """
        fresh = np.unique(terms[(self._find(terms) < 0) & (terms != 0)])
        fresh = fresh[~np.isin(fresh, self.left_out)]
        if len(fresh):
            self._add(fresh, spell(fresh))
        return self._find(terms)

    def words(self, numbers: np.ndarray) -> pa.LargeStringArray:
        edges, data = pa.py_buffer(self.starts), pa.py_buffer(self.data)
        whole = pa.LargeStringArray.from_buffers(len(self), edges, data)
        return whole.take(arrow(numbers))

    def _find(self, terms: np.ndarray) -> np.ndarray:
        if not len(self._terms):
            return np.full(len(terms), LEFT_OUT, np.int32)
        at = np.minimum(np.searchsorted(self._terms, terms), len(self._terms) - 1)
        return np.where(self._terms[at] == terms, self._numbers[at], np.int32(LEFT_OUT))

    def _add(self, terms: np.ndarray, words: pa.StringArray) -> None:
        at = np.searchsorted(self._terms, terms)
        self._numbers = np.insert(self._numbers, at, np.arange(len(self), len(self) + len(terms), dtype=np.int32))
        self._terms = np.insert(self._terms, at, terms)
        edges = np.frombuffer(words.buffers()[1], np.int32)[words.offset : words.offset + len(words) + 1]
        data = np.frombuffer(words.buffers()[2] or b"", np.uint8)[edges[0] : edges[-1]]
        starts = (edges - edges[0]).astype(np.int64)
        more = word_prefixes(frozen(starts), frozen(data))
        self.starts = frozen(np.concatenate([self.starts, self.starts[-1] + starts[1:]]))
        self.data = frozen(np.concatenate([self.data, data]))
        self.prefixes = frozen(np.concatenate([self.prefixes, more]))
