"""Coarse slots: what is still known of posts that are no longer kept (STAR §7).

Of each time slot and cell of one degree the number of posts, and a SpaceSaving summary of their terms. Slots grow with
age as f(x) = 2^x: a slot of length 2^x Δ begins at a whole multiple of that and lies at least that far back, so two
neighbours of the same length become one when they are old enough. The paper leaves open what x counts; here it numbers
the lengths, so that time A back takes some 2·log2(A/Δ) slots, and a slot some hundreds of bytes a cell at most.

A row's posts lie in its slot and in its cell, and no more is known of where. So a count of a region and a time has
bounds that always hold, for the posts that were there when they left, and between them an estimate: a cell counts where
its middle is in the region, and a slot by the share of it that was asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from nearcast.common.arrays import freeze, frozen
from nearcast.storage.bundle import bundle_table, open_bundle
from nearcast.storage.files import write_table
from nearcast.storage.posts.kernels.coarse_cells import COLUMNS, cells_and_region
from nearcast.storage.posts.kernels.grouping import count_words
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import Question
from nearcast.storage.posts.term_summaries import Summaries, merge, summed_up

COUNTERS = 32  # m, of the summary of a cell and slot
ROWS = 180  # of cells


@dataclass(frozen=True)
class BoundedCounts:
    """Counts that are estimates, each with what it is at least and at most."""

    estimate: np.ndarray
    at_least: np.ndarray
    at_most: np.ndarray


@dataclass(frozen=True)
class CoarseCounts:
    """What a question finds in coarse slots: of posts one count, and one of each of `terms` (sorted); a term that is
    not among them occurs in at most `unlisted` posts.
    """

    posts: BoundedCounts
    terms: np.ndarray
    by_term: BoundedCounts
    unlisted: int


@dataclass(frozen=True)
class CoarseSlots:
    """One row a slot [begin, end) and cell, in their order, each once: how many posts, and their terms (group i of
    `summaries` is row i).
    """

    begin: np.ndarray
    end: np.ndarray
    cell: np.ndarray
    posts: np.ndarray
    summaries: Summaries

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.cell)

    @property
    def slots(self) -> int:
        return len(np.unique(np.stack([self.begin, self.end], axis=1), axis=0))

    @classmethod
    def fold(cls, segment: PostSegment, rows: np.ndarray, slot: int) -> "CoarseSlots":
        """Some posts of a segment, by slots of that length; a term counts once a post."""
        rows = frozen(rows)
        numbers = segment.ts_of(rows) // slot
        keys, group = np.unique(numbers * (COLUMNS * ROWS) + cells_of(*segment.places(rows)), return_inverse=True)
        forward = segment.arrays["forward"], segment.arrays["forward_starts"]
        of = frozen(group.astype(np.int32))
        with_term, code, count = count_words(*(*forward, rows, of, len(keys), len(segment.terms)))
        begin = keys // (COLUMNS * ROWS) * slot
        posts = np.bincount(group, minlength=len(keys)).astype(np.int64)
        terms = summed_up(COUNTERS, with_term, segment.terms[code], count, len(keys))
        return cls(begin, begin + slot, keys % (COLUMNS * ROWS), posts, terms)

    @classmethod
    def merged(cls, parts: Sequence["CoarseSlots"]) -> "CoarseSlots":
        """Those of disjoint posts together; at least one. Within a part, too, equal slots and cells become one."""
        begin, end, cell, posts = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("begin", "end", "cell", "posts")
        )
        order = np.lexsort((cell, end, begin))
        keys = np.stack([begin, end, cell], axis=1)[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        into = np.empty(len(order), np.int64)
        into[order] = np.cumsum(first) - 1
        groups = int(first.sum())
        bounds = np.cumsum([0, *map(len, parts)])
        places = [into[a:b] for a, b in pairwise(bounds)]
        terms = merge([part.summaries for part in parts], places, groups)
        total = np.bincount(into, posts, groups).astype(np.int64)
        begin, end, cell = np.ascontiguousarray(keys[first].T)
        return cls(begin, end, cell, total, terms)

    def aged(self, clock: int, until: int, slot: int) -> "CoarseSlots":
        """With slots as long as their age at `clock` allows, none reaching beyond `until`."""
        spans, at = np.unique(np.stack([self.begin, self.end], axis=1), axis=0, return_inverse=True)
        longer = spans.copy()
        length = slot
        while (length := 2 * length) <= clock - int(spans.min(initial=clock)):
            begin = spans[:, 0] // length * length
            end = begin + length
            fits = (end >= spans[:, 1]) & (end <= until) & (length <= clock - end)
            longer[fits] = np.stack([begin, end], axis=1)[fits]
        begin, end = longer[at.reshape(-1)].T
        return CoarseSlots.merged([CoarseSlots(begin, end, self.cell, self.posts, self.summaries)])

    # -- counting ------------------------------------------------------------------------------------------------------

    def tally(self, question: Question) -> CoarseCounts:
        """What is asked for by place and time."""
        cells, at = np.unique(self.cell, return_inverse=True)
        meets, covered, middle = (each[at] for each in cells_and_region(frozen(cells), *question.place))
        overlap = np.minimum(self.end, question.until) - np.maximum(self.begin, question.since)
        share = np.where(meets & middle, np.maximum(overlap, 0) / (self.end - self.begin), 0.0)
        sure = covered & (question.since <= self.begin) & (self.end <= question.until)
        maybe = meets & (self.begin < question.until) & (self.end > question.since)
        posts = _bounded(
            np.array([(self.posts * share).sum()]), self.posts[sure].sum(keepdims=True),
            self.posts[maybe].sum(keepdims=True),
        )  # fmt: skip
        return CoarseCounts(posts, *self._terms(share, sure, maybe))

    def _terms(self, share: np.ndarray, sure: np.ndarray, maybe: np.ndarray) -> tuple[np.ndarray, BoundedCounts, int]:
        held = self.summaries
        unlisted = int(held.rest[maybe].sum())
        some = np.flatnonzero(maybe[held.group])
        group, counts = held.group[some], held.counts[some]
        terms, at = np.unique(held.terms[some], return_inverse=True)

        def total(weights: np.ndarray) -> np.ndarray:
            return np.bincount(at, weights, len(terms))

        least = total(np.where(sure[group], counts - held.errors[some], 0)).astype(np.int64)
        most = total(counts - held.rest[group]).astype(np.int64) + unlisted
        return terms, _bounded(total(counts * share[group]), least, most), unlisted

    # -- files ---------------------------------------------------------------------------------------------------------

    def write(self, path: Path) -> int:
        held = self.summaries
        arrays = {"begin": self.begin, "end": self.end, "cell": self.cell, "posts": self.posts}
        arrays |= {name: getattr(held, name) for name in ("group", "terms", "counts", "errors", "rest", "total")}
        return write_table(path, bundle_table({**arrays, "m": np.array([held.m])}), compression="zstd")

    @classmethod
    def open(cls, path: Path) -> "CoarseSlots":
        found = {name: np.asarray(values) for name, values in open_bundle(path).items()}
        m = int(found.pop("m")[0])
        rows = {name: found.pop(name) for name in ("begin", "end", "cell", "posts")}
        return cls(**rows, summaries=Summaries(m, **found))


def cells_of(lon: np.ndarray, lat: np.ndarray) -> np.ndarray:
    """The number of each place's cell. A cell has its western and southern edges, the last ones also the other."""
    column = np.minimum(np.floor(lon).astype(np.int64) + COLUMNS // 2, COLUMNS - 1)
    return column + np.minimum(np.floor(lat).astype(np.int64) + ROWS // 2, ROWS - 1) * COLUMNS


def _bounded(estimate: np.ndarray, at_least: np.ndarray, at_most: np.ndarray) -> BoundedCounts:
    return BoundedCounts(np.clip(np.rint(estimate).astype(np.int64), at_least, at_most), at_least, at_most)
