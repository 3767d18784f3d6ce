"""IGPT for whole batches (ours, after Skype §5): postings by term, in blocks of subscribers alike.

The paper's index is by cell, then by term, and is walked post by post. Here a batch is inverted by term, and the
postings of a term, which lie together, are gone through once for all posts that have it. In place of cells, alpha
groups and the order by kScore* there are blocks of 64 postings, made by halving in whatever tells most: place, alpha,
threshold or weight. A block is skipped by one comparison, all of the paper's group and cell bounds in one; a posting by
another, which is location-aware prefix, max-weight refinement and the bound for unseen words. Candidates are verified
in the order of subscribers, whose data is then read once.

Rules, each of which can be left out: `prefix` (no posting for a word at which no post could be affecting), `blocks`,
`postings`.

Cost: a pass over the blocks of the batch's terms, at 1-2 ns a post and block; memory 36 bytes a posting.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.kernels.batch_match import (
    SHELF,
    BlockedPostings,
    InvertedBatch,
    by_row,
    collect,
    invert,
    verify,
)
from nearcast.kinds.relevance.kernels.posting_blocks import (
    BLOCK,
    FIELDS,
    arrange,
    bound_blocks,
    count_postings,
    fill_postings,
)
from nearcast.kinds.relevance.kernels.vector_arrays import PostVectors, ScoredPairs
from nearcast.kinds.relevance.matcher import Matcher, Pairs, StandingSubscribers
from nearcast.kinds.relevance.term_ranks import Terms
from nearcast.kinds.relevance.vectors import Profiles, Vectors

RULES = frozenset({"prefix", "blocks", "postings"})
MOST_CANDIDATES = 1 << 21  # verified at a time


@dataclass(frozen=True)
class BatchIndex:
    """Postings of subscribers by term, and bounds of their blocks: see `kinds.relevance.kernels.posting_blocks`."""

    rows: np.ndarray
    terms: Terms
    begins: np.ndarray
    firsts: np.ndarray
    postings: np.ndarray
    owners: np.ndarray
    signs: np.ndarray
    blocks: np.ndarray
    rules: frozenset[str]

    def match(self, posts: Vectors, standing: StandingSubscribers, number: int) -> Pairs:
        numbers = self.terms.numbers_of(posts.terms)
        counts = np.zeros(self.terms.count, np.int64)
        inverted = invert(posts.lon, posts.lat, numbers, posts.offsets, posts.weights, counts)
        batch = InvertedBatch(*map(frozen, inverted))
        index = BlockedPostings(self.begins, self.firsts, self.postings, self.owners, self.signs, self.blocks)
        vectors = PostVectors(posts.lon, posts.lat, posts.terms, posts.offsets, posts.weights)
        room = min(max(2 * SHELF * BLOCK, 256 * len(posts)), MOST_CANDIDATES)
        buffers = [(np.empty(room, np.int32), np.empty(room, np.int32)) for _ in range(2)]
        bits = max(1, (len(standing.profiles).bit_length() + 1) // 2)
        places = np.empty((1 << bits) + 1, np.int64)
        resume = np.zeros(3, np.int64)
        found, looked = [], 0
        subscribers = standing.profiles.for_kernels
        while resume[0] < self.terms.count:
            n, tested = collect(index, batch, "blocks" in self.rules, "postings" in self.rules, *buffers[0], resume)
            looked += tested
            by_row(*buffers[0], n, *buffers[1], 0, places)
            by_row(*buffers[1], n, *buffers[0], bits, places)
            out = ScoredPairs(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64))
            passed = verify(
                *buffers[0], n, batch, numbers, number, standing.home, standing.theta, subscribers, vectors, out
            )
            found.append(Pairs(out[0][:passed].copy(), out[1][:passed].copy(), out[2][:passed].copy(), n))
        return Pairs.join(found)

    @property
    def nbytes(self) -> int:
        own = (self.rows, self.begins, self.firsts, self.postings, self.owners, self.signs, self.blocks)
        return self.terms.nbytes + sum(array.nbytes for array in own)


def build_part(profiles: Profiles, theta: np.ndarray, rows: np.ndarray, rules: Collection[str] = RULES) -> BatchIndex:
    terms, numbers = Terms.of(profiles, rows)
    prefix = "prefix" in rules
    longest = int((profiles.offsets[rows + 1] - profiles.offsets[rows]).max(initial=0))
    counts = np.zeros(terms.count, np.int64)
    count_postings(rows, numbers, profiles.offsets, profiles.weights, profiles.alpha, theta, prefix, longest, counts)
    begins = np.concatenate(([0], np.cumsum(counts)))
    firsts = np.concatenate(([0], np.cumsum(-(-counts // BLOCK))))
    postings = np.empty((FIELDS, begins[-1]), np.float32)
    owners, signs = np.empty(begins[-1], np.int32), np.empty(begins[-1], np.uint32)
    ends = begins[:-1].copy()
    fill_postings(rows, numbers, profiles.for_kernels, theta, prefix, longest, ends, postings, owners, signs)
    arrange(begins, postings, owners, signs)
    blocks = np.empty((FIELDS + 1, firsts[-1]), np.float32)
    bound_blocks(begins, firsts, postings, blocks)
    return BatchIndex(
        rows,
        terms,
        frozen(begins),
        frozen(firsts),
        frozen(postings),
        frozen(owners),
        frozen(signs),
        frozen(blocks),
        frozenset(rules),
    )


def build(profiles: Profiles, theta: np.ndarray, rules: Collection[str] = RULES) -> Matcher:
    return Matcher(profiles, theta, partial(build_part, rules=rules))
