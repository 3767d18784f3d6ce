"""The range index extended to aggregates: what STAR calls Tornado in its comparison (STAR §8.4).

Place and words are matched by the pyramid, as subscriptions are; predicates on attributes are checked last.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates.condition_index import Seen, certain, conditions_of, timeless, without
from nearcast.kinds.aggregates.condition_predicates import Predicates, values_of
from nearcast.kinds.aggregates.kernels.conditions import CHECK_TESTS, Conditions, meet_tests
from nearcast.storage.post_columns import PostColumns
from nearcast.storage.subscriptions.kernels.register import file_codes
from nearcast.storage.subscriptions.pyramid import PYRAMID
from nearcast.storage.subscriptions.rows import Rows
from nearcast.storage.subscriptions.subscription_segment import Matches, Segment


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
        near = np.stack([found.posts, found.rows], axis=1).reshape(-1)
        entries = frozen(np.arange(len(self.rows)) + CHECK_TESTS)
        kept = meet_tests(len(found.posts), near, entries, self.conditions, values)
        met = Matches(near[: 2 * kept : 2], near[1 : 2 * kept : 2], found.candidates)
        return certain(met, self.predicates, attributes)

    def insert(self, rows: Rows) -> "RangeAggregates":
        return RangeAggregates.build(Rows.join([self.rows, rows]), self.seen)

    def remove(self, seqs: np.ndarray) -> "RangeAggregates":
        return RangeAggregates.build(without(self.rows, seqs), self.seen)
