"""GI2 is exact, over the world and over a smaller extent, whose border cells take what lies outside."""

from nearcast.common.expressions import Or
from nearcast.common.geo.shapes import Rect
from nearcast.storage.subscriptions.gi2 import LEVEL, gi2
from nearcast.storage.subscriptions.subscription_segment import Segment
from tests.storage.cases import TERMS, Subscription, rows_of, word
from tests.storage.subscriptions.conformance import SubscriptionIndexSuite


class TestGi2(SubscriptionIndexSuite):
    filing = gi2()

    def test_a_query_is_in_every_cell_it_touches_once_for_each_of_its_key_words(self) -> None:
        side = 360.0 / 2**LEVEL
        box = Rect(0.1, 0.1, 0.1 + 3 * side, 0.1 + side / 2)  # four cells by two
        text = Or((word(TERMS[0]), word(TERMS[3])))
        assert len(Segment.build(rows_of([Subscription(1, box, text)]), self.filing).entries) == 16


class TestGi2OverASmallExtent(SubscriptionIndexSuite):
    filing = gi2((-20.0, 5.0, 45.0, 17.0))


class TestGi2OfACoarseGrid(SubscriptionIndexSuite):
    filing = gi2((-180.0, -90.0, 270.0, 120.0), level=3)
