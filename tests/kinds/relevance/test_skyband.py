"""Buffers under every policy against the definition, batch by batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.kinds.relevance import skyband
from nearcast.kinds.relevance.skyband_policy import CostBased, Policy
from nearcast_papers.baselines.buffer_policies import Kmax, PlainSkyband
from tests.kinds.relevance.skyband_world import Shape, World

POLICIES = {
    "cost": CostBased(200.0),
    "cost, no room": CostBased(50.0, most=1.0, fill=1.0),
    "cost, dear searches": CostBased(1e6, arrivals=np.full(5, 0.4), expiries=np.full(5, 0.6)),
    "kmax": Kmax(6),
    "kmax is k": Kmax(1),
    "plain": PlainSkyband(),
    "plain, original": PlainSkyband(1.0),
    "plain, all": PlainSkyband(0.0),
}

shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32 - 1),
    batches=st.integers(1, 16),
    most_posts=st.sampled_from([1, 3, 9]),
    levels=st.sampled_from([0, 1, 2, 5]),
    late=st.sampled_from([0.0, 0.2, 0.7]),
    still=st.sampled_from([0.0, 0.3]),
    deletes=st.sampled_from([0.0, 0.3]),
    renewals=st.sampled_from([0.0, 0.2]),
    wordless=st.sampled_from([0.0, 0.3, 0.9]),
    ks=st.sampled_from([(1, 2, 3, 7), (2,), (3, 1000)]),
)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@settings(max_examples=20)
@given(shape=shapes)
def test_buffers_are_the_skyband_above_theta_after_every_batch(policy: Policy, shape: Shape) -> None:
    world = World(shape, policy)
    for _ in range(shape.batches):
        world.step()


@settings(max_examples=10)
@given(shape=shapes)
def test_a_batch_may_be_settled_in_small_portions(shape: Shape) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skyband, "EVENTS", 1)
        patch.setattr(skyband, "PLACES", 1)
        world = World(shape, CostBased(200.0))
        for _ in range(shape.batches):
            world.step()


@pytest.mark.parametrize("policy", [CostBased(200.0), Kmax(6)], ids=["cost", "kmax"])
@settings(max_examples=30)
@given(shape=shapes, saved=st.integers(0, 10))
def test_saved_buffers_and_what_came_since_are_the_buffers_of_now_bit_for_bit(
    policy: Policy, shape: Shape, saved: int
) -> None:
    world = World(shape, policy)
    for batch in range(shape.batches):
        if batch == saved:
            world.save()
        world.step()
    again, now = world.restored().arrays(), world.buffers.arrays()
    standing = now["k"] > 0
    for name in ("theta", "version", "k", "window", "size"):
        np.testing.assert_array_equal(again[name][standing], now[name][standing], name)
    filled = standing & (now["size"] > 0)
    np.testing.assert_array_equal(again["oldest"][filled], now["oldest"][filled])
    np.testing.assert_array_equal(again["numbers"], now["numbers"])
    np.testing.assert_array_equal(again["scores"], now["scores"])
