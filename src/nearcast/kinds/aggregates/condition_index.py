"""Indexes of standing aggregates: which of them does a post concern?

STAR compares its CH-tree with OpIndex, RP-trees and Tornado's index extended to aggregates (STAR §8.3-8.4). They
differ in where they file the conditions of a query, never in what they answer: `EachPair` says what is right, and one
inherited suite (tests/index/standing_conformance.py) holds every implementation to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.common.op_schema import BEGINNING, NEVER
from nearcast.kinds.aggregates.condition_predicates import Predicates, hashes, settled
from nearcast.kinds.aggregates.kernels import conditions as standing
from nearcast.kinds.aggregates.kernels.conditions import DOUBT, condition_hashes
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.posts.attributes import satisfied
from nearcast.storage.subscriptions.brute_force import BruteForce
from nearcast.storage.subscriptions.filing import WORLD
from nearcast.storage.subscriptions.kernels.register import z_codes
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Line, Matches

SAMPLE = 1_000  # posts that a cost model looks at


@dataclass(frozen=True)
class Seen:
    """What a cost model knows of the stream: some posts and their attributes, and in how many posts terms (sorted)
    occur.
    """

    posts: PostColumns
    attributes: pa.Table
    terms: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, posts: PostColumns, attributes: pa.Table) -> "Seen":
        """Of a sample; its own terms are the frequencies, and SAMPLE of its posts, evenly spread, the posts."""
        terms, counts = np.unique(posts.terms[posts.terms != 0], return_counts=True)
        some = np.unique(np.linspace(0, len(posts) - 1, min(SAMPLE, len(posts))).astype(np.int64))
        return cls(take_posts(posts, some), attributes.take(pa.array(some)), terms, counts)

    @classmethod
    def nothing(cls) -> "Seen":
        none, number = np.empty(0), np.empty(0, np.int64)
        posts = PostColumns(none, none, number, np.empty(0, np.uint64), np.zeros(1, np.int64))
        return cls(posts, pa.table({"": pa.nulls(0)}), np.empty(0, np.uint64), number)


class StandingIndex(Protocol):
    """A value: `insert` and `remove` give another index, which shares what has not changed."""

    @property
    def rows(self) -> Rows:
        """The conditions, in the order that `Matches.rows` counts in: not always the order given."""

    @classmethod
    def build(cls, rows: Rows, seen: Seen) -> Self:
        """An index of conditions: the place, words and predicates of rows. Times are the caller's."""

    def match(self, posts: PostColumns, attributes: pa.Table) -> Matches:
        """All pairs of a post and a row whose conditions it meets, each once, in any order. `attributes` has a row a
        post and may lack any column; a post has at most one kind of value of an attribute.
        """

    def insert(self, rows: Rows) -> Self:
        """With more rows, whose seqs are new."""

    def remove(self, seqs: np.ndarray) -> Self:
        """Without the rows of these seqs; those that are not there are ignored."""


@dataclass(frozen=True)
class EachPair:
    """The brute-force twin: every post against every row."""

    rows: Rows

    @classmethod
    def build(cls, rows: Rows, seen: Seen) -> "EachPair":
        return cls(rows)

    def match(self, posts: PostColumns, attributes: pa.Table) -> Matches:
        there = BruteForce(timeless(self.rows)).match(posts)
        texts = self.rows.predicates.to_pylist() if len(self.rows.predicates) else [None] * len(self.rows)
        masks = [np.ones(len(posts), np.bool_) if text is None else satisfied(text, attributes) for text in texts]
        pairs = zip(there.rows.tolist(), there.posts.tolist(), strict=True)
        met = np.array([masks[row][post] for row, post in pairs], np.bool_)
        return Matches(there.posts[met], there.rows[met], there.candidates)

    def insert(self, rows: Rows) -> "EachPair":
        return EachPair(Rows.join([self.rows, rows]))

    def remove(self, seqs: np.ndarray) -> "EachPair":
        return EachPair(without(self.rows, seqs))


def timeless(rows: Rows) -> Rows:
    """The same conditions at any time."""
    count = len(rows)
    always = {"start": np.full(count, BEGINNING), "end": np.full(count, NEVER), "life": np.full(count, NEVER)}
    return Rows(**{**rows.__dict__, **always})


def without(rows: Rows, seqs: np.ndarray) -> Rows:
    return rows.take(np.flatnonzero(~np.isin(rows.seq, seqs)))


def take_posts(posts: PostColumns, which: np.ndarray) -> PostColumns:
    sizes = np.diff(posts.offsets)[which]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    at = np.arange(offsets[-1]) + np.repeat(posts.offsets[which] - offsets[:-1], sizes)
    return PostColumns(posts.lon[which], posts.lat[which], posts.ts[which], posts.terms[at], offsets)


def distinct_conditions(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """(numbers of rows whose conditions are all different, of each row which of those has its conditions).

    Conditions are compared by 128 bits of hashes, whatever the order of their words; times do not count.
    """
    kinds, boxes = (frozen(np.ascontiguousarray(each)) for each in (rows.kinds, rows.boxes))
    kept = condition_hashes(
        kinds, boxes, rows.shape, rows.shape_offsets, rows.code, rows.code_offsets, frozen(hashes_of(rows))
    )
    _, first, which = np.unique(kept.view("V16").reshape(-1), return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def hashes_of(rows: Rows) -> np.ndarray:
    """Of the predicates of each row."""
    if not len(rows.predicates):
        return np.zeros(len(rows), np.int64)
    return hashes(rows.predicates.fill_null("[]"))


# -- what the indexes share --------------------------------------------------------------------------------------------


def conditions_of(rows: Rows, predicates: Predicates) -> standing.Conditions:
    boxes, kinds = np.ascontiguousarray(rows.boxes), np.ascontiguousarray(rows.kinds)
    return standing.Conditions(
        frozen(kinds), frozen(boxes), rows.shape, rows.shape_offsets, rows.code, rows.code_offsets,
        frozen(predicates.of_row), frozen(predicates.starts), frozen(predicates.tests),
        frozen(predicates.literals.parts), frozen(predicates.literals.reals),
    )  # fmt: skip


def prepared(posts: PostColumns) -> standing.Posts:
    z = z_codes(posts.lon, posts.lat, np.array(WORLD))
    order = np.argsort(z)
    line = Line.of(posts, order)
    lon, lat = (np.ascontiguousarray(line.places[:, at]) for at in range(2))
    return standing.Posts(
        frozen(order), frozen(lon), frozen(lat), frozen(z[order]), line.words, line.firsts, posts.terms, posts.offsets
    )


Step = Callable[[int, np.ndarray, np.ndarray], tuple[int, int, int]]


def collected(step: Step, count: int) -> Matches:
    """All pairs of a kernel that goes on from a post until the output is full: (pairs, next post, candidates)."""
    capacity, begin, candidates = max(1024, 2 * count), 0, 0
    posts, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while begin < count:
        out_posts, out_rows = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        found, done, looked = step(begin, out_posts, out_rows)
        if done == begin:
            capacity *= 4  # one post alone concerns more rows than there was room for
        posts.append(out_posts[:found])
        rows.append(out_rows[:found])
        begin = done
        candidates += looked
    return Matches(np.concatenate(posts), np.concatenate(rows), candidates)


def certain(found: Matches, predicates: Predicates, attributes: pa.Table) -> Matches:
    """Without those pairs that a kernel was unsure of and that are none."""
    doubtful = found.rows >= DOUBT
    if not doubtful.any():
        return found
    rows = found.rows & (DOUBT - 1)
    keep = ~doubtful
    keep[doubtful] = settled(predicates, rows[doubtful], found.posts[doubtful], attributes)
    return Matches(found.posts[keep], rows[keep], found.candidates)
