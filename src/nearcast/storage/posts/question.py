"""What is asked of posts, ready for the kernels; and the words of it as one segment numbers them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.common.expressions import Conjunction
from nearcast.common.geo.shapes import EVERYWHERE
from nearcast.common.op_schema import BEGINNING, CODE_LAST, CODE_NEGATIVE, NEVER
from nearcast.common.post_schema import ATTRIBUTE_KINDS, attribute_column
from nearcast.language import decode_code
from nearcast.storage.posts.attributes import names_in
from nearcast.storage.posts.kernels.segment_arrays import SpaceTimeRange
from nearcast.storage.posts.post_segment import PostSegment

NOTHING = frozen(np.empty(0, np.int64))
ONE_WORD = 1 | CODE_LAST  # the header of a literal that is all of an expression
NO_CODE = frozen(np.empty(0, np.uint64))


@dataclass(frozen=True)
class Question:
    """Place, time in [since, until), words and attributes."""

    kind: int
    box: tuple[float, float, float, float]
    shape: np.ndarray
    conjunctions: tuple[Conjunction, ...]
    since: int
    until: int
    predicates: str | None

    @classmethod
    def of(cls, encoded: dict[str, Any]) -> "Question":
        """From the values of an encoded query."""
        return cls(
            int(encoded["region_kind"]),
            (
                float(encoded["min_lon"]),
                float(encoded["min_lat"]),
                float(encoded["max_lon"]),
                float(encoded["max_lat"]),
            ),
            frozen(np.array(encoded["shape"], np.float64)),
            decode_code(encoded["code"]),
            encoded["since"],
            encoded["until"],
            encoded["predicates"],
        )

    @cached_property
    def place(self) -> tuple[Any, ...]:
        """As kernels take it."""
        return (self.kind, *self.box, self.shape)

    @cached_property
    def time(self) -> tuple[np.int64, np.int64]:
        return np.int64(self.since), np.int64(self.until)

    @cached_property
    def space_time(self) -> tuple[Any, ...]:
        """Place and time, as kernels take them."""
        return tuple(SpaceTimeRange(self.kind, *self.box, self.shape, *self.time))

    def is_apart(self, min_ts: Any, max_ts: Any) -> Any:
        """Whether no post of that time can be asked for; of one time or, by arrays, of several."""
        return (max_ts < self.since) | (min_ts >= self.until)

    def covers(self, min_ts: int, max_ts: int) -> bool:
        """Whether every post of that time has a time that is asked for."""
        return self.since <= min_ts and max_ts < self.until

    def part_of(self, min_ts: Any, max_ts: Any) -> Any:
        """How much of that time is asked for, from 0 to 1; of one time or, by arrays, of several."""
        return (np.minimum(self.until, max_ts + 1) - np.maximum(self.since, min_ts)) / (max_ts + 1 - min_ts)

    @cached_property
    def has_words(self) -> bool:
        return any(self.conjunctions)

    @cached_property
    def is_one_word(self) -> bool:
        """Whether one word is all that is asked of a text."""
        if len(self.conjunctions) != 1 or len(self.conjunctions[0]) != 1:
            return False
        (literal,) = self.conjunctions[0]
        return len(literal.terms) == 1 and not literal.negative

    @cached_property
    def terms(self) -> np.ndarray:
        """The distinct terms of the expression, sorted."""
        found = {term for each in self.conjunctions for literal in each for term in literal.terms}
        return frozen(np.array(sorted(found), np.uint64))

    @cached_property
    def predicate_list(self) -> list[list[Any]]:
        """[name, op, values] of each condition on an attribute."""
        found: list[list[Any]] = json.loads(self.predicates or "[]")
        return found

    @cached_property
    def attribute_columns(self) -> list[str]:
        """The columns that the predicates look at."""
        return [attribute_column(name, kind) for name in names_in(self.predicates) for kind in ATTRIBUTE_KINDS]


@dataclass(frozen=True)
class SegmentWords:
    """An expression as a segment numbers its words.

    `code` is what is left to check of a post, empty if nothing is. `drivers` are codes of which a post must have at
    least one, empty if there is no such set. `enough`: a post that has a driver satisfies the expression. `together`
    are codes of which a post must have all, the rarest first, where there are several. `impossible`: no post of the
    segment can satisfy it.
    """

    code: np.ndarray
    drivers: np.ndarray
    frequency: int
    enough: bool = False
    impossible: bool = False
    together: tuple[int, ...] = ()


ANYTHING = SegmentWords(NO_CODE, NOTHING, 0)
IMPOSSIBLE = SegmentWords(NO_CODE, NOTHING, 0, impossible=True)


def words_in(question: Question, segment: PostSegment) -> SegmentWords:
    """The rarest word of each conjunction drives it; a conjunction with a word that the segment lacks is dropped."""
    if not question.has_words:
        return ANYTHING
    if question.is_one_word:
        drivers = segment.codes_of(question.terms)
        code = int(drivers[0])
        if code < 0:
            return IMPOSSIBLE
        whole = frozen(np.array([ONE_WORD, code], np.uint64))
        return SegmentWords(whole, frozen(drivers), int(segment.counts[code]), enough=True)
    return words_of(question, segment.codes_of(question.terms).tolist(), segment.counts)


def words_of(question: Question, known: Sequence[int], counts: np.ndarray) -> SegmentWords:
    """As `words_in`, where the codes of the question's terms are known, and in how many posts each code occurs."""
    codes = dict(zip(question.terms.tolist(), known, strict=True))
    kept: list[list[tuple[bool, list[int]]]] = []
    rarest: list[int] = []
    together: set[int] = set()
    driven = True
    for conjunction in question.conjunctions:
        literals = []
        best = -1
        for literal in conjunction:
            numbers = [codes[term] for term in literal.terms]
            if min(numbers) < 0:
                if not literal.negative:
                    break
                continue  # what the segment lacks is not there
            literals.append((literal.negative, numbers))
            if not literal.negative:
                best = max(best, *numbers)  # codes are in order of frequency
                together.update(numbers)
        else:
            if not literals:
                return ANYTHING
            kept.append(literals)
            rarest.append(best)
            driven = driven and best > 0
    if not kept:
        return IMPOSSIBLE
    unique = sorted(set(rarest)) if driven else []
    enough = driven and all(len(each) == 1 and len(each[0][1]) == 1 for each in kept)
    frequency = sum(int(counts[code]) for code in unique)
    several = tuple(sorted(together, reverse=True)) if driven and len(question.conjunctions) == 1 else ()
    drivers = frozen(np.array(unique, np.int64))
    return SegmentWords(_code(kept), drivers, frequency, enough, together=several if len(several) > 1 else ())


def _code(conjunctions: Sequence[Sequence[tuple[bool, list[int]]]]) -> np.ndarray:
    words: list[int] = []
    for literals in conjunctions:
        for place, (negative, numbers) in enumerate(literals):
            last = CODE_LAST if place == len(literals) - 1 else 0
            words.append(len(numbers) | last | (CODE_NEGATIVE if negative else 0))
            words.extend(numbers)
    return frozen(np.array(words, np.uint64))


EVERYTHING = Question(EVERYWHERE, (-180.0, -90.0, 180.0, 90.0), np.empty(0), ((),), BEGINNING, NEVER, None)
