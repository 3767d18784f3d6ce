"""A split on its way to packets: posts that nobody wants yet are dropped, unless ops may be in the same batch."""

from pathlib import Path

import pytest

from nearcast.engine.begin import begin
from nearcast.engine.packets import POSTS, SEEN, unpack
from nearcast.engine.settings import Settings
from nearcast.engine.splits import SplitTask, packets_of
from nearcast.sources.world import World
from nearcast.sources.world_source import WorldSplit
from nearcast.storage.directory import StateDirectory


@pytest.mark.parametrize("ops_beside", [False, True])
def test_posts_are_dropped_only_where_no_ops_can_come_beside_them(tmp_path: Path, ops_beside: bool) -> None:
    state, settings = StateDirectory(tmp_path / "state"), Settings(workers=1, keep="none", max_future=None)
    manifest = begin(state, settings)
    split = WorldSplit(World(), 0, 50)
    task = SplitTask(str(state.root), manifest, settings, None, 3, "posts", split, {}, ops_beside)
    tables = unpack(packet for _, packet in packets_of(task))
    assert tables[SEEN]["posts"].to_pylist() == [50]
    assert (len(tables[POSTS]) if POSTS in tables else 0) == (50 if ops_beside else 0)
