"""The benchmark of balancing at a tiny size."""

import pytest

from nearcast.bench import balance

pytestmark = pytest.mark.slow


def test_every_strategy_has_its_figures() -> None:
    sizes = {"subscriptions": 300, "batch_posts": 400, "batches": 9, "workers": 2, "ratio": 1.05}
    figures = balance.run(lambda text: None, cases=("scale",), **sizes)["figures"]["scale"]
    assert figures.keys() == {"router", "fresh", "off", "shift"}
    assert figures["off"]["adjustments"] == figures["off"]["queries_moved"] == 0
    assert figures["shift"]["adjustments"] > 0
    assert figures["shift"]["uneven_after"] < figures["off"]["uneven_after"]
