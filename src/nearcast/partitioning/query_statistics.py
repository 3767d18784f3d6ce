"""The quadtree J of query distribution statistics (SSTD §4.1.1, figure 5): what the cost model knows of a workload.

For every cell of J: the chance that a query of each type touches it, the posts that arrive, and the distributions of
query keywords (M_srq, M_skq), of the number of words of a query, and of its life. Statistics over the same extent can
be merged and aged, so that they can follow a stream. An SKQ or CKQ touches the cells of its search region, which is not
known before it is answered: it is taken to be the square about its place in which, by the density of posts there and
the frequencies of its words, k posts are expected.
"""

from dataclasses import dataclass, replace

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.errors import BadInput
from nearcast.common.kernels.grid import grid_leaves
from nearcast.common.op_schema import NEVER
from nearcast.partitioning.cell_distribution import Spread
from nearcast.partitioning.kernels.cell_sums import box_rectangles
from nearcast.partitioning.kernels.query_counts import first_cell, keyword_sets, known_words, touched
from nearcast.partitioning.router_sample import CKQ, CRQ, SKQ, SRQ, STQ, TYPES, Queries, RouterSample, SampledPosts
from nearcast.partitioning.sample_tally import Extent, extent_of

DEPTH = 10  # of J: the finest level has 1024 by 1024 cells
WORD_DEPTH = 4  # of its distributions
MOST_WORDS = 16  # that a query is told apart by
FOREVER = 168 * 3600.0  # seconds: what a life without end counts as, the longest that SSTD §7 tests
SECOND = 1e6
LEAST = 0.05  # an aged weight below this is forgotten


@dataclass(frozen=True)
class Statistics:
    """`posts` and `queries[type]` count by cell, level after level; `totals` are all queries by type. `span` is the
    time in which the posts arrived, in seconds.
    """

    extent: Extent
    depth: int
    span: float
    posts: np.ndarray
    queries: np.ndarray
    totals: np.ndarray
    words: Spread
    lengths: Spread
    lives: Spread

    @classmethod
    def of(
        cls, sample: RouterSample, extent: Extent | None = None, depth: int = DEPTH, word_depth: int = WORD_DEPTH
    ) -> "Statistics":
        """J of a sample: every query that touches a cell, counted."""
        extent = extent or extent_of(sample)
        posts = _post_pyramid(sample.posts, extent, depth)
        sets = _KeywordSets.of(sample.queries)
        boxes = _search_boxes(sample, extent, depth, posts, sets)
        rows, rectangles = box_rectangles(frozen(boxes), frozen(np.array(extent)), 1 << depth)
        types = sample.queries.type.astype(np.int64)
        worded = np.where((types == SRQ) | (types == SKQ), types, -1)
        standing = np.where(types >= CRQ, types - CRQ, -1)
        placed = (rows, rectangles, depth, min(word_depth, depth))
        return cls(
            extent,
            depth,
            _span(sample.posts),
            posts,
            _query_pyramid(rows, rectangles, types, depth),
            np.bincount(types, minlength=len(TYPES)).astype(np.float64),
            Spread.of(*placed, worded, 2, sets.row_offsets, sets.terms, sets.weights),
            Spread.of(*placed, worded, 2, sets.set_rows, np.minimum(sets.lengths, MOST_WORDS), sets.shares),
            Spread.of(
                *placed, standing, 3, np.arange(len(types) + 1), _rounded(sample.queries.life), np.ones(len(types))
            ),
        )

    def cell(self, level: int, x: int, y: int) -> int:
        return int(first_cell(level)) + y * (1 << level) + x

    @property
    def mix(self) -> np.ndarray:
        """Pr(srq) to Pr(ctq) of eq. 2."""
        return self.totals / max(float(self.totals.sum()), 1e-300)

    def chances(self, level: int, x: int, y: int) -> np.ndarray:
        """p_srq to p_ctq: the share of the queries of each type that touch the cell; 0 for a type that never came."""
        touching = self.queries[:, self.cell(level, x, y)]
        return np.divide(touching, self.totals, out=np.zeros(len(TYPES)), where=self.totals > 0)

    def arrivals(self, level: int, x: int, y: int) -> float:
        """E_obj: the posts that arrive in the cell in a second."""
        return float(self.posts[self.cell(level, x, y)]) / self.span

    def keywords(self, kind: int, level: int, x: int, y: int) -> np.ndarray:
        """M_srq (kind SRQ) or M_skq: the probability of each of `words.values`."""
        return _probabilities(self.words, kind, level, x, y)

    def word_counts(self, kind: int, level: int, x: int, y: int) -> np.ndarray:
        """Pr(|q.φ| = l) for l = 0 to MOST_WORDS."""
        out = np.zeros(MOST_WORDS + 1)
        out[self.lengths.values.astype(np.int64)] = _probabilities(self.lengths, kind, level, x, y)
        return out

    def life(self, kind: int, level: int, x: int, y: int) -> float:
        """Σ_T Pr(q.τ = T)·T of CRQ, CKQ or CTQ, in seconds."""
        lives = self.lives.values
        seconds = np.where(lives == NEVER, FOREVER, lives / SECOND)
        return float(_probabilities(self.lives, kind - CRQ, level, x, y) @ seconds)

    def merged(self, other: "Statistics", same_time: bool = False) -> "Statistics":
        """What both have seen, one after the other, or (`same_time`) side by side. Counts of parts add up exactly to
        those of the whole.
        """
        if (self.extent, self.depth) != (other.extent, other.depth):
            raise BadInput("statistics over different extents cannot be merged")
        return replace(
            self,
            span=max(self.span, other.span) if same_time else self.span + other.span,
            posts=self.posts + other.posts,
            queries=self.queries + other.queries,
            totals=self.totals + other.totals,
            words=self.words.merged(other.words),
            lengths=self.lengths.merged(other.lengths),
            lives=self.lives.merged(other.lives),
        )

    def aged(self, factor: float) -> "Statistics":
        """The same distributions with less weight, so that what is merged later counts for more."""
        return replace(
            self,
            span=self.span * factor,
            posts=self.posts * factor,
            queries=self.queries * factor,
            totals=self.totals * factor,
            words=self.words.aged(factor, LEAST),
            lengths=self.lengths.aged(factor, 0.0),
            lives=self.lives.aged(factor, 0.0),
        )

    def weighted(self, factors: np.ndarray) -> "Statistics":
        """The same where each query of a type stands for so many: Pr(type) changes, the distributions within a type
        stay.
        """
        return replace(self, queries=self.queries * factors[:, None], totals=self.totals * factors)

    def as_if_posts_asked(self) -> "Statistics":
        """Where no query is known: as though an STQ were asked at the place of every post."""
        queries, totals = self.queries.copy(), self.totals.copy()
        queries[STQ], totals[STQ] = self.posts, self.posts[0]
        return replace(self, queries=queries, totals=totals)

    def arrays(self) -> dict[str, np.ndarray]:
        out = {name: getattr(self, name) for name in ("posts", "queries", "totals")}
        out["frame"] = np.array([*self.extent, self.depth, self.span])
        for name in ("words", "lengths", "lives"):
            spread = getattr(self, name)
            out |= {f"{name}_{part}": getattr(spread, part) for part in ("place", "value", "weight")}
        return out

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Statistics":
        west, south, width, height, depth, span = (float(v) for v in arrays["frame"])
        spreads = [
            Spread(kinds, *(arrays[f"{name}_{part}"] for part in ("place", "value", "weight")))
            for name, kinds in (("words", 2), ("lengths", 2), ("lives", 3))
        ]
        queries = arrays["queries"].reshape(len(TYPES), -1)
        frame = ((west, south, width, height), int(depth), span)
        return cls(*frame, arrays["posts"], queries, arrays["totals"], *spreads)


@dataclass(frozen=True)
class _KeywordSets:
    """The words of queries: each conjunction is a set q.φ of its own, and counts as much as the others of its query."""

    set_rows: np.ndarray  # sets set_rows[r] to set_rows[r + 1] - 1 are those of query r
    starts: np.ndarray
    terms: np.ndarray
    shares: np.ndarray  # of each set in its query

    @classmethod
    def of(cls, queries: Queries) -> "_KeywordSets":
        row, starts, terms = keyword_sets(frozen(queries.code), frozen(np.asarray(queries.code_offsets, np.int64)))
        count = np.bincount(row, minlength=len(queries))
        return cls(np.r_[0, np.cumsum(count)], starts, terms, 1.0 / count[row])

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)

    @property
    def weights(self) -> np.ndarray:
        """Of each term."""
        return np.repeat(self.shares, self.lengths)

    @property
    def row_offsets(self) -> np.ndarray:
        """The terms of query r are those from row_offsets[r] on."""
        return self.starts[self.set_rows]


def _probabilities(spread: Spread, kind: int, level: int, x: int, y: int) -> np.ndarray:
    entries, weight = spread.at(kind, level, x, y)
    sums = np.bincount(spread.index[entries], weight, len(spread.values))
    return sums / max(float(weight.sum()), 1e-300)


def _span(posts: SampledPosts) -> float:
    """Seconds; at least one, for posts that all came at once."""
    return max(float(posts.ts.max() - posts.ts.min()) / SECOND, 1.0) if len(posts) else 1.0


def _rounded(life: np.ndarray) -> np.ndarray:
    """Lives to seven significant bits, which is less than 1% off, so that few different ones are kept."""
    life = np.clip(life, 1, NEVER)
    unit = np.int64(1) << np.maximum(np.floor(np.log2(life.astype(np.float64))).astype(np.int64) - 6, 0)
    return np.where(life == NEVER, NEVER, np.minimum((life // unit) * unit + unit // 2, NEVER - 1))


def _post_pyramid(posts: SampledPosts, extent: Extent, depth: int) -> np.ndarray:
    side = 1 << depth
    at = grid_leaves(frozen(posts.lon), frozen(posts.lat), frozen(np.array(extent)), side)
    counts = np.bincount(at, minlength=side * side).astype(np.float64)
    levels = [counts]
    for level in range(depth, 0, -1):
        half = 1 << (level - 1)
        levels.append(levels[-1].reshape(half, 2, half, 2).sum(axis=(1, 3)).reshape(-1))
    return np.concatenate(levels[::-1])


def _query_pyramid(rows: np.ndarray, rectangles: np.ndarray, types: np.ndarray, depth: int) -> np.ndarray:
    levels = [
        touched(frozen(rows), frozen(rectangles), frozen(types), len(TYPES), depth - level, 1 << level)
        for level in range(depth + 1)
    ]
    return np.concatenate([level.reshape(len(TYPES), -1) for level in levels], axis=1)


def _search_boxes(
    sample: RouterSample, extent: Extent, depth: int, posts: np.ndarray, sets: _KeywordSets
) -> np.ndarray:
    """The boxes of the queries, with those of the nearest grown to where k posts are expected."""
    queries = sample.queries
    boxes = np.array(queries.boxes, np.float64).reshape(-1, 4)
    nearest = np.flatnonzero((queries.type == SKQ) | (queries.type == CKQ))
    if not len(nearest):
        return boxes
    matching = _selectivity(sample, sets)[nearest]
    lon, lat = boxes[nearest, 0], boxes[nearest, 1]
    finest = grid_leaves(frozen(lon), frozen(lat), frozen(np.array(extent)), 1 << depth).astype(np.int64)
    x, y = finest % (1 << depth), finest // (1 << depth)
    side = np.full(len(nearest), 2.0)  # in extents: all of it, whatever the place
    k = np.maximum(queries.k[nearest], 1).astype(np.float64)
    for up in range(depth, -1, -1):  # from the root down: the finest cell that has k of them decides
        level = depth - up
        expected = posts[int(first_cell(level)) + (y >> up) * (1 << level) + (x >> up)] * matching
        enough = expected >= k
        side[enough] = np.sqrt(k[enough] / expected[enough]) / (1 << level)
    half_width, half_height = side * extent[2] / 2, side * extent[3] / 2
    boxes[nearest, 0] = np.maximum(lon - half_width, -180.0)
    boxes[nearest, 1] = np.maximum(lat - half_height, -90.0)
    boxes[nearest, 2] = np.minimum(lon + half_width, 180.0)
    boxes[nearest, 3] = np.minimum(lat + half_height, 90.0)
    return boxes


def _selectivity(sample: RouterSample, sets: _KeywordSets) -> np.ndarray:
    """The share of posts that each query's words are expected in, words being independent of each other."""
    vocabulary = np.unique(sets.terms)
    offsets = frozen(np.asarray(sample.posts.offsets, np.int64))
    words, _ = known_words(frozen(sample.posts.terms), offsets, frozen(vocabulary))
    share = np.bincount(words, minlength=len(vocabulary)) / max(len(sample.posts), 1)
    logs = np.log(np.maximum(share, 1e-12))[np.searchsorted(vocabulary, sets.terms)]
    sums = np.r_[0.0, np.cumsum(logs)]
    all_words = np.exp(sums[sets.starts[1:]] - sums[sets.starts[:-1]])
    totals = np.r_[0.0, np.cumsum(all_words)]
    return np.minimum(totals[sets.set_rows[1:]] - totals[sets.set_rows[:-1]], 1.0)
