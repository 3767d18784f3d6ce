"""The cost model of SSTD §4.1.1 (eq. 1-2): the work that a partition P of space and text is expected to do for one
random query.

    W_srq = p_srq · Pr(q.φ ⊆ P.φ) · |O|        Pr(q.φ ⊆ P.φ) = Σ_l Pr(|q.φ| = l) · H^l  (eq. 1)
    W_skq = the same with p_skq and H_skq       H = Σ p_w over the words w of M that are among P's keywords
    W_stq = p_stq · |O|
    W_crq, W_ckq, W_ctq = p · E_P,O             E_P,O = Σ_T Pr(q.τ = T) · T · E_P
    W     = Σ over types of Pr(type) · W_type   (eq. 2)

The probabilities are those of J at P's cell. Each W is proportional to |O|, since a partition's posts arrive as they
did in the sample, E_P = |O| / its span: so a cell and a set of keywords have a price a post, and W = |O| · price.
"""

from dataclasses import dataclass

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.partitioning.kernels.query_counts import heard, price
from nearcast.partitioning.query_statistics import Statistics
from nearcast.partitioning.router_sample import CKQ, CRQ, CTQ, SKQ, SRQ, STQ


@dataclass(frozen=True)
class Prices:
    """What a post of a cell of J costs, but for P's keywords: W(P) = |O| · (flat + Σ coefficients[type, l] · H_type^l).

    `chances` is M_srq and M_skq over the words of J (`Statistics.words.values`).
    """

    chances: np.ndarray
    coefficients: np.ndarray
    flat: float

    @classmethod
    def of(cls, j: Statistics, level: int, x: int, y: int) -> "Prices":
        p = j.mix * j.chances(level, x, y)
        flat = p[STQ] + sum(p[kind] * _stay(j, kind, level, x, y) for kind in (CRQ, CKQ, CTQ))
        kinds = (SRQ, SKQ)
        return cls(
            frozen(np.stack([j.keywords(kind, level, x, y) for kind in kinds])),
            frozen(np.stack([p[kind] * j.word_counts(kind, level, x, y) for kind in kinds])),
            float(flat),
        )

    def hits(self, posts: np.ndarray, words: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """H_srq and H_skq of a partition that has these posts."""
        return heard(posts, words, offsets, self.chances)

    def post(self, hits: np.ndarray) -> float:
        """The price of one post."""
        return float(price(frozen(np.ascontiguousarray(hits)), self.coefficients, self.flat))


def works(j: Statistics, level: int, x: int, y: int, posts: float, keywords: np.ndarray | None = None) -> np.ndarray:
    """W_srq to W_ctq of a partition at a cell of J with so many posts and, sorted, these keywords (None: all)."""
    p = j.chances(level, x, y)
    out = p * posts
    for kind in (SRQ, SKQ):
        out[kind] *= covering(j, kind, level, x, y, keywords)
    for kind in (CRQ, CKQ, CTQ):
        out[kind] *= _stay(j, kind, level, x, y)
    return out


def workload(j: Statistics, works: np.ndarray) -> float:
    """W of eq. 2."""
    return float(j.mix @ works)


def covering(j: Statistics, kind: int, level: int, x: int, y: int, keywords: np.ndarray | None = None) -> float:
    """Pr(q.φ ⊆ P.φ | q touches P) of eq. 1 for SRQ or SKQ."""
    chances = j.keywords(kind, level, x, y)
    known = np.ones(len(chances), np.bool_) if keywords is None else np.isin(j.words.values, keywords)
    hit = min(float(chances[known].sum()), 1.0)
    lengths = j.word_counts(kind, level, x, y)
    return float(lengths @ hit ** np.arange(len(lengths)))


def _stay(j: Statistics, kind: int, level: int, x: int, y: int) -> float:
    """E_P,O / |O|: how often a cell's posts of the sample come again during a query's life."""
    return j.life(kind, level, x, y) / j.span
