"""The most frequent terms (SSTD's STQ): exact counts from the tables of covered nodes and the posts of border blocks,
and the k greatest over several segments.

A segment counts its FREQUENT most frequent words only, at first. No other can occur more often than in the whole
segment, and whether that could matter is known afterwards; if so, it counts all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearcast.index.posts import PostSegment
from nearcast.index.question import NO_CODE, NOTHING, Question
from nearcast.index.rows import frozen
from nearcast.index.search_range import Looked, left_out, search_range_in
from nearcast.index.several import Several
from nearcast.kernels.counting import count_rows, nth_largest
from nearcast.kernels.half_bytes import FREQUENT
from nearcast.kernels.several import add_in, codes_in, count_in, greatest_in, posts_with, terms_from

SMALL = 20  # a segment with fewer than one of so many posts is a small one


@dataclass(frozen=True)
class CountedTerms:
    """What some segments count, those of the `chosen` in which there were posts: over how many posts each (`posts`),
    and in `counts`, from `begins` to `ends`, by code, with a last place for the codes it does not count. `looked` tells
    of all chosen, by their numbers.
    """

    several: Several
    question: Question
    numbers: np.ndarray
    posts: np.ndarray
    counts: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    looked: Callable[[], dict[int, Looked]]

    @property
    def counted(self) -> np.ndarray:
        """The codes below this were counted, of each segment."""
        return self.ends - self.begins - 1

    @property
    def _for_kernels(self) -> tuple[np.ndarray, ...]:
        return self.several.table, frozen(self.numbers), self.counts, self.begins, self.ends

    def greatest(self, some: np.ndarray) -> np.ndarray:
        """The greatest count of some of the segments, 0 of others."""
        return np.asarray(greatest_in(*(*self._for_kernels[2:], some)))

    @property
    def most_uncounted(self) -> np.ndarray:
        """No term that a segment has not counted can occur in more of its posts than this."""
        totals = [self.several[n].counts for n in self.numbers.tolist()]
        parts = zip(totals, self.counted.tolist(), strict=True)
        return np.array([counts[code] if code < len(counts) else 0 for counts, code in parts], np.int64)

    def leave_out(self, terms: np.ndarray) -> None:
        codes = codes_in(self.several.table, frozen(self.numbers), terms)
        held = (codes >= 0) & (codes < self.counted[:, None])
        self.counts[(codes + self.begins[:, None])[held]] = 0

    def add_known(self, terms: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Add the counts of some terms; returns those that were not counted: (segments, terms, codes)."""
        missing: np.ndarray = add_in(*(*self._for_kernels, terms, sums))
        return missing

    def add_exact(self, terms: np.ndarray, sums: np.ndarray) -> None:
        """Add the counts of some terms; the few that were not counted are looked up."""
        segments, wanted, codes = self.add_known(terms, sums)
        asked = (NO_CODE, *self.question.place, *self.question.time)
        found = posts_with(*(self.several.table, frozen(self.numbers[segments]), frozen(codes), *asked))
        np.add.at(sums, wanted, found)

    def at_least(self, least: np.ndarray) -> np.ndarray:
        """The terms that occur in so many posts of a segment, by what is least for it; of those counted."""
        return np.asarray(terms_from(*(*self._for_kernels, np.maximum(1, least))))

    def some(self, mask: np.ndarray) -> "CountedTerms":
        """What some of the segments count."""
        numbers, posts = self.numbers[mask], self.posts[mask]
        return replace(self, numbers=numbers, posts=posts, begins=self.begins[mask], ends=self.ends[mask])


def count_terms(
    segment: PostSegment, question: Question, gone: np.ndarray = NOTHING, everything: bool = False
) -> CountedTerms:
    """In how many of the posts asked for of one segment each of the frequent codes, or every code, occurs."""
    return count_terms_in(Several.of([segment], [gone]), np.zeros(1, np.int64), question, everything)


def count_terms_in(several: Several, chosen: np.ndarray, question: Question, everything: bool = False) -> CountedTerms:
    """In how many of the posts asked for each of the frequent codes, or every code, of each segment occurs."""
    if question.has_words or question.predicates:
        return _count_found(several, chosen, question)
    reached = chosen[several.reached(chosen, question)]
    words = [len(several[n].terms) for n in reached.tolist()]
    short = [
        size > FREQUENT and not everything and several[n].listed
        for n, size in zip(reached.tolist(), words, strict=True)
    ]
    bounds, counts = _room([FREQUENT if less else size for less, size in zip(short, words, strict=True)])
    facts = count_in(*(several.table, frozen(reached), *question.place, *question.time, counts, frozen(bounds)))

    def looked() -> dict[int, Looked]:
        out = left_out(several, chosen, NOTHING)
        for n, less, (_, singly, added) in zip(reached.tolist(), short, facts.tolist(), strict=True):
            size = len(several[n])
            why = f"{added:,} term tables, {singly:,} of {size:,} posts one by one" + ("" if less else ", all words")
            out[n] = Looked(size, "term tables" if added else "place first", why, singly)
        return out

    whole = CountedTerms(several, question, reached, facts[:, 0], counts, bounds[:-1], bounds[1:], looked)
    return whole.some(whole.posts > 0)


def _count_found(several: Several, chosen: np.ndarray, question: Question) -> CountedTerms:
    """By the posts that a search finds."""
    found = search_range_in(several, chosen, question)
    bounds, counts = _room([len(several[n].terms) for n, _ in found.hits])
    for (n, rows), begin, end in zip(found.hits, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        arrays = several[n].arrays
        count_rows(arrays["forward"], arrays["forward_starts"], rows, counts[begin:end])
    numbers = np.array([n for n, _ in found.hits], np.int64)
    posts = np.array([len(rows) for _, rows in found.hits], np.int64)
    return CountedTerms(several, question, numbers, posts, counts, bounds[:-1], bounds[1:], found.looked)


def _room(sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """(bounds, counts) for so many codes of each segment."""
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum([size + 1 for size in sizes], out=bounds[1:])
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
        kept = [part.some(~some) for part, some in zip(parts, short, strict=True)]
        again = [_recounted(part.some(some), stop) for part, some in zip(parts, short, strict=True)]
        parts = [part for part in (*kept, *again) if len(part.posts)]
        shares = _shares(parts, max(bound, _bound(parts, k)))
    found = [part.at_least(share) for part, share in zip(parts, shares, strict=True)]
    terms = frozen(np.unique(np.concatenate(found)))
    sums = np.zeros(len(terms), np.int64)
    for part in parts:
        part.add_exact(terms, sums)
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


def _recounted(part: CountedTerms, stop: np.ndarray) -> CountedTerms:
    whole = count_terms_in(part.several, part.numbers, part.question, everything=True)
    whole.leave_out(stop)

    def looked() -> dict[int, Looked]:
        before = part.looked()
        now = whole.looked().items()
        return {n: replace(each, candidates=each.candidates + before[n].candidates) for n, each in now}

    return replace(whole, looked=looked)


def _bound(parts: Sequence[CountedTerms], k: int) -> int:
    """No more than the k-th greatest sum; 0 if no segment alone has k terms."""
    main = max(parts, key=lambda part: int(part.posts.max()))
    at = int(main.posts.argmax())
    counts = main.counts[main.begins[at] : main.ends[at]]
    least = int(nth_largest(counts, main.several[main.numbers[at]].counts, k))
    if not least:
        return 0
    first = frozen(main.some(np.array([at])).at_least(np.array([least])))
    sums = np.zeros(len(first), np.int64)
    for part in parts:
        part.add_known(first, sums)
    return _nth(sums, k)


def _nth(sums: np.ndarray, n: int) -> int:
    """The n-th greatest."""
    return int(np.partition(sums, len(sums) - n)[len(sums) - n])
