"""The range index extended to aggregates: what STAR calls Tornado in its comparison (seed 003 §8.4).

Place and words are matched by the pyramid, as subscriptions are; predicates on attributes are checked last.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.index.pyramid import PYRAMID
from nearcast.index.rows import Rows
from nearcast.index.segment import Matches, PostColumns, Segment
from nearcast.index.standing_aggregates import Seen, conditions_of, timeless, without
from nearcast.index.standing_predicates import Predicates, settled, values_of
from nearcast.kernels.register import file_codes
from nearcast.kernels.standing import NO, UNSURE, Conditions, passing


@dataclass(frozen=True)
class RangeAggregates:
    segment: Segment
    predicates: Predicates
    conditions: Conditions
    seen: Seen

    @classmethod
    def build(cls, rows: Rows, seen: Seen) -> "RangeAggregates":
        code = file_codes(rows.code, rows.code_offsets, seen.terms, seen.counts.astype(np.uint64))
        segment = Segment.build(timeless(Rows(**{**rows.__dict__, "code": code})), PYRAMID)
        predicates = Predicates.of(segment.rows.predicates, len(segment))
        return cls(segment, predicates, conditions_of(segment.rows, predicates), seen)

    @property
    def rows(self) -> Rows:
        return self.segment.rows

    def match(self, posts: PostColumns, attributes: pa.Table) -> Matches:
        found = self.segment.match(posts)
        if not self.predicates.names or not len(found.posts):
            return found
        values = values_of(attributes, self.predicates.names, np.arange(len(posts)))
        answers = passing(found.posts, found.rows, self.conditions, values)
        unsure = np.flatnonzero(answers == UNSURE)
        met = answers != NO
        met[unsure] = settled(self.predicates, found.rows[unsure], found.posts[unsure], attributes)
        return Matches(found.posts[met], found.rows[met], found.candidates)

    def insert(self, rows: Rows) -> "RangeAggregates":
        return RangeAggregates.build(Rows.join([self.rows, rows]), self.seen)

    def remove(self, seqs: np.ndarray) -> "RangeAggregates":
        return RangeAggregates.build(without(self.rows, seqs), self.seen)
