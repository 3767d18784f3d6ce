"""Segments that are searched together: one call of a kernel for all of them, and the words of a question as each
numbers them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

import numpy as np

from nearcast.common.arrays import freeze, frozen
from nearcast.storage.posts.kernels.segment_arrays import GroupedWords
from nearcast.storage.posts.kernels.segment_group import FIELDS, WIDTH, codes_in, within_reach
from nearcast.storage.posts.post_segment import PostSegment
from nearcast.storage.posts.question import NO_CODE, NOTHING, ONE_WORD, Question, words_of
from nearcast.storage.posts.shortcuts import reads_together
from nearcast.storage.subscriptions.rows import take_lists


class SegmentGroup:
    """Segments by number. A number may be given a segment at any time; only numbers that have one are searched.

    Threads may give and search at once: what a number is given first it keeps, so that no array that a search reads can
    go, though two threads have opened the same file.
    """

    def __init__(self, size: int) -> None:
        self.segments: list[PostSegment | None] = [None] * size
        self.gone = [NOTHING] * size
        self._table = np.zeros((size, WIDTH), np.int64)
        self.table = frozen(self._table)
        self.times = np.zeros((size, 2), np.int64)  # the first and the last of each
        self.held = np.zeros(size, np.bool_)
        self._lock = Lock()

    @classmethod
    def of(cls, segments: Sequence[PostSegment], gone: Sequence[np.ndarray]) -> "SegmentGroup":
        group = cls(len(segments))
        for number, (segment, rows) in enumerate(zip(segments, gone, strict=True)):
            group.hold(number, segment, rows)
        return group

    def hold(self, number: int, segment: PostSegment, gone: np.ndarray = NOTHING) -> None:
        """`gone` are the deleted rows of the segment, ascending. A number that has a segment keeps it."""
        with self._lock:
            if self.held[number]:
                return
            self.segments[number], self.gone[number] = segment, gone
            self._table[number] = _whereabouts(segment, gone)
            if len(segment):
                self.times[number] = segment.times[-2:]
            self.held[number] = True

    def copy(self) -> "SegmentGroup":
        """To which more can be given, the numbers being the same."""
        group = SegmentGroup(len(self.segments))
        for number in np.flatnonzero(self.held).tolist():
            group.hold(number, self[number], self.gone[number])
        return group

    def __len__(self) -> int:
        return len(self.segments)

    def __getitem__(self, number: int) -> PostSegment:
        segment = self.segments[number]
        assert segment is not None
        return segment

    @property
    def rows(self) -> np.ndarray:
        """How many posts each has."""
        return self._table[:, 0]

    def reached(self, members: np.ndarray, question: Question) -> np.ndarray:
        """Which of the members may have posts in the place and the time of a question, by their bounds."""
        return within_reach(self.table, frozen(members), question.space_time)


def _whereabouts(segment: PostSegment, gone: np.ndarray) -> list[int]:
    """The row of a table (`storage.posts.kernels.segment_group`)."""
    arrays = {**segment.arrays, "gone": gone}
    row = [segment.rows, segment.ts_width, segment.ts_base]
    for name, kind in FIELDS:
        array = arrays[name]
        assert array.dtype == kind and array.flags.c_contiguous
        row += array.ctypes.data, len(array)
    return row


@dataclass(frozen=True)
class GroupWords:
    """The words of a question in some members of a group, as kernels take them: what
    `storage.posts.question.SegmentWords` says of each, end to end.
    """

    members: np.ndarray
    drivers: np.ndarray
    driver_bounds: np.ndarray
    codes: np.ndarray
    code_bounds: np.ndarray
    enough: np.ndarray
    together: np.ndarray  # whether the lists of several words are worth reading together

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def for_kernels(self) -> tuple[np.ndarray, ...]:
        """The fields of `GroupedWords`."""
        return tuple(GroupedWords(self.drivers, self.driver_bounds, self.codes, self.code_bounds, self.enough))

    def __getitem__(self, some: np.ndarray) -> "GroupWords":
        """Those of some of the segments, by their places among the members."""
        drivers, driver_bounds = take_lists(self.drivers, self.driver_bounds, some)
        codes, code_bounds = take_lists(self.codes, self.code_bounds, some)
        members, enough, together = self.members[some], self.enough[some], self.together[some]
        return GroupWords(members, drivers, driver_bounds, codes, code_bounds, enough, together)

    @property
    def driven(self) -> list[bool]:
        """Which of them have a word to start from."""
        return (np.diff(self.driver_bounds) > 0).tolist()

    def frequency(self, group: SegmentGroup) -> list[int]:
        """Of each segment, in how many posts of it the drivers are, added up."""
        parts = zip(self.members.tolist(), pairwise(self.driver_bounds.tolist()), strict=True)
        return [int(group[n].counts[self.drivers[a:b]].sum()) for n, (a, b) in parts]


def words_in_group(question: Question, group: SegmentGroup, members: np.ndarray) -> GroupWords:
    """Without those of the members of which no post can have the words."""
    if not question.has_words:
        none = np.zeros(len(members) + 1, np.int64)
        no = np.zeros(len(members), np.bool_)
        return GroupWords(members, NOTHING, none, NO_CODE, none, no, no)
    codes = codes_in(group.table, frozen(members), question.terms)
    if question.is_one_word:
        known = codes[:, 0] >= 0
        members, drivers = members[known], codes[known, 0]
        each = np.arange(len(members) + 1)
        code = np.full((len(members), 2), ONE_WORD, np.uint64)
        code[:, 1] = drivers
        no = np.zeros(len(members), np.bool_)
        return GroupWords(members, drivers, each, code.ravel(), 2 * each, ~no, no)
    found = [words_of(question, row, group[n].counts) for n, row in zip(members.tolist(), codes.tolist(), strict=True)]
    possible = [n for n, words in enumerate(found) if not words.impossible]
    found = [found[n] for n in possible]
    drivers, driver_bounds = _end_to_end([words.drivers for words in found], np.int64)
    code, code_bounds = _end_to_end([words.code for words in found], np.uint64)
    enough = np.array([words.enough for words in found], np.bool_)
    together = np.array([reads_together(words) for words in found], np.bool_)
    return GroupWords(members[possible], drivers, driver_bounds, code, code_bounds, enough, together)


def _end_to_end(parts: Sequence[np.ndarray], kind: type) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=bounds[1:])
    return np.concatenate([np.empty(0, kind), *parts]), bounds
