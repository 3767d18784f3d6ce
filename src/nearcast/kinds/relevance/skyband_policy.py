"""How long a subscriber's buffer is: the cost-based k-skyband of Skype (Skype §6.2).

A policy says how many posts a refill searches for, which theta follows from what it found, whether members that k
others dominate are evicted, how many members there may be, and how many stay when there are more.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nearcast.kinds.relevance.threshold_cost import best_n, distinct, percentage

NO_LIMIT = 1 << 40


class Policy(Protocol):
    @property
    def dominance(self) -> bool:
        """Whether members that k others dominate are evicted."""
        ...

    def wanted(self, k: np.ndarray, window: np.ndarray | None = None) -> np.ndarray:
        """How many of the best a refill should search for at first, for rows of such k and windows (by index; without
        them, what is right on the whole).
        """
        ...

    def thetas(self, k: np.ndarray, starts: np.ndarray, scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """The theta of each row for which the `asked` best (fewer only where there are no more) and all ties of the
        last were found, best first; NaN where that is not enough, and more must be searched for.
        """
        ...

    def room(self, k: np.ndarray, window: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The most members (at least k), and how many of them stay (from k on, not more than that) if there are more:
        those and the ties of the last.
        """
        ...


@dataclass(frozen=True)
class CostBased:
    """cSkyband: theta is the score of the n-th best post of the window, with the n that costs least
    (`kinds.relevance.threshold_cost`).

    A buffer of more than `most` k members raises its theta to where a refill would have set it: to the score of the
    member that is as far down as a skyband of n posts is long. So none is longer, but for ties, and a buffer that has
    drifted up comes back without a search. No n is asked for whose skyband would fill more than `fill` of that.

    `cost_of_a_search` is in units of the time that one entry of a buffer takes to go through, in which an arrival costs
    the length of the buffer. `arrivals` and `expiries` are their shares of all updates, for all windows or for each
    (§6.3, `kinds.relevance.threshold_cost.Rates`).
    """

    cost_of_a_search: float = 12_000.0
    arrivals: np.ndarray | float = 0.5
    expiries: np.ndarray | float = 0.5
    most: float = 1.8
    fill: float = 0.875
    dominance: bool = True

    def wanted(self, k: np.ndarray, window: np.ndarray | None = None) -> np.ndarray:
        return self._wanted(np.asarray(k, np.int64), self._percent(window))

    def thetas(self, k: np.ndarray, starts: np.ndarray, scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return nth(starts, scores, asked)

    def room(self, k: np.ndarray, window: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        kinds, back = distinct(np.asarray(k, np.int64) * 128 + self._percent(window))
        k = kinds >> 7
        most = np.maximum((self.most * k).astype(np.int64), k + 1)
        stay = np.ceil(k + k * np.log(self._wanted(k, kinds & 127) / np.maximum(k, 1))).astype(np.int64)
        return most[back], np.clip(stay, k, most)[back]

    def _percent(self, window: np.ndarray | None) -> np.ndarray:
        percent = percentage(self.arrivals, self.expiries)
        return percent[window] if percent.ndim and window is not None else np.rint(percent.mean()).astype(np.int64)

    def _wanted(self, k: np.ndarray, percent: np.ndarray) -> np.ndarray:
        n = best_n(k, np.inf, self.cost_of_a_search, percent, 100 - percent)
        fullest = k * np.exp(max(self.most * self.fill - 1.0, 0.0))
        return np.maximum(np.minimum(n, fullest.astype(np.int64)), k)


def nth(starts: np.ndarray, scores: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The n-th score of each row, or 0, which every post has that has a score, where there are fewer."""
    there = np.diff(starts) >= n
    out = np.zeros(len(there))
    out[there] = scores[(starts[:-1] + np.maximum(n, 1) - 1)[there]]
    return out
