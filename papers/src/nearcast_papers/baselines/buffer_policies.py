"""Buffers that Skype is compared with (Skype §6.1, §8): those of fixed length, and the plain k-skyband."""

from dataclasses import dataclass

import numpy as np

from nearcast.kinds.relevance.skyband_policy import NO_LIMIT, nth


@dataclass(frozen=True)
class Kmax:
    """The k' best, k <= k' <= kmax, with no regard to dominance (Yi et al., Skype §2): a refill gets kmax, more than
    kmax are cut to that. A post between the last member and the theta of the last cut is taken in, too, since all
    above theta are here.
    """

    kmax: int = 60
    dominance: bool = False

    def wanted(self, k: np.ndarray, window: np.ndarray | None = None) -> np.ndarray:
        return np.maximum(k, self.kmax)

    def thetas(self, k: np.ndarray, starts: np.ndarray, scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return nth(starts, scores, asked)

    def room(self, k: np.ndarray, window: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self.wanted(k, window), self.wanted(k, window)


@dataclass(frozen=True)
class PlainSkyband:
    """The k-skyband of the posts with at least `ratio` times the k-th score at the last refill (Mouratidis et al.,
    Skype §6.1 and §8: 1.0 is the original, 0.95 was best), however many there are.
    """

    ratio: float = 0.95
    dominance: bool = True

    def wanted(self, k: np.ndarray, window: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(k) if self.ratio == 1.0 else 2 * np.asarray(k)

    def thetas(self, k: np.ndarray, starts: np.ndarray, scores: np.ndarray, asked: np.ndarray) -> np.ndarray:
        found = np.diff(starts)
        theta = self.ratio * nth(starts, scores, k)
        last = np.where(found > 0, scores[np.maximum(starts[1:] - 1, 0)] if len(scores) else 0.0, 0.0)
        return np.where((found < asked) | (last <= theta), theta, np.nan)

    def room(self, k: np.ndarray, window: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        unlimited = np.full(len(k), NO_LIMIT)
        return unlimited, unlimited
