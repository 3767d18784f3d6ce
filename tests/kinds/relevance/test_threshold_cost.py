"""The cost model: sizes of skybands, the random walk of equation 12, and the least cost."""

import numpy as np
import pytest

from nearcast.kinds.relevance.threshold_cost import Rates, best_n, distinct, passage, percentage, sizes

WALKS = [
    (1, 1, 0.5),
    (1, 7, 0.5),
    (5, 5, 0.5),
    (5, 12, 0.5),
    (20, 44, 0.5),
    (3, 9, 0.4),
    (3, 9, 0.55),
    (2, 6, 0.0),
]


def steps_by_equations(k: int, n: int, up: float, down: float) -> float:
    """Expected steps to k - 1: one equation for each position k ... 2 n, at the last of which a step up is a stay."""
    places = range(k, 2 * n + 1)
    matrix = np.zeros((len(places), len(places)))
    for i in range(len(places)):
        matrix[i, i] += up + down
        if i > 0:
            matrix[i, i - 1] -= down
        matrix[i, min(i + 1, len(places) - 1)] -= up
    return float(np.linalg.solve(matrix, np.ones(len(places)))[n - k])


@pytest.mark.parametrize(("k", "n", "up"), WALKS)
def test_the_walk_takes_as_long_as_its_equations_say(k: int, n: int, up: float) -> None:
    assert passage(k, np.array([n]), up, 1 - up)[0] == pytest.approx(steps_by_equations(k, n, up, 1 - up))


@pytest.mark.parametrize(("k", "n"), [(1, 1), (5, 12), (20, 44), (20, 100)])
def test_with_equal_chances_that_is_equation_12_as_printed(k: int, n: int) -> None:
    printed = 2 * (n - k + 1) * n + (n - k + 1) * (n - k + 2)
    assert passage(k, np.array([n]))[0] == pytest.approx(printed)


@pytest.mark.parametrize(("k", "n", "up"), [(5, 9, 0.5), (3, 9, 0.4)])
def test_a_simulated_walk_takes_as_long(k: int, n: int, up: float) -> None:
    rng = np.random.default_rng(5)
    at, steps = np.full(4000, n), np.zeros(4000)
    while (at >= k).any():
        walking = at >= k
        steps += walking
        move = np.where(rng.random(4000) < up, 1, -1)
        at = np.where(walking, np.minimum(at + move, 2 * n), at)
    assert steps.mean() == pytest.approx(passage(k, np.array([n]), up, 1 - up)[0], rel=0.07)


@pytest.mark.parametrize(("k", "n"), [(1, 10), (5, 5), (5, 30), (20, 44)])
def test_the_skyband_of_random_posts_is_as_long_as_expected(k: int, n: int) -> None:
    rng = np.random.default_rng(7)
    lengths = []
    for _ in range(400):
        lives = rng.permutation(n)  # in order of scores
        lengths.append(sum((lives[:i] > lives[i]).sum() < k for i in range(n)))
    assert np.mean(lengths) == pytest.approx(sizes(k, np.array([n]))[0], rel=0.03)
    assert sizes(k, np.array([n]))[0] >= k


def costs(k: int, n: np.ndarray, window: float, search: float, up: float, down: float) -> np.ndarray:
    """Equation 13, for a window of so many posts: of an update."""
    prob = n / window
    return np.asarray(prob * sizes(k, n) + search * prob / passage(k, n, up, down))


@pytest.mark.parametrize("k", [1, 5, 20, 100])
@pytest.mark.parametrize("search", [1.0, 300.0, 12_000.0, 1e6])
@pytest.mark.parametrize("up", [0.5, 0.3, 0.7])
def test_no_other_n_costs_less(k: int, search: float, up: float) -> None:
    best = best_n(np.array([k]), 1e6, search, up, 1 - up)
    others = costs(k, np.arange(k, 4 * k + 5000), 1e6, search, up, 1 - up)
    assert costs(k, best, 1e6, search, up, 1 - up)[0] == pytest.approx(others.min(), rel=1e-12)


def test_dearer_searches_want_longer_buffers() -> None:
    found = [int(best_n(np.array([20]), 1e6, search)[0]) for search in (1e2, 1e3, 1e4, 1e5, 1e6)]
    assert found == sorted(found) and found[0] < found[-1]


def test_where_nothing_expires_k_are_enough_and_a_window_bounds_them() -> None:
    window, up = np.array([1e6, 1e6, 25.0]), np.array([1.0, 0.5, 0.5])
    usual = int(best_n(np.array([20]), np.inf, 1e5)[0])
    assert best_n(np.array([20, 20, 20]), window, 1e5, up, 1 - up).tolist() == [20, usual, 25]
    assert best_n(np.array([20]), 3.0, 1e5).tolist() == [20]  # more than there are: all will be found
    assert best_n(np.empty(0, np.int64), 3.0, 1e5).tolist() == []


def test_shares_of_windows_of_time_come_from_what_came_and_what_will_leave() -> None:
    # times   0 1 2 3 | 10 11 | 20 ... 29 (ten posts);  clock 29, the last 10 units
    times = np.array([0, 1, 2, 3, 10, 11, *range(20, 30)])
    rates = Rates.of(times, 29, np.array([30, 20, 10, 5]), 10)
    # of (-1, 29] the posts of (-1, 9] leave next: 4; of (9, 29] those of (9, 19]: 2; of (19, 29] all ten;
    # of (24, 29] all five
    assert rates.window.tolist() == [30.0, 20.0, 10.0, 5.0]
    assert rates.arrivals == pytest.approx([10 / 14, 10 / 12, 10 / 20, 10 / 15])
    assert rates.arrivals + rates.expiries == pytest.approx(np.ones(4))
    assert Rates.of(np.empty(0, np.int64), 29, np.array([30]), 10).arrivals.tolist() == [0.5]


@pytest.mark.parametrize("values", [[], [3], [5, 1, 5, 2], [1 << 40, 3, 1 << 40]])
def test_distinct_values_and_which_each_is(values: list[int]) -> None:
    kinds, back = distinct(np.array(values, np.int64))
    assert kinds.tolist() == sorted(set(values))
    assert kinds[back].tolist() == values


def test_shares_in_percent() -> None:
    assert percentage(np.array([0.0, 3.0, 1.0]), np.array([0.0, 1.0, 0.0])).tolist() == [50, 75, 100]
