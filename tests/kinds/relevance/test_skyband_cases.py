"""What buffers do in single cases, drawn as lists of posts: number, score; later numbers are later posts."""

from types import SimpleNamespace

import numpy as np
import pytest

from nearcast.kinds.relevance.skyband import BufferArrivals, Buffers, Refills, Step, advance, refill, whole
from nearcast.kinds.relevance.skyband_policy import NO_LIMIT, CostBased, nth
from nearcast_papers.baselines.buffer_policies import Kmax, PlainSkyband

POLICY = CostBased(1.0, most=2.0)
Posts = list[tuple[int, float]]


def ledger(n: int, base: int = 0, ts: np.ndarray | None = None) -> SimpleNamespace:
    """Numbers base ... base + n - 1, in order of time and id unless times say otherwise."""
    ts = np.arange(n) * 10 if ts is None else ts
    by_order = np.argsort(ts, kind="stable")
    order = np.empty(n, np.int64)
    order[by_order] = np.arange(n)
    return SimpleNamespace(base=base, ts=ts.astype(np.int64), order=order, by_order=base + by_order)


def filled(k: int, posts: Posts, of: SimpleNamespace, theta: float = 0.0) -> Buffers:
    buffers = Buffers.new(np.array([k]), np.array([0]))
    posts = sorted(posts, key=lambda post: -post[1])
    numbers, scores = np.array([n for n, _ in posts], np.uint32), np.array([score for _, score in posts])
    some = Refills(np.array([0]), np.array([theta]), np.zeros(1, np.int32), np.array([0, len(posts)]), numbers, scores)
    assert not len(refill(buffers, of, np.array([0]), some, POLICY).short)
    return buffers


def came(buffers: Buffers, posts: Posts, of: SimpleNamespace, bound: int = 0, deleted: list[int] | None = None) -> Step:
    numbers, scores = np.array([n for n, _ in posts], np.uint32), np.array([score for _, score in posts])
    arrivals = BufferArrivals(np.zeros(len(posts), np.int64), numbers, scores)
    return advance(buffers, of, np.array([bound]), arrivals, POLICY, deleted=np.array(deleted or [], np.int64))


def members(buffers: Buffers) -> list[int]:
    return [int(n) for n in buffers.members(np.array([0]))[1]]


def test_a_post_that_k_later_and_better_ones_dominate_is_evicted() -> None:
    buffers = filled(2, [(0, 0.5), (1, 0.4)], ledger(4))
    came(buffers, [(2, 0.6)], ledger(4))
    assert members(buffers) == [2, 0, 1]  # 0 is dominated once, 1 by 2 alone: 0 is earlier
    came(buffers, [(3, 0.5)], ledger(4))
    assert members(buffers) == [2, 3]  # of equal scores the later stays


def test_of_equal_scores_and_times_both_stay() -> None:
    at_once = ledger(3, ts=np.zeros(3, np.int64))
    buffers = filled(1, [(0, 0.5)], at_once)
    came(buffers, [(2, 0.5), (1, 0.5)], at_once)
    assert members(buffers) == [0, 1, 2]  # the lower id is the answer, and leaves the window first
    step = came(buffers, [], at_once, bound=1)
    assert members(buffers) == [1, 2]
    assert (step.entered.numbers.tolist(), step.left.numbers.tolist()) == ([1], [0])


def test_a_late_post_counts_those_that_dominate_it() -> None:
    late = ledger(3, ts=np.array([10, 20, 5]))
    buffers = filled(2, [(0, 0.5), (1, 0.4)], late)
    came(buffers, [(2, 0.3)], late)
    assert members(buffers) == [0, 1]
    came(buffers, [(2, 0.45)], late)
    assert members(buffers) == [0, 2, 1]


def test_what_a_deleted_post_had_evicted_may_come_back_so_its_buffer_is_short() -> None:
    buffers = filled(1, [(0, 0.5)], ledger(3))
    came(buffers, [(1, 0.6)], ledger(3))
    assert members(buffers) == [1]  # post 0 is gone, and is the answer once post 1 is deleted
    assert came(buffers, [], ledger(3), deleted=[1]).short.tolist() == [0]


def test_a_deleted_post_that_is_no_member_or_evicted_none_needs_no_search() -> None:
    buffers = filled(3, [(0, 0.5), (1, 0.4)], ledger(4))
    assert not len(came(buffers, [(3, 0.3)], ledger(4), deleted=[2]).short)
    step = came(buffers, [(3, 0.3)], ledger(4), deleted=[0])
    assert step.short.tolist() == [0]  # three members, so some may have been evicted
    buffers = filled(3, [(0, 0.5), (1, 0.4)], ledger(4))
    step = came(buffers, [(3, 0.3)], ledger(4), deleted=[0])
    assert (step.short.tolist(), members(buffers)) == ([], [1, 3])


@pytest.mark.parametrize(("theta", "short"), [(0.0, []), (0.4, [0])])
def test_fewer_than_k_are_all_there_are_only_if_theta_is_0(theta: float, short: list[int]) -> None:
    buffers = filled(2, [(0, 0.5), (1, 0.4)], ledger(2), theta)
    assert came(buffers, [], ledger(2), bound=1).short.tolist() == short
    assert members(buffers) == ([1] if theta == 0.0 else [0, 1])  # a short one is as before, until it is refilled


def test_a_buffer_with_too_many_raises_its_theta_and_keeps_k_and_ties() -> None:
    buffers = filled(2, [(0, 0.9)], ledger(9))
    came(buffers, [(n, 0.9 - n / 10) for n in range(1, 4)], ledger(9))
    assert (members(buffers), buffers.theta[0]) == ([0, 1, 2, 3], 0.0)
    step = came(buffers, [(4, 0.45)], ledger(9))
    assert (members(buffers), step.moved.tolist()) == ([0, 1], [0])
    assert buffers.theta[0] == 0.8
    came(buffers, [(5, 0.79)], ledger(9))
    assert members(buffers) == [0, 1]


def test_ties_of_time_and_score_make_a_buffer_longer_than_it_should_be() -> None:
    n = 3000
    at_once = ledger(n, ts=np.zeros(n, np.int64))
    buffers = filled(2, [(0, 0.5)], at_once)
    came(buffers, [(i, 0.5) for i in range(n)], at_once)
    assert members(buffers) == list(range(n))
    came(buffers, [], at_once, bound=n - 5)
    assert members(buffers) == list(range(n - 5, n))


def test_numbers_go_on_past_32_bits() -> None:
    of = ledger(10, base=2**33 - 5)
    buffers = Buffers.new(np.array([2]), np.array([0]))
    numbers = np.array([2**33 - 2, 2**33 + 1])
    some = Refills(
        np.array([0]), np.zeros(1), np.zeros(1, np.int32), np.array([0, 2]), numbers.astype(np.uint32), np.ones(2)
    )
    refill(buffers, of, np.array([0]), some, POLICY)
    assert whole(buffers.answers(np.array([0]))[1], of).tolist() == [2**33 + 1, 2**33 - 2]
    later = ledger(
        10, base=2**33, ts=np.arange(5, 15) * 10
    )  # the ledger has dropped the first: it has left, and its number is told
    step = advance(buffers, later, np.array([0]), BufferArrivals.none(), POLICY)
    assert whole(step.left.numbers, later).tolist() == [2**33 - 2]


def test_an_ended_subscriber_takes_nothing_and_is_never_short() -> None:
    buffers = filled(1, [(0, 0.5)], ledger(3))
    buffers.end(np.array([0]))
    step = came(buffers, [(1, 0.9)], ledger(3), bound=1, deleted=[0])
    assert (members(buffers), len(step.short), len(step.entered), len(step.left)) == ([], 0, 0, 0)


def test_new_subscribers_are_short_until_they_are_filled() -> None:
    buffers = filled(1, [(0, 0.5)], ledger(3))
    buffers.add(np.array([2]), np.array([0]))
    assert came(buffers, [(1, 0.4)], ledger(3)).short.tolist() == [1]
    assert came(buffers, [], ledger(3)).short.tolist() == [1]


def test_buffers_in_a_file_are_not_written_to() -> None:
    arrays = {name: array.copy() for name, array in filled(2, [(0, 0.5), (1, 0.4)], ledger(9)).arrays().items()}
    for array in arrays.values():
        array.flags.writeable = False
    buffers = Buffers.from_arrays(arrays)
    came(buffers, [(2, 0.45)], ledger(9))
    assert members(buffers) == [0, 2, 1]
    assert arrays["numbers"].tolist() == [0, 1]


def test_500_bytes_a_subscriber_are_enough_whatever_comes() -> None:
    rows, n, k = 300, 2000, 20
    rng = np.random.default_rng(3)
    buffers = Buffers.new(np.full(rows, k), np.zeros(rows, np.int64))
    nothing = np.zeros(rows + 1, np.int64)
    none = Refills(np.arange(rows), np.zeros(rows), np.zeros(rows, np.int32), nothing, *Refills.none().batch()[2:4])
    policy = CostBased()
    refill(buffers, ledger(n), np.array([0]), none, policy)
    for first in range(0, n, 100):
        owner = np.repeat(np.arange(rows), 100)
        numbers = np.tile(np.arange(first, first + 100), rows).astype(np.uint32)
        taken = BufferArrivals(owner, numbers, rng.random(len(owner)))
        assert not len(advance(buffers, ledger(n), np.array([0]), taken, policy).short)
        assert buffers.size.max() <= 1.8 * k
    assert buffers.nbytes / rows < 500


def test_thetas_of_refills() -> None:
    starts, scores = np.array([0, 4, 5, 5]), np.array([0.9, 0.8, 0.5, 0.5, 0.7])
    k = np.array([2, 2, 2])
    assert nth(starts, scores, np.array([3, 3, 3])).tolist() == [0.5, 0.0, 0.0]
    assert Kmax(3).wanted(np.array([2, 5])).tolist() == [3, 5]
    # 0.95 of the second score: post 3 is below it, so all at or above it were found
    assert PlainSkyband(0.95).thetas(k, starts, scores, np.array([3, 3, 3])).tolist() == [0.95 * 0.8, 0.0, 0.0]
    # half of it: more may be found
    assert np.isnan(PlainSkyband(0.5).thetas(k, starts, scores, np.array([3, 3, 3]))).tolist() == [True, False, False]
    assert PlainSkyband(1.0).room(k)[0].tolist() == [NO_LIMIT] * 3


@pytest.mark.parametrize("k", [1, 2, 20, 1000])
@pytest.mark.parametrize("policy", [CostBased(), CostBased(1e9), CostBased(1.0, most=1.0), Kmax()])
def test_what_stays_is_between_k_and_the_most(policy: CostBased | Kmax, k: int) -> None:
    most, stay = policy.room(np.array([k]))
    assert k <= stay[0] <= most[0]
    assert k <= policy.wanted(np.array([k]))[0]
