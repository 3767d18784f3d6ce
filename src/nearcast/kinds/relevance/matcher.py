"""Which subscribers does a post concern? The question every subscription index of relevance answers (Skype §5).

A `Matcher` holds subscribers with thresholds and gives every pair of a subscriber and a post whose score is not below
the threshold. Where it looks is the business of its parts, each an immutable index over some of the subscribers: a
large one and a few small ones, since a threshold that falls, or a new subscriber, is beyond what a part was built for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from nearcast.common.arrays import frozen
from nearcast.kinds.relevance.vectors import Profiles, Vectors

MOST_CHANGED = 0.1  # of the subscribers: beyond, all are indexed anew
MOST_PARTS = 250


@dataclass(frozen=True)
class Pairs:
    """Rows of subscribers and of posts, with scores; `looked` is how many pairs were looked at one by one."""

    rows: np.ndarray
    posts: np.ndarray
    scores: np.ndarray
    looked: int

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def join(cls, parts: Sequence["Pairs"]) -> "Pairs":
        if not parts:
            return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float64), 0)
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.posts for part in parts]),
            np.concatenate([part.scores for part in parts]),
            sum(part.looked for part in parts),
        )


Out = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, posts, scores
Go = Callable[[int, Out, np.ndarray], tuple[int, int]]


def collected(posts: int, most: int, go: Go) -> Pairs:
    """The pairs of all posts, of kernels that go on until their room is used up. `go(done, out, tally)` takes posts
    from `done` on, each with at most `most` pairs; it gives the next post and how many pairs there are, and adds to the
    tally how many were looked at.
    """
    room = most + 64 * posts
    found = [Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), 0)]
    done, tally = 0, np.zeros(1, np.int64)
    while done < posts:
        out = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.float64)
        done, n = go(done, out, tally)
        found.append(Pairs(out[0][:n].copy(), out[1][:n].copy(), out[2][:n].copy(), 0))
    return replace(Pairs.join(found), looked=int(tally[0]))


@dataclass(frozen=True)
class StandingSubscribers:
    """What is true of all subscribers now: profiles, thresholds, and the number of the part that each is in."""

    profiles: Profiles
    theta: np.ndarray
    home: np.ndarray


class MatcherPart(Protocol):
    """An index over some subscribers, exact as long as no threshold is below what it was when the part was built."""

    @property
    def rows(self) -> np.ndarray: ...

    def match(self, posts: Vectors, standing: StandingSubscribers, number: int) -> Pairs:
        """Every pair of a post and a subscriber whose home is the part of this number, with a score of at least
        theta; each once, in any order.
        """
        ...

    @property
    def nbytes(self) -> int: ...


Builder = Callable[
    [Profiles, np.ndarray, np.ndarray], MatcherPart
]  # profiles, thresholds, and the rows to index, ascending


class Matcher:
    """Subscribers by row, in the order they were added; a threshold of +inf takes nothing."""

    def __init__(self, profiles: Profiles, theta: np.ndarray, builder: Builder) -> None:
        self._builder = builder
        self._profiles = profiles
        self._theta = np.array(theta, np.float64)
        self._built = self._theta.copy()
        self._home = np.zeros(len(profiles), np.uint8)
        self._parts: dict[int, MatcherPart] = {}
        self._rebuild()

    def __len__(self) -> int:
        return len(self._profiles)

    @property
    def theta(self) -> np.ndarray:
        return frozen(self._theta)

    @property
    def nbytes(self) -> int:
        """Of the parts, and of thresholds; the profiles are the caller's."""
        own = (self._theta, self._built, self._home)
        return sum(part.nbytes for part in self._parts.values()) + sum(array.nbytes for array in own)

    def match(self, posts: Vectors) -> Pairs:
        """Every pair with a score of at least theta, each once, in any order."""
        standing = StandingSubscribers(self._profiles, frozen(self._theta), frozen(self._home))
        return Pairs.join([part.match(posts, standing, number) for number, part in self._parts.items()])

    def set_theta(self, rows: np.ndarray, theta: np.ndarray) -> None:
        """New thresholds of some rows, each named once; they may rise or fall."""
        self._theta[rows] = theta
        fallen = rows[theta < self._built[rows]]
        if len(fallen):
            self._file(np.sort(fallen))

    def add(self, profiles: Profiles, theta: np.ndarray) -> None:
        """New subscribers, whose rows follow the last."""
        if not len(profiles):
            return
        first = len(self)
        self._profiles = _joined(self._profiles, profiles)
        self._theta = np.concatenate((self._theta, np.asarray(theta, np.float64)))
        self._built = np.concatenate((self._built, np.full(len(profiles), np.inf)))
        self._home = np.concatenate((self._home, np.zeros(len(profiles), np.uint8)))
        self._file(np.arange(first, len(self)))

    def _file(self, rows: np.ndarray) -> None:
        """Into a part of their own, together with the smaller parts that are not much larger: so each subscriber is
        filed again a few times only.
        """
        numbers = list(self._parts)
        while len(numbers) > 1 and len(self._parts[numbers[-1]].rows) <= 2 * len(rows):
            last = numbers.pop()
            old = self._parts.pop(last).rows
            rows = np.union1d(rows, old[self._home[old] == last])
        changed = len(rows) + sum(len(self._parts[number].rows) for number in numbers[1:])
        if changed > MOST_CHANGED * len(self) or numbers[-1] >= MOST_PARTS:
            self._rebuild()
            return
        self._index(rows, numbers[-1] + 1)

    def _rebuild(self) -> None:
        self._parts.clear()
        self._index(np.arange(len(self)), 0)

    def _index(self, rows: np.ndarray, number: int) -> None:
        self._built[rows] = self._theta[rows]
        self._home[rows] = number
        live = rows[self._theta[rows] < np.inf]
        self._parts[number] = self._builder(self._profiles, frozen(self._theta), frozen(live))


def _joined(first: Profiles, second: Profiles) -> Profiles:
    if not len(first):
        return second
    names = ("lon", "lat", "alpha", "reach", "k", "words", "weights")
    joined = {name: np.concatenate((getattr(first, name), getattr(second, name))) for name in names}
    return Profiles(**joined, offsets=np.concatenate((first.offsets, second.offsets[1:] + first.offsets[-1])))
