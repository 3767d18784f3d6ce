"""Layers of intervals over files of partial results: every window is what its intervals give."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nearcast.common.arrays import frozen
from nearcast.kinds.aggregates import time_layers as layers
from nearcast.kinds.aggregates.group_by import aggregate_columns, merge, regrouped
from nearcast.kinds.aggregates.groups import Groups, Shape
from nearcast.kinds.aggregates.interval_counts import Partials, class_of
from nearcast.kinds.aggregates.time_layers import ANY, Layers, added_up
from nearcast.storage.posts.coded_columns import Column
from nearcast.storage.posts.values import NO_STRINGS, WHOLE, Values

SHAPE = class_of(Shape(("topic",), ("price",), True))
TOPICS = ["food", "flood", "rain"]


def counted(rng: np.random.Generator, posts: int, series: int, low: int, high: int) -> Groups:
    """Partial results of posts at random, with a text to group by, a number to measure and words."""

    def whole(size: int, numbers: np.ndarray) -> Column:
        kinds = np.full(size, WHOLE, np.uint8)
        return Column(frozen(rng.integers(size, size=posts).astype(np.int32)), Values(kinds, numbers, NO_STRINGS))

    topic = Column(frozen(rng.integers(3, size=posts).astype(np.int32)), Values.of(pa.array(TOPICS), "s"))
    keys = [whole(series, np.arange(series) * 7), whole(high - low, np.arange(low, high)), topic]
    words = rng.integers(1, 20, size=2 * posts).astype(np.uint64), np.arange(0, 2 * posts + 1, 2, dtype=np.uint32)
    return aggregate_columns(SHAPE, keys, [whole(50, np.arange(50))], posts, words, ANY)


def described(groups: Groups) -> dict[tuple[int, ...], tuple[object, ...]]:
    out = {}
    for row, key in enumerate(groups.values.tolist()):
        mine = groups.term_group == row
        words = dict(zip(groups.term[mine].tolist(), groups.term_posts[mine].tolist(), strict=True))
        measured = (groups.counts[row], groups.sums[row], groups.least[row], groups.greatest[row])
        assert tuple(key) not in out
        out[tuple(key)] = (int(groups.posts[row]), *(each.tolist() for each in measured), words)
    return out


def one_by_one(files: list[Groups], series: int, first: int, last: int) -> dict[tuple[int, ...], tuple[object, ...]]:
    parts = []
    for groups in files:
        values = groups.values
        rows = (values[:, 0] == series) & (values[:, 1] > first) & (values[:, 1] <= last)
        some = groups.take(np.flatnonzero(rows))
        changed = some.values.copy()
        changed[:, :2] = 0
        parts.append(Groups(**{**some.__dict__, "values": changed}))
    return described(regrouped(merge([*parts, parts[0].take(np.empty(0, np.int64))], ANY)))


@pytest.mark.parametrize("few", [0, 24])
@pytest.mark.parametrize("seed", range(4))
def test_every_window_is_what_its_intervals_give(
    seed: int, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "FEW", few)
    rng = np.random.default_rng(seed)
    parts = [counted(rng, 4_000, 5, -100, 200), counted(rng, 60, 8, 150, 260), counted(rng, 900, 3, 190, 1_200)]
    files = []
    for number, part in enumerate(parts):
        Partials({SHAPE: part}).write(tmp_path / str(number))
        files.append(Partials.open(tmp_path / str(number)).layers[SHAPE])
    assert len(files[0].sizes) >= 2 and not files[1].sizes
    series = rng.integers(9, size=300) * 7
    first = rng.integers(-150, 700, size=300)
    last = first + rng.integers(1, 600, size=300)
    first[:20] = -(2**63)
    numbers, groups = added_up(files, series, first, last, SHAPE)
    found = described(groups)
    for request in range(300):
        right = one_by_one(parts, *(int(each[request]) for each in (series, first, last)))
        mine = {(0, 0, *key[2:]): value for key, value in found.items() if key[0] == numbers[request]}
        assert mine == right
        assert (numbers[request] < 0) == (not right)


def test_windows_that_have_the_same_posts_are_added_up_once() -> None:
    rng = np.random.default_rng(1)
    file = Layers.built(counted(rng, 500, 1, 0, 100))
    series, last = np.zeros(3, np.int64), np.array([200, 300, 99])
    numbers, groups = added_up([file], series, np.array([-1, -500, -1]), last, SHAPE)
    assert numbers.tolist() == [0, 0, 0] and set(groups.values[:, 0].tolist()) == {0}


def test_a_window_of_1000_intervals_takes_few_rows() -> None:
    values = np.column_stack((np.zeros(4_096, np.int64), np.arange(1, 4_097), np.zeros(4_096, np.int64)))
    groups = counted(np.random.default_rng(2), 4_096, 1, 0, 1)
    groups = regrouped(Groups(**{**groups.take(np.zeros(4_096, np.int64)).__dict__, "values": values}))
    file = Layers.built(groups)
    assert file.shifts == (0, 2, 4, 6, 8, 10, 12) and len(file.above) == 1_365
    series, first = np.zeros(1, np.int64), np.array([77])
    parts = file.windows(series, file.runs(series, first, first + 1_000))
    assert sum(map(len, parts)) <= 6 * 5


def test_layers_that_hardly_shrink_are_left_out() -> None:
    sparse = counted(np.random.default_rng(3), 300, 3, 0, 100_000)
    shifts = Layers.built(sparse).shifts
    assert shifts[0] == 0 and shifts[1] > 8
