"""What leaves have learned: words of posts that their keyword lists had not (SSTD §4.2, "QT-tree maintenance").

A router of SSTD adds the words of a post to the list of the leaf that it sends it to. Here a worker notes them with its
batch and the commit unites them, so every router of the next batch has the same lists. Lists decide where posts are
stored, never where queries go, so that they can change without an answer changing. Only words that searches ask for
are noted: by eq. 1 others make no difference to the work of a leaf.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST = 2_048  # words of a leaf, those it was built with included: a full list learns no more
ANYWHERE = -1  # in place of a leaf: a word that a search has asked for, which any leaf may learn from then on


@dataclass(frozen=True)
class LearnedWords:
    """Pairs of leaf and term, sorted, each once, and in how many posts they were seen."""

    leaf: np.ndarray  # int32
    term: np.ndarray  # uint64
    count: np.ndarray  # int64

    def __len__(self) -> int:
        return len(self.leaf)

    @classmethod
    def nothing(cls) -> "LearnedWords":
        return cls(np.empty(0, np.int32), np.empty(0, np.uint64), np.empty(0, np.int64))

    @classmethod
    def of(cls, leaf: np.ndarray, term: np.ndarray, count: np.ndarray | None = None) -> "LearnedWords":
        """From pairs in any order, those that come again added up; of each leaf at most the MOST frequent."""
        if not len(leaf):
            return cls.nothing()
        count = np.ones(len(leaf), np.int64) if count is None else count
        order = np.lexsort((term, leaf))
        leaf, term, count = leaf[order], term[order], count[order]
        starts = np.flatnonzero(np.r_[True, (leaf[1:] != leaf[:-1]) | (term[1:] != term[:-1])])
        whole = cls(leaf[starts].astype(np.int32), term[starts].astype(np.uint64), np.add.reduceat(count, starts))
        return whole.take(whole.ranks() < MOST)

    @classmethod
    def united(cls, parts: Sequence["LearnedWords"]) -> "LearnedWords":
        parts = [*parts, cls.nothing()]
        leaf, term, count = (np.concatenate([getattr(part, name) for part in parts]) for name in cls.names())
        return cls.of(leaf, term, count)

    @staticmethod
    def names() -> tuple[str, str, str]:
        return "leaf", "term", "count"

    def take(self, some: np.ndarray) -> "LearnedWords":
        return LearnedWords(self.leaf[some], self.term[some], self.count[some])

    def ranks(self) -> np.ndarray:
        """The place of each pair among those of its leaf, the most frequent first, of equals the lower term."""
        order = np.lexsort((self.term, -self.count, self.leaf))
        leaf = self.leaf[order]
        begins = np.searchsorted(leaf, leaf)
        out = np.empty(len(self), np.int64)
        out[order] = np.arange(len(self)) - begins
        return out


def lengthened(keywords: np.ndarray, starts: np.ndarray, more: LearnedWords) -> tuple[np.ndarray, np.ndarray]:
    """(keywords, starts): the sorted lists with what was learned, the most frequent words as far as there is room."""
    leaves, sizes = len(starts) - 1, np.diff(starts)
    known = LearnedWords(np.repeat(np.arange(leaves), sizes), np.asarray(keywords, np.uint64), np.zeros(len(keywords)))
    more = more.take(more.leaf >= 0)
    order = np.lexsort((np.arange(len(known) + len(more)) < len(known), *_pairs(known, more)))
    leaf, term = (each[order] for each in _pairs(known, more)[::-1])
    again = np.r_[(leaf[1:] == leaf[:-1]) & (term[1:] == term[:-1]), False][: len(order)]  # a known pair comes second
    fresh = np.ones(len(more), np.bool_)
    fresh[order[again] - len(known)] = False
    more = more.take(fresh)
    more = more.take(more.ranks() < (MOST - sizes)[more.leaf])
    term, leaf = _pairs(known, more)
    order = np.lexsort((term, leaf))
    return term[order], np.searchsorted(leaf[order], np.arange(leaves + 1)).astype(np.int64)


def _pairs(known: LearnedWords, more: LearnedWords) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate((known.term, more.term)), np.concatenate((known.leaf, more.leaf))
