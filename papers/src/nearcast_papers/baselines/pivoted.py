"""What the baselines that STAR is compared with have in common (STAR §8.3): a pivot attribute for each query, and
candidates that are checked in the end. They are built anew when queries come or go.
"""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.ch_plan import PlannedQueries
from nearcast.kinds.aggregates.condition_index import Seen, certain, collected, prepared, without
from nearcast.kinds.aggregates.condition_predicates import values_of
from nearcast.kinds.aggregates.kernels.conditions import CHECK_PLACE, CHECK_TESTS, Posts, Values
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches


class Pivoted(ABC):
    """An index of rows that `step` goes through posts with."""

    def __init__(self, rows: Rows, seen: Seen) -> None:
        self.seen = seen
        self.queries = PlannedQueries(rows, seen)
        self.inactive = frozen(np.zeros(len(rows), np.bool_))
        self.lay_out()

    @classmethod
    def build(cls, rows: Rows, seen: Seen) -> Self:
        return cls(rows, seen)

    @property
    def rows(self) -> Rows:
        return self.queries.rows

    @abstractmethod
    def lay_out(self) -> None:
        """Make the arrays that `step` reads."""

    @abstractmethod
    def step(
        self, posts: Posts, values: Values, begin: int, out_posts: np.ndarray, out_rows: np.ndarray
    ) -> tuple[int, int, int]: ...

    def match(self, posts: PostColumns, attributes: pa.Table) -> Matches:
        ready, predicates = prepared(posts), self.queries.predicates
        values = values_of(attributes, predicates.names, ready.order)
        found = collected(lambda begin, *out: self.step(ready, values, begin, *out), len(posts))
        return certain(found, predicates, attributes)

    def insert(self, rows: Rows) -> Self:
        return type(self)(Rows.join([self.rows, rows]), self.seen)

    def remove(self, seqs: np.ndarray) -> Self:
        return type(self)(without(self.rows, seqs), self.seen)

    def left_open(self, place: np.ndarray, tests: np.ndarray) -> np.ndarray:
        """The entries of all rows: what is to be checked of a candidate; words always are, and last."""
        return np.arange(len(self.rows)) + CHECK_PLACE * place + self.queries.word_checks + CHECK_TESTS * tests


def least_frequent(having: np.ndarray) -> np.ndarray:
    """Of rows × attributes they have a predicate on, the attribute that the fewest rows have; -1 of a row with none."""
    if not having.shape[1]:
        return np.full(len(having), -1)
    order = np.argsort(having.sum(axis=0), kind="stable")
    return np.where(having.any(axis=1), order[having[:, order].argmax(axis=1)], -1)
