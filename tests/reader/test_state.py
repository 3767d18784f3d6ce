"""`nearcast.open`, and what it tells of a state."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nearcast
from nearcast.common.errors import BadInput
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.partitioning.routers.uniform_grid import over
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.reader.explain import Explanation
from nearcast.storage.directory import StateDirectory
from tests.reader.small_state import COFFEE, FLOODS, LATER, MINUTE, NOON, make_state, posts


def test_what_is_no_state_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a Nearcast state"):
        nearcast.open(tmp_path)


def test_a_search_gives_rows_arrow_and_pandas(small_state: Path) -> None:
    found = nearcast.open(small_state).search("SELECT id, text FROM stream WHERE text CONTAINS 'flood' LIMIT 2")
    assert list(found) == [
        {"id": 4, "text": "flood and coffee"},
        {"id": "b", "text": 'another flood, "they" said\nyes'},
    ]
    assert found.to_arrow().column_names == ["id", "text"]
    assert list(found.to_pandas()["id"]) == ["4", "b"]


def test_a_search_loads_neither_pandas_nor_spark(small_state: Path) -> None:
    """Each takes longer than the rest of `nearcast search`."""
    code = (
        "import sys, nearcast\n"
        "state = nearcast.open(sys.argv[1])\n"
        "rows = [len(list(state.search(sql))) for sql in sys.argv[2:]]\n"
        "print(rows, [name for name in ('pandas', 'pyspark') if name in sys.modules])"
    )
    searches = "SELECT * FROM stream WHERE text CONTAINS 'flood'", "SELECT Count(*) FROM stream"
    done = subprocess.run(
        [sys.executable, "-c", code, str(small_state), *searches], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[3, 1] []"


def test_every_search_sees_the_newest_batch(tmp_path: Path) -> None:
    root = make_state(tmp_path / "state")
    state = nearcast.open(root)
    sql = "SELECT id FROM stream WHERE text CONTAINS 'flood'"
    before = len(state.search(sql))
    run_locally(StateDirectory(root), Settings(), posts=[posts((5, 9, "flood again", {}))])
    assert len(state.search(sql)) == before + 1


def test_the_subscriptions_that_stand_are_told_as_they_were_written(small_state: Path) -> None:
    state = nearcast.open(small_state)
    shown = {each.id: each for each in state.subscriptions()}
    assert set(shown) == {"floods", 17, "later"}
    assert (shown["floods"].sql, shown["floods"].start, shown["floods"].end) == (FLOODS, None, None)
    assert shown[17].sql == "SELECT * FROM stream WHERE loc INSIDE RECT(-75, 40, -73, 41) AND text CONTAINS 'subway'"
    assert (shown["later"].sql, shown["later"].start) == (LATER, NOON + 60 * MINUTE)
    assert [each.status for each in shown.values()] == ["standing", "standing", "waiting"]


def test_an_ended_subscription_is_told_on_demand_with_its_end(small_state: Path) -> None:
    found = nearcast.open(small_state).subscriptions()
    (ended,) = [each for each in found.all() if each.status == "ended"]
    assert (ended.id, ended.sql, ended.end) == ("coffee", COFFEE, NOON + 2 * MINUTE)
    assert found.counts() == {"standing": 2, "waiting": 1, "ended": 1}
    assert len(found) == 3


def test_the_status_counts_what_the_state_holds(small_state: Path) -> None:
    status = nearcast.open(small_state).status()
    assert (status.clock, status.batch, status.leaves, status.router) == (NOON + 3 * MINUTE, 3, 4096, "grid")
    assert status.rejects == {"broken JSON": 1, "latitude out of range": 1}
    assert status.kinds["posts"].rows == status.counts["posts"] == 4
    assert status.disk >= sum(kind.size for kind in status.kinds.values()) > 0
    assert [worker["worker"] for worker in status.load] == [0, 1]


def test_explain_tells_segments_and_candidates(small_state: Path) -> None:
    sql = "EXPLAIN SELECT * FROM stream WHERE loc INSIDE RECT(-75, 40, -73, 41) AND text CONTAINS 'flood AND NOT drill'"
    plan = nearcast.open(small_state).search(sql)
    assert isinstance(plan, Explanation)
    steps = {row["step"]: row["detail"] for row in plan}
    assert steps["words"] == "(flood AND NOT drill)"
    assert steps["candidates checked"].endswith("of 4 posts")
    assert steps["rows"] == "3"
    assert plan.to_arrow().column_names == ["step", "detail"]


@pytest.mark.parametrize(
    ("box", "leaves"),
    [
        ((-180, -90, 180, 90), 16),
        ((0.1, 0.1, 1, 1), 1),
        ((-1, -1, 1, 1), 4),
        ((170, -90, -170, 90), 8),  # across the antimeridian: the first and the last column
        ((500, 10, 600, 20), 1),  # beyond the extent: the border
    ],
)
def test_a_box_touches_leaves(box: tuple[float, float, float, float], leaves: int) -> None:
    nowhere = np.empty(0)
    assert len(RoutingTable(over(nowhere, nowhere, workers=1, cells=4)).leaves_in(box)) == leaves
