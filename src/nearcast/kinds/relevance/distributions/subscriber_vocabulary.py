"""Words in the order of their frequency, and cuts of that order into runs of words, one a worker (Algorithm 4)."""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import freeze
from nearcast.kinds.relevance.distributions.subscriber_arrays import as_kind
from nearcast.kinds.relevance.kernels.distribution import loose_prefixes, ranks_of
from nearcast.kinds.relevance.vectors import Profiles
from nearcast.storage.subscriptions.rows import is_first

Pairs = tuple[np.ndarray, np.ndarray]  # rows and ranks of words, by row, then by rank


@dataclass(frozen=True)
class SubscriberVocabulary:
    """Terms (sorted) and the rank of each by frequency, the rarest first, ties by term. Others are rarer than all."""

    known: np.ndarray
    rank: np.ndarray

    def __post_init__(self) -> None:
        freeze(self)

    @classmethod
    def of(cls, terms: np.ndarray, counts: np.ndarray) -> "SubscriberVocabulary":
        rank = np.empty(len(terms), np.int64)
        rank[np.lexsort((terms, counts))] = np.arange(len(terms))
        return cls(as_kind(terms, np.uint64), rank)

    def __len__(self) -> int:
        return len(self.known)

    def ranks(self, terms: np.ndarray) -> np.ndarray:
        """The rank of each term, -1 for one that is not known."""
        return ranks_of(as_kind(terms, np.uint64), as_kind(self.known, np.uint64), as_kind(self.rank, np.int64))


def prefixes(profiles: Profiles, theta: np.ndarray, ranks: np.ndarray, by_sum: bool) -> np.ndarray:
    """Which words are in the loose prefix of their subscriber (Skype, Definition 12), given their ranks.

    Equation 18 with theta for kScore and in multiplied form: the prefix ends where alpha + (1 - alpha) * rest < theta,
    widened by 1e-12; rest is wtsum (equation 3) or, tighter, the length of the vector of the words that are left, which
    bounds their part of the cosine since a post's vector has length 1. With theta 0, or alpha 1, all words are in it.
    """
    return loose_prefixes(
        as_kind(profiles.offsets, np.int64), as_kind(ranks, np.int64), as_kind(profiles.weights, np.float64),
        as_kind(profiles.alpha, np.float64), as_kind(theta, np.float64), by_sum,
    )  # fmt: skip


def pairs_of(offsets: np.ndarray, ranks: np.ndarray, chosen: np.ndarray | None = None) -> Pairs:
    """The known words of rows, those that are chosen."""
    wanted = ranks >= 0 if chosen is None else (ranks >= 0) & chosen
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[wanted]
    ranks = ranks[wanted]
    order = np.lexsort((ranks, rows))
    return rows[order], ranks[order]


def cut_words(words: int, held: Pairs, posted: Pairs, shares: np.ndarray) -> np.ndarray:
    """Runs of ranks, one a slot: slot i has those below `ends[i]` that no slot before it has (Algorithm 4).

    A run W costs C(W) = N(W) * p(W) (equation 16): subscribers with a word of it, among `held`, times posts with one.
    Runs are halved where |C(W1) - C(W2)| is least. Slots weigh as `shares` say (how many workers stand behind each);
    where the halves have unlike shares l1 and l2, the least |C(W1) / l1² - C(W2) / l2²| is taken, as both factors of a
    cost shrink when it is shared out. A half has at least as many words as slots, as long as there are enough; slots
    that are left over get none. Among equals the halves with the most even numbers of words. O(words + pairs) a level.
    """
    ends = np.full(len(shares), words, np.int64)

    def halve(begin: int, end: int, first: int, last: int, held: Pairs, posted: Pairs) -> None:
        if last - first == 1:
            ends[first] = end
        elif end - begin <= last - first:
            ends[first:last] = np.minimum(begin + 1 + np.arange(last - first), end)
        else:
            middle = (first + last) // 2
            low, high = int(shares[first:middle].sum()), int(shares[middle:last].sum())
            cuts = np.arange(begin + middle - first, end - (last - middle) + 1)
            left, right = _sides(begin, end, held), _sides(begin, end, posted)
            costs = np.stack((left[0] * right[0], left[1] * right[1]))[:, cuts - begin]
            cut = int(cuts[least(costs, np.stack((cuts - begin, end - cuts)), low, high)])
            halve(begin, cut, first, middle, *(_within(each, begin, cut) for each in (held, posted)))
            halve(cut, end, middle, last, *(_within(each, cut, end) for each in (held, posted)))

    halve(0, words, 0, len(shares), held, posted)
    return ends


def least(costs: np.ndarray, sizes: np.ndarray, low: int, high: int) -> int:
    """The cut with the least difference of its two costs, for shares low and high; then of its two sizes."""
    apart = np.abs(costs[0] * high**2 - costs[1] * low**2)
    equals = np.flatnonzero(apart == apart.min())
    return int(equals[np.argmin(np.abs(sizes[0, equals] * high - sizes[1, equals] * low))])


def _sides(begin: int, end: int, pairs: Pairs) -> np.ndarray:
    """int64[2, end - begin + 1]: for each cut, how many rows have a word before it, and how many have one after."""
    rows, ranks = pairs
    is_start = is_first(rows)
    is_end = np.r_[is_start[1:], True] if len(rows) else is_start
    starts = np.bincount(ranks[is_start] - begin, minlength=end - begin)
    stops = np.bincount(ranks[is_end] - begin, minlength=end - begin)
    return np.stack((np.r_[0, np.cumsum(starts)], np.r_[np.cumsum(stops[::-1])[::-1], 0]))


def _within(pairs: Pairs, begin: int, end: int) -> Pairs:
    rows, ranks = pairs
    inside = (ranks >= begin) & (ranks < end)
    return rows[inside], ranks[inside]
