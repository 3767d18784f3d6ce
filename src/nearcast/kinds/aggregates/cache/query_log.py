"""The queries that a cache was asked: what it learns from."""

from dataclasses import dataclass
from threading import Lock

from nearcast.kinds.aggregates.cache.snapshot import Snapshot
from nearcast.kinds.aggregates.groups import Shape
from nearcast.storage.posts.question import Question

MOST = 2_000  # different queries remembered
FADING = 0.5  # what a query's times are worth at the next choice
FORGOTTEN = 0.2


@dataclass
class LoggedQuery:
    """A query, or one that differs from it only in when its window is, and how often it was asked."""

    question: Question
    shape: Shape
    timed: bool
    counters: int
    times: float = 0.0


class Log:
    """Many threads may note at once."""

    def __init__(self) -> None:
        self._entries: dict[tuple[object, ...], LoggedQuery] = {}
        self._lock = Lock()

    def note(self, snapshot: Snapshot, question: Question, shape: Shape, counters: int) -> None:
        timed = snapshot.window(question) is not None
        key = (
            question.kind, question.box, question.shape.tobytes(), question.conjunctions, question.predicates,
            question.until - question.since if timed else None, shape, counters,
        )  # fmt: skip
        with self._lock:
            found = self._entries.pop(key, None) or LoggedQuery(question, shape, timed, counters)
            found.question = question
            found.times += 1.0
            self._entries[key] = found  # the newest last
            if len(self._entries) > MOST:
                self._entries.pop(next(iter(self._entries)))

    def taken(self) -> list[LoggedQuery]:
        """What was asked, for a choice; older queries count for less and less from one choice to the next."""
        with self._lock:
            entries = [LoggedQuery(**vars(each)) for each in self._entries.values()]
            for key, each in list(self._entries.items()):
                each.times *= FADING
                if each.times < FORGOTTEN:
                    del self._entries[key]
        return entries
