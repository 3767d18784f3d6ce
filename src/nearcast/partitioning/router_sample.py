"""What a router is built from: posts and queries of the recent past, as columns."""

from dataclasses import dataclass

import numpy as np

SRQ, SKQ, STQ, CRQ, CKQ, CTQ = range(6)  # SSTD §3.1: range, nearest, terms; searches first, then subscriptions
TYPES = ("srq", "skq", "stq", "crq", "ckq", "ctq")


@dataclass(frozen=True)
class SampledPosts:
    """`terms[offsets[i]:offsets[i + 1]]` are the words of post i, 0 being the boundary before tags; `ts` is in
    microseconds.
    """

    lon: np.ndarray
    lat: np.ndarray
    ts: np.ndarray
    terms: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.lon)


@dataclass(frozen=True)
class Queries:
    """`boxes` are (min_lon, min_lat, max_lon, max_lat) of the regions, wrapping where min_lon > max_lon (the point of a
    nearest query is a box without area). `code` and `code_offsets` are keyword expressions as in `common.op_schema`,
    the key of each conjunction marked. `life` is the length of the window of a search, or of a subscription's life, in
    microseconds (NEVER for ever); `k` is that of nearest and terms.
    """

    type: np.ndarray
    boxes: np.ndarray
    code: np.ndarray
    code_offsets: np.ndarray
    life: np.ndarray
    k: np.ndarray

    def __len__(self) -> int:
        return len(self.type)


@dataclass(frozen=True)
class RouterSample:
    """Empty columns are fine: a router can be built from nothing."""

    posts: SampledPosts
    queries: Queries
