"""Rows are put in the order of their keys in three ways, which are one."""

from random import Random

import numpy as np
import pytest

from nearcast.kinds.aggregates import row_order as ordering
from nearcast.kinds.aggregates.row_order import in_order


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_in_the_order_of_their_keys(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "MANY", 4)
    dice = Random(seed)
    count, far = dice.choice([1, 3, 4, 50, 400]), dice.choice([2, 30, 1 << 40, 1 << 62])
    keys = [np.array([dice.randrange(-far, far + 1) for _ in range(count)]) for _ in range(dice.choice([1, 2, 4]))]
    if dice.random() < 0.3:
        keys[0] = np.full(count, 7)
    assert in_order(keys).tolist() == np.lexsort(keys[::-1]).tolist()


@pytest.mark.parametrize("room", [0, 1_000])
def test_rows_that_are_all_different_go_to_their_places(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "MANY", 4)
    monkeypatch.setattr(ordering, "ROOM", room)
    several = np.random.default_rng(3).permutation(2 * 3 * 5)[:20]
    keys = [several // 15 - 9, several // 5 % 3, several % 5]
    assert in_order(keys).tolist() == np.argsort(several).tolist()
    twice = [np.concatenate([key, key]) for key in keys]
    assert in_order(twice).tolist() == np.lexsort(twice[::-1]).tolist()
