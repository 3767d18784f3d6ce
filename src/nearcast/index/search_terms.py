"""The most frequent terms (SSTD's STQ): exact counts from the tables of covered nodes and the posts of border blocks,
and the k greatest over several segments.

A segment counts its FREQUENT most frequent words only, at first. No other can occur more often than in the whole
segment, and whether that could matter is known afterwards; if so, it counts all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearcast.index.posts import PostSegment
from nearcast.index.question import NO_CODE, NOTHING, Question
from nearcast.index.rows import frozen
from nearcast.index.search_range import Looked, search_range
from nearcast.kernels.counting import add_counts, codes_from, count_rows, nth_largest
from nearcast.kernels.half_bytes import FREQUENT
from nearcast.kernels.ranges import range_rows
from nearcast.kernels.region_counts import count_region

SMALL = 20  # a segment with fewer than one of so many posts is a small one


@dataclass(frozen=True)
class CountedTerms:
    """What one segment counts: by code, over how many posts; `counts` has a last place for codes it does not count."""

    segment: PostSegment
    question: Question
    gone: np.ndarray
    counts: np.ndarray
    posts: int
    looked: Looked

    @property
    def counted(self) -> int:
        """The codes below this were counted."""
        return len(self.counts) - 1

    @property
    def most_uncounted(self) -> int:
        """No term whose code was not counted can occur in more posts than this."""
        totals = self.segment.counts
        return int(totals[self.counted]) if self.counted < len(totals) else 0

    def leave_out(self, terms: np.ndarray) -> None:
        codes = self.segment.codes_of(terms)
        self.counts[codes[(codes >= 0) & (codes < self.counted)]] = 0

    def add_known(self, terms: np.ndarray, sums: np.ndarray) -> bool:
        """Add the counts of some terms; False if a term of the segment was not counted."""
        arrays = self.segment.arrays
        return bool(add_counts(arrays["terms"], arrays["by_term"], terms, self.counts, sums))

    def add_exact(self, terms: np.ndarray, sums: np.ndarray) -> None:
        """Add the counts of some terms; the few that were not counted are looked up."""
        if self.add_known(terms, sums):
            return
        codes = self.segment.codes_of(terms)
        for at in np.flatnonzero(codes >= self.counted).tolist():
            sums[at] += self._posts_with(codes[at : at + 1])

    def _posts_with(self, code: np.ndarray) -> int:
        segment = self.segment
        index = (len(segment), frozen(code), True, segment.counts, *segment.inverted, *segment.tree)
        checks = (*segment.columns_for_checks, self.gone, *self.question.place, NO_CODE, *self.question.time)
        return len(range_rows(*(*index, *checks))[0])

    def at_least(self, count: int) -> np.ndarray:
        """The terms that occur in so many posts, of those counted."""
        return self.segment.terms[codes_from(self.counts, self.segment.counts, max(1, count))]


def count_terms(
    segment: PostSegment, question: Question, gone: np.ndarray = NOTHING, everything: bool = False
) -> CountedTerms:
    """In how many of the posts asked for each of the frequent codes, or every code, occurs."""
    size, words = len(segment), len(segment.terms)
    if question.has_words or question.predicates:
        counts = np.zeros(words + 1, np.int32)
        hits = search_range(segment, question, gone)
        count_rows(segment.arrays["forward"], segment.arrays["forward_starts"], hits.rows, counts)
        return CountedTerms(segment, question, gone, counts, len(hits.rows), hits.looked)
    short = words > FREQUENT and not everything and segment.listed
    counts = np.zeros((FREQUENT if short else words) + 1, np.int32)
    where = (*segment.columns_for_checks, gone, *segment.tree, *segment.tables, *question.place, *question.time)
    posts, singly, added = count_region(*(size, *where, counts))
    why = f"{added:,} term tables, {singly:,} of {size:,} posts one by one" + ("" if short else ", all words")
    looked = Looked(size, "term tables" if added else "place first", why, int(singly))
    return CountedTerms(segment, question, gone, counts, int(posts), looked)


def greatest(
    parts: Sequence[CountedTerms], k: int, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[CountedTerms]]:
    """(terms, counts, parts): the k greatest sums and all that are equal to the last of them, none of `stop`; the parts
    as they are after some had to count all.

    The sums of the k terms that are most frequent in one segment bound the k-th greatest from below. A term that
    reaches the bound has, in one segment at least, its share of it by the segment's posts: only such terms are looked
    up in all segments. The share of small segments is the most that any of their terms has, so that none is.
    """
    parts = list(parts)
    for part in parts if len(stop) else ():
        part.leave_out(stop)
    if not any(part.posts for part in parts) or k < 1:
        return np.empty(0, np.uint64), np.empty(0, np.int64), parts

    bound = _bound(parts, k)
    shares = _shares(parts, bound)
    short = [n for n, part in enumerate(parts) if part.posts and part.most_uncounted >= shares[n]]
    if short:
        for n in short:
            parts[n] = _recounted(parts[n], stop)
        shares = _shares(parts, max(bound, _bound(parts, k)))
    found = [part.at_least(share) for part, share in zip(parts, shares, strict=True) if part.posts]
    terms = frozen(np.unique(np.concatenate(found)))
    sums = np.zeros(len(terms), np.int64)
    for part in parts:
        if part.posts:
            part.add_exact(terms, sums)
    if len(sums) > k:
        kept = sums >= _nth(sums, k)
        terms, sums = terms[kept], sums[kept]
    return terms, sums, parts


def _shares(parts: Sequence[CountedTerms], bound: int) -> list[int]:
    """What a term must have in one segment at least, for its sum to reach the bound: the numbers before them add up to
    less."""
    total = sum(part.posts for part in parts)
    small = [part.posts * SMALL < total for part in parts]
    most = [int(part.counts[:-1].max()) if less else 0 for part, less in zip(parts, small, strict=True)]
    if 2 * sum(most) > bound:
        return [max(1, -(-bound * part.posts // total)) for part in parts]
    left = bound - sum(most)
    large = sum(part.posts for part, less in zip(parts, small, strict=True) if not less)
    return [
        high + 1 if less else max(1, -(-left * part.posts // large))
        for part, less, high in zip(parts, small, most, strict=True)
    ]


def _recounted(part: CountedTerms, stop: np.ndarray) -> CountedTerms:
    whole = count_terms(part.segment, part.question, part.gone, everything=True)
    whole.leave_out(stop)
    return replace(whole, looked=replace(whole.looked, candidates=whole.looked.candidates + part.looked.candidates))


def _bound(parts: Sequence[CountedTerms], k: int) -> int:
    """No more than the k-th greatest sum; 0 if no segment alone has k terms."""
    main = max(parts, key=lambda part: part.posts)
    least = int(nth_largest(main.counts, main.segment.counts, k))
    if not least:
        return 0
    first = frozen(main.at_least(least))
    sums = np.zeros(len(first), np.int64)
    for part in parts:
        if part.posts:
            part.add_known(first, sums)
    return _nth(sums, k)


def _nth(sums: np.ndarray, n: int) -> int:
    """The n-th greatest."""
    return int(np.partition(sums, len(sums) - n)[len(sums) - n])
