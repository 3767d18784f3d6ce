"""Whole answers, kept for as long as the state stays as it is: nothing is worked out a third time.

Views (`views`) go on from batch to batch; these go with the batch. Between two batches a question that is asked again
has the answer it had.
"""

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

MOST_SEEN = 4_096  # questions asked once


class AnswerMemory:
    """Answers by question, of one version of a state, within `capacity` bytes; the least recently asked for goes first.
    An answer is kept when it is asked for the second time: most questions are asked once. Many threads may ask.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.held, self.hits = capacity, 0, 0
        self._version: Hashable = None
        self._seen: dict[Hashable, None] = {}
        self._answers: dict[Hashable, tuple[Any, int]] = {}
        self._lock = Lock()

    def find(self, version: Hashable, key: Hashable) -> Any | None:
        with self._lock:
            if version != self._version or key not in self._answers:
                return None
            found = self._answers[key] = self._answers.pop(key)
            self.hits += 1
            return found[0]

    def note(self, version: Hashable, key: Hashable, answer: Any, size: Callable[[], int]) -> None:
        """There was an answer, of so many bytes, which takes a while to find out; the newest version that is noted is
        the one that counts.
        """
        with self._lock:
            if version != self._version:
                self._version, self.held = version, 0
                self._seen.clear()
                self._answers.clear()
            if key not in self._seen:
                while len(self._seen) >= MOST_SEEN:
                    del self._seen[next(iter(self._seen))]
                self._seen[key] = None
            elif key not in self._answers and 8 * (held := size()) <= self.capacity:
                self._answers[key] = answer, held
                self.held += held
                while self.held > self.capacity:
                    self.held -= self._answers.pop(next(iter(self._answers)))[1]
