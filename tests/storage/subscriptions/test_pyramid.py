"""The pyramid is exact."""

from nearcast.common.geo.shapes import Rect
from nearcast.storage.subscriptions.filing import Filing
from nearcast.storage.subscriptions.pyramid import MOST_CELLS, PYRAMID
from nearcast.storage.subscriptions.subscription_segment import Segment
from tests.storage.cases import TERMS, Subscription, rows_of, word
from tests.storage.subscriptions.conformance import SubscriptionIndexSuite


class TestPyramid(SubscriptionIndexSuite):
    filing = PYRAMID

    def test_a_box_of_any_size_is_filed_in_few_cells(self) -> None:
        for size in (0.0, 0.001, 0.7, 11.0, 170.0):
            box = Rect(-11.26, -11.26, -11.26 + size, min(90.0, -11.26 + size))
            segment = Segment.build(rows_of([Subscription(1, box, word(TERMS[0]))]), self.filing)
            assert 1 <= len(segment.entries) <= MOST_CELLS


class TestPyramidOfFewLevels(SubscriptionIndexSuite):
    filing = Filing("pyramid", coarsest=2, finest=9, step=2, most_cells=9)
