"""The terms of a subscription index, numbered by rarity: how often each is among the words of its subscribers."""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.kernels.term_ranks import look_up, number_words, refile
from nearcast.kinds.relevance.vectors import Profiles

SMALLEST = 1 << 10


@dataclass(frozen=True)
class Terms:
    """A hash table from terms to numbers; number 0 is the rarest."""

    keys: np.ndarray
    numbers: np.ndarray
    count: int

    @classmethod
    def of(cls, profiles: Profiles, rows: np.ndarray) -> tuple["Terms", np.ndarray]:
        """The terms of these subscribers, and the numbers of their words, one after the other."""
        sizes = profiles.offsets[rows + 1] - profiles.offsets[rows]
        out = np.empty(int(sizes.sum()), np.int32)
        slots = SMALLEST
        keys, numbers, counts = _table(slots)
        done, filled, known = 0, 0, 0
        while True:
            done, filled, known = number_words(
                rows, profiles.words, profiles.offsets, keys, numbers, counts, out, done, filled, known
            )
            if done == len(rows):
                break
            slots *= 4
            larger = _table(slots)
            refile(keys, numbers, larger[0], larger[1])
            larger[2][:known] = counts[:known]
            keys, numbers, counts = larger
        rank = np.empty(known + 1, np.int32)
        rank[np.argsort(counts[:known], kind="stable")] = np.arange(known, dtype=np.int32)
        rank[known] = -1  # where numbers has -1 for a free slot
        return cls(frozen(keys), frozen(rank[numbers]), known), frozen(rank[out])

    def numbers_of(self, terms: np.ndarray) -> np.ndarray:
        """The number of each term, below 0 where no subscriber has it."""
        return frozen(look_up(terms, self.keys, self.numbers))

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.numbers.nbytes


def _table(slots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(slots, np.uint64), np.full(slots, -1, np.int32), np.zeros(slots, np.int64)
