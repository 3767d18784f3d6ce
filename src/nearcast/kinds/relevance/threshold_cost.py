"""How many posts of the window should be at or above a subscriber's threshold: the cost model of Skype §6.2.

With n posts of the window W at or above theta, prob(theta) = n / |W|, and each update (a post that arrives, or one that
expires) costs C = C_sm + C_re (eq. 13):

- C_sm = prob * |A|: as often as the update is one of those n, the buffer A is gone through (eq. 9). The paper's
  |A| = k ln(n / k) is less than k for n < e k, and 0 for n = k; of n posts in random order the i-th best is among the k
  latest of the first i with probability min(1, k / i), so that |A| = k + k (1/(k+1) + ... + 1/n), which is used here
  and is about k + k ln(n / k).
- C_re = C_topk / Z': a search of the window, once in Z' updates. Z' (eq. 12) is the time a random walk takes from n to
  k - 1, with steps of +1 and -1 each as likely as prob / 2 and a barrier at 2 n. The printed form is right for a
  barrier at which a step up is a stay: with d = n - k + 1, Z' prob = d (3 n - k + 2). `passage` has it for unequal
  chances of a step up and down too (§6.3).

|W| divides both parts, so that the best n does not depend on it, but for n <= |W|. Costs are counted in the time that
one entry of a buffer takes to go through.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MOST_SEARCHED = 1 << 22  # numbers of posts tried, at most


def sizes(k: int, n: np.ndarray) -> np.ndarray:
    """The expected size of the k-skyband of n >= k posts whose scores and times are independent."""
    top = int(n.max(initial=k))
    harmonic = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, top + 1))))
    return np.asarray(k + k * (harmonic[n] - harmonic[k]))


def passage(k: int, n: np.ndarray, arrivals: float = 0.5, expiries: float = 0.5) -> np.ndarray:
    """Z' * prob(theta): the steps of the walk from n until fewer than k are left, not counting updates of other posts.

    Of all updates `arrivals` are arrivals and `expiries` are expiries. Infinite where nothing expires.
    """
    left = n - k + 1.0
    height = 2.0 * n - k + 1.0
    if expiries == 0.0:
        return np.full(n.shape, np.inf)
    ratio = arrivals / expiries
    if abs(ratio - 1.0) < 1e-6:
        return np.asarray(left * (2.0 * height - left + 1.0) / (2.0 * expiries))
    with np.errstate(over="ignore", invalid="ignore"):
        gone = ratio ** (height - left + 1.0) * (1.0 - ratio**left) / (1.0 - ratio)
        steps = (left - gone) / (expiries * (1.0 - ratio))
    return np.where(np.isfinite(steps), steps, np.inf)


@lru_cache(maxsize=4096)
def _best(k: int, cost: float, arrivals: float, expiries: float) -> int:
    tried = np.arange(k, k + 16 + min(int(2 * np.sqrt(cost)), MOST_SEARCHED))
    costs = tried * (sizes(k, tried) + cost / passage(k, tried, arrivals, expiries))
    return int(tried[np.argmin(costs)])


def best_n(
    k: np.ndarray,
    window: np.ndarray | float,
    cost_of_a_search: float,
    arrivals: np.ndarray | float = 0.5,
    expiries: np.ndarray | float = 0.5,
) -> np.ndarray:
    """The n that costs least, for each k, window (in posts) and shares of arrivals and expiries (broadcast): theta
    should be the score of the n-th best post of the window. At least k, and otherwise at most the window.

    The cost of a search is taken to three digits, and the shares to two, so that few different ones are worked out.
    """
    cost = float(f"{max(float(cost_of_a_search), 1.0):.3g}")
    percent = percentage(arrivals, expiries)
    k, percent = np.broadcast_arrays(np.asarray(k, np.int64), percent)
    kinds, back = distinct(k.ravel() * 128 + percent.ravel())
    each = [_best(code >> 7, cost, (code & 127) / 100, (100 - (code & 127)) / 100) for code in kinds.tolist()]
    found = np.array(each, np.int64)[back].reshape(k.shape)
    return np.asarray(np.maximum(np.minimum(found, window), k), np.int64)


def percentage(arrivals: np.ndarray | float, expiries: np.ndarray | float) -> np.ndarray:
    """The share of arrivals among updates, in percent; 50 where there are none."""
    total = np.asarray(arrivals, np.float64) + expiries
    share = np.divide(arrivals, total, out=np.full(total.shape, 0.5), where=total > 0)
    return np.rint(100 * share).astype(np.int64)


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values, and which of those each is. Small ones, of which there may be millions, are not sorted."""
    if not len(values) or values.max() > 1 << 20:
        return np.unique(values, return_inverse=True)
    kinds = np.flatnonzero(np.bincount(values))
    place = np.zeros(kinds[-1] + 1, np.int64)
    place[kinds] = np.arange(len(kinds))
    return kinds, place[values]


@dataclass(frozen=True)
class Rates:
    """What is to be expected of windows of time (§6.3): posts in each, and shares of arrivals and expiries."""

    window: np.ndarray
    arrivals: np.ndarray
    expiries: np.ndarray

    @classmethod
    def of(cls, times: np.ndarray, clock: int, lengths: np.ndarray, recent: int) -> "Rates":
        """From the sorted `times` of posts that are kept: a window of such a length will have as many as come in its
        length at the rate of the last `recent` microseconds. Of the next updates, that many are arrivals, and the posts
        in the oldest `recent` of the window are the expiries: those that have just left may not be kept.
        """
        lengths = np.asarray(lengths, np.int64)
        came = np.searchsorted(times, clock, "right") - np.searchsorted(times, clock - recent, "right")
        edge = clock - lengths
        leave = np.searchsorted(times, edge + np.minimum(recent, lengths), "right")
        leave = leave - np.searchsorted(times, edge, "right")
        up = np.where(came + leave == 0, 0.5, came / np.maximum(came + leave, 1))
        return cls(came * (lengths / recent), up, 1.0 - up)
