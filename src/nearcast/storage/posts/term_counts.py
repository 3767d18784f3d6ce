"""The most frequent terms (SSTD's STQ): exact counts from the tables of covered nodes and the posts of border blocks,
and the k greatest over several segments.

A segment need not count all its words. If few are wanted it counts the COMMON ones, and only the HEAD of those exactly:
of the others it knows that there are at most so many. If more are wanted it counts the FREQUENT ones. Whether that was
enough is known afterwards: if not, single words are looked up, or some segments count again, more of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.storage.posts.kernels.counting import count_rows, nth_largest
from nearcast.storage.posts.kernels.half_bytes import COMMON, FREQUENT
from nearcast.storage.posts.kernels.head_words import HEAD
from nearcast.storage.posts.kernels.segment_group import add_in, codes_in, count_in, greatest_in, posts_with, terms_from
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NO_CODE, NOTHING, Question
from nearcast.storage.posts.range_search import SegmentScan, search_range_in, unsearched
from nearcast.storage.posts.segment_group import SegmentGroup

SMALL = 20  # a segment with fewer than one of so many posts is a small one
FEW_WANTED = HEAD // 2  # words, for which the HEAD of most segments is likely to do
LOOKED_UP = 2  # words of a segment that are sooner looked up one by one than all are counted


class Counting(IntEnum):
    """What a segment counts: each of them more than the one before."""

    SOME = 0  # the HEAD, and bounds of the COMMON words
    MORE = 1  # the FREQUENT words
    ALL = 2


POSTS_A_TABLE = {Counting.SOME: 200, Counting.MORE: 15, Counting.ALL: 15}  # looked at in the time of a table
MOST = {Counting.SOME: COMMON, Counting.MORE: FREQUENT, Counting.ALL: 1 << 62}  # codes


@dataclass(frozen=True)
class CountedTerms:
    """What some segments count, those in which there were posts: over how many posts each (`posts`),
    and in `counts`, from `begins` to `ends`, by code, with a last place for the codes it does not count. Codes below
    `exact` have their counts, the others at most so many; those that are not counted at most `most_uncounted`.
    `effort` is what it took, in tables added; `scans` tells how each member was searched, by its number.
    """

    group: SegmentGroup
    question: Question
    counting: Counting
    numbers: np.ndarray
    posts: np.ndarray
    counts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    exact: np.ndarray
    most_uncounted: np.ndarray
    effort: float
    scans: Callable[[], dict[int, SegmentScan]]

    @property
    def counted(self) -> np.ndarray:
        """The codes below this were counted, of each segment."""
        return self.ends - self.begins - 1

    @property
    def sure(self) -> "CountedTerms":
        """As if only the codes had been counted of which there are not fewer."""
        return replace(self, ends=self.begins + self.exact + 1)

    @property
    def _for_kernels(self) -> tuple[np.ndarray, ...]:
        return self.group.table, frozen(self.numbers), self.counts, self.begins, self.ends

    def greatest(self, some: np.ndarray) -> np.ndarray:
        """The greatest count of some of the segments, 0 of others."""
        return np.asarray(greatest_in(*(*self._for_kernels[2:], some)))

    def leave_out(self, terms: np.ndarray) -> None:
        codes = codes_in(self.group.table, frozen(self.numbers), terms)
        held = (codes >= 0) & (codes < self.counted[:, None])
        self.counts[(codes + self.begins[:, None])[held]] = 0

    def add_known(self, terms: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Add the counts of some terms; returns those whose counts are not known: (segments, terms, codes)."""
        ends = self.begins + self.exact + 1
        table, numbers, counts, begins, _ = self._for_kernels
        missing: np.ndarray = add_in(*(table, numbers, counts, begins, ends, terms, sums))
        codes = missing[2]
        at_most = self.counts[np.minimum(self.begins[missing[0]] + codes, len(self.counts) - 1)]
        return missing[:, (codes >= self.counted[missing[0]]) | (at_most > 0)]

    def add_looked_up(self, missing: np.ndarray, sums: np.ndarray) -> None:
        """Add the counts of such as `add_known` returns, looked up one by one."""
        segments, wanted, codes = missing
        of, asked = frozen(self.numbers[segments]), self.question.space_time
        found = posts_with(self.group.table, of, frozen(codes), NO_CODE, asked)
        np.add.at(sums, wanted, found)

    def loose(self, missing: np.ndarray) -> np.ndarray:
        """Segments of which it takes longer to look up so many than to count again."""
        segments, _, codes = missing
        mere_bounds = segments[codes < self.counted[segments]]
        return np.bincount(mere_bounds, minlength=len(self.posts)) > LOOKED_UP

    def at_least(self, least: np.ndarray) -> np.ndarray:
        """The terms that occur in so many posts of a segment, by what is least for it; of those counted."""
        return np.asarray(terms_from(*(*self._for_kernels, np.maximum(1, least))))

    def some(self, mask: np.ndarray) -> "CountedTerms":
        """What some of the segments count."""
        numbers, posts = self.numbers[mask], self.posts[mask]
        return replace(
            self, numbers=numbers, posts=posts, begins=self.begins[mask], ends=self.ends[mask],
            exact=self.exact[mask], most_uncounted=self.most_uncounted[mask],
        )  # fmt: skip


def count_terms(
    segment: PostSegment,
    question: Question,
    gone: np.ndarray = NOTHING,
    counting: Counting = Counting.MORE,
) -> CountedTerms:
    """`count_terms_in` one segment."""
    return count_terms_in(SegmentGroup.of([segment], [gone]), np.zeros(1, np.int64), question, counting)


def count_terms_in(
    group: SegmentGroup, members: np.ndarray, question: Question, counting: Counting = Counting.MORE
) -> CountedTerms:
    """In how many of the posts asked for each of the words that are to be counted of each segment occurs."""
    if question.has_words or question.predicates:
        return _count_found(group, members, question)
    reached = members[group.reached(members, question)]
    words = np.array([len(group[n].terms) for n in reached.tolist()], np.int64)
    sealed = np.array([group[n].sealed for n in reached.tolist()], np.bool_)
    short = sealed & (words > MOST[counting])
    bounds, counts = _room(np.where(short, MOST[counting], words))
    at_most = counting == Counting.SOME
    facts = count_in(group.table, frozen(reached), question.space_time, at_most, counts, frozen(bounds))
    posts, singly, added, loose, most_uncounted = facts.T
    exact = np.where(loose > 0, np.minimum(HEAD, np.diff(bounds) - 1), np.diff(bounds) - 1)

    def scans() -> dict[int, SegmentScan]:
        out = unsearched(group, members, NOTHING)
        for n, less, single, tables in zip(*(part.tolist() for part in (reached, short, singly, added)), strict=True):
            size = len(group[n])
            why = f"{tables:,} term tables, {single:,} of {size:,} posts one by one" + ("" if less else ", all words")
            out[n] = SegmentScan(size, "term tables" if tables else "place first", why, single)
        return out

    places = counts, bounds[:-1], bounds[1:], exact, most_uncounted
    effort = float(added.sum() + singly.sum() / POSTS_A_TABLE[counting])
    whole = CountedTerms(group, question, counting, reached, posts, *places, effort, scans)
    return whole.some(posts > 0)


def _count_found(group: SegmentGroup, members: np.ndarray, question: Question) -> CountedTerms:
    """By the posts that a search finds."""
    found = search_range_in(group, members, question)
    bounds, counts = _room(np.array([len(group[n].terms) for n, _ in found.hits], np.int64))
    for (n, rows), begin, end in zip(found.hits, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        arrays = group[n].arrays
        count_rows(arrays["forward"], arrays["forward_starts"], rows, counts[begin:end])
    numbers = np.array([n for n, _ in found.hits], np.int64)
    posts = np.array([len(rows) for _, rows in found.hits], np.int64)
    exact, none = np.diff(bounds) - 1, np.zeros(len(numbers), np.int64)
    places = counts, bounds[:-1], bounds[1:], exact, none
    effort = float(posts.sum() / POSTS_A_TABLE[Counting.ALL])
    return CountedTerms(group, question, Counting.ALL, numbers, posts, *places, effort, found.scans)


def _room(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(bounds, counts) for so many codes of each segment."""
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes + 1, out=bounds[1:])
    return bounds, np.zeros(bounds[-1], np.int32)


def greatest(
    parts: Sequence[CountedTerms], k: int, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[CountedTerms]]:
    """(terms, counts, parts): the k greatest sums and all that are equal to the last of them, none of `stop`; the parts
    as they are after some had to count all.

    The sums of the k terms that are most frequent in one segment bound the k-th greatest from below. A term that
    reaches the bound has, in one segment at least, its share of it by the segment's posts: only such terms are looked
    up in all segments. The share of small segments is the most that any of their terms has, so that none is.
    """
    parts = [part for part in parts if len(part.posts)]
    for part in parts if len(stop) else ():
        part.leave_out(stop)
    if not parts or k < 1:
        return np.empty(0, np.uint64), np.empty(0, np.int64), parts

    bound = _bound(parts, k)
    shares = _shares(parts, bound)
    short = [part.most_uncounted >= share for part, share in zip(parts, shares, strict=True)]
    if any(some.any() for some in short):
        return greatest(_recounted(parts, short), k, stop)
    found = [part.at_least(share) for part, share in zip(parts, shares, strict=True)]
    terms = frozen(np.unique(np.concatenate(found)))
    sums = np.zeros(len(terms), np.int64)
    missing = [part.add_known(terms, sums) for part in parts]
    loose = [part.loose(some) for part, some in zip(parts, missing, strict=True)]
    if any(some.any() for some in loose):
        return greatest(_recounted(parts, loose), k, stop)
    for part, some in zip(parts, missing, strict=True):
        part.add_looked_up(some, sums)
    if len(sums) > k:
        high = sums >= _nth(sums, k)
        terms, sums = terms[high], sums[high]
    return terms, sums, parts


def _shares(parts: Sequence[CountedTerms], bound: int) -> list[np.ndarray]:
    """What a term must have in one segment at least, for its sum to reach the bound: the numbers before them add up to
    less."""
    total = sum(int(part.posts.sum()) for part in parts)
    small = [part.posts * SMALL < total for part in parts]
    most = [part.greatest(less) for part, less in zip(parts, small, strict=True)]
    left = bound - sum(int(high.sum()) for high in most)
    if 2 * left < bound:
        return [np.maximum(1, -(-bound * part.posts // total)) for part in parts]
    large = sum(int(part.posts[~less].sum()) for part, less in zip(parts, small, strict=True))
    return [
        np.where(less, high + 1, np.maximum(1, -(-left * part.posts // large)))
        for part, less, high in zip(parts, small, most, strict=True)
    ]


def _recounted(parts: Sequence[CountedTerms], which: Sequence[np.ndarray]) -> list[CountedTerms]:
    """With more counted of some segments of each part."""
    kept = [part.some(~some) for part, some in zip(parts, which, strict=True)]
    return [*kept, *(_again(part.some(some)) for part, some in zip(parts, which, strict=True) if some.any())]


def _again(part: CountedTerms) -> CountedTerms:
    whole = count_terms_in(part.group, part.numbers, part.question, Counting(part.counting + 1))

    def scans() -> dict[int, SegmentScan]:
        before = part.scans()
        now = whole.scans().items()
        return {n: replace(each, candidates=each.candidates + before[n].candidates) for n, each in now}

    return replace(whole, scans=scans)


def _bound(parts: Sequence[CountedTerms], k: int) -> int:
    """No more than the k-th greatest sum; 0 if no segment alone has k terms."""
    largest = max(parts, key=lambda part: int(part.posts.max()))
    main = largest.some(np.array([largest.posts.argmax()])).sure
    counts = main.counts[main.begins[0] : main.ends[0]]
    least = int(nth_largest(counts, main.group[main.numbers[0]].counts, k))
    if not least:
        return 0
    first = frozen(main.at_least(np.array([least])))
    sums = np.zeros(len(first), np.int64)
    for part in parts:
        part.add_known(first, sums)
    return _nth(sums, k)


def _nth(sums: np.ndarray, n: int) -> int:
    """The n-th greatest."""
    return int(np.partition(sums, len(sums) - n)[len(sums) - n])
