"""`bench warehouse`, at a size that says nothing about speed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearcast.common.errors import BadInput
from nearcast.common.text.tokenizer import Tokenizer
from nearcast.kinds.aggregates.query import AggregateQuery
from nearcast.language import parse
from nearcast_papers.benchmarks import bench_warehouse as warehouse
from nearcast_papers.benchmarks.warehouse_data import TaggedPosts
from nearcast_papers.benchmarks.warehouse_queries import CELLS, GROUPINGS, WarehouseQueries, WarehouseQuery, square
from nearcast_papers.published.page import TABLES
from nearcast_papers.published.pictures import draw_warehouse
from tests.papers.saving import saved_and_read

SAMPLE = [
    (10.0, 50.0, ["rain", "coffee", "tram", "rain"]),
    (-74.0, 40.7, ["flood"]),
    (179.999, -89.999, ["ice", "wind"]),
]
SMALL: dict[str, Any] = {
    "posts": 4_000, "vocabulary": 2_000, "queries": 3, "training": 40, "repeated": 5, "memory": 20,
    "standing_queries": 200, "standing_posts": 4_000, "minutes": 32, "batch_posts": 1_500,
}  # fmt: skip


def quiet(text: str) -> None:
    """Progress that nobody watches."""


def test_a_workload_is_the_same_again_and_its_queries_are_aggregates() -> None:
    one, two = (WarehouseQueries(SAMPLE, "count", True, 3).take(200) for _ in range(2))
    assert one == two
    assert {len(asked.sql.split(" AND ")) for asked in one} == {1, 2, 3, 4}
    for asked in one:
        query = parse(asked.sql, Tokenizer()).query
        assert isinstance(query, AggregateQuery) and query.group_by == asked.by


@pytest.mark.parametrize("constraints", [1, 2, 3, 4])
def test_a_query_has_as_many_constraints_as_asked_for(constraints: int) -> None:
    for asked in WarehouseQueries(SAMPLE, "topk", False, 1).take(50, constraints):
        assert len(asked.constraints) == constraints


def test_seven_of_ten_queries_are_grouped_by_the_pivot_of_their_cell() -> None:
    workload = WarehouseQueries(SAMPLE[:1], "count", True, 1)
    pivot = GROUPINGS[workload.of_cell[int(140 / 180 * CELLS) * CELLS + int(190 / 360 * CELLS)]]
    share = np.mean([asked.by == pivot for asked in workload.take(2_000)])
    assert share == pytest.approx(0.7 + 0.3 / len(GROUPINGS), abs=0.05)


def test_a_range_stays_in_the_world() -> None:
    assert square(179.999, -89.999, 0.002) == (179.999, -90.0, 180.0, -89.999)


def test_a_standing_query_has_a_beat() -> None:
    asked = WarehouseQuery("count", ("topic",), words=("rain",), minutes=10, beat=5)
    assert asked.sql == (
        "SELECT topic, Count(id) FROM stream WHERE text CONTAINS 'rain' AND time AFTER '10 mins ago' "
        "GROUP BY topic SYNC 5 minutes"
    )


def test_topics_and_areas_are_many_and_uneven() -> None:
    table, _ = TaggedPosts(5_000, 2_000, 1).take(5_000)
    topics = np.sort(table["topic:s"].value_counts().field("counts").to_numpy())
    assert 40 <= len(topics) <= 50 and topics[-1] > 5 * topics[0]
    assert 5 <= len(table["area:s"].unique()) <= 72
    assert 2_000 < table["price:f"].null_count < 3_000


@pytest.mark.slow
def test_all_caches_and_indexes_answer_the_same(tmp_path: Path) -> None:
    done = warehouse.run(
        quiet, **SMALL, functions="count", sets="s2", png=str(tmp_path / "p.png"), folder=str(tmp_path)
    )
    json.dumps(done)
    found = done["figures"]["searches"]["s2_count"]
    assert found["answers_checked"] == 4 * 4 * 3  # by three caches and by looking at every post
    assert found["every_post"][1]["mean_ms"] > 0
    assert found["qo_20mb"][1]["times_no_cache"]["mean"]["target"] == "at least 10.0"
    standing = done["figures"]["standing"]["c2_count"]
    assert standing["reports"] > 0 and standing["pairs_a_post"] > 0
    assert standing["memory_mb"]["ch_tree_mt"] >= standing["memory_mb"]["ch_tree"] > 0
    assert done["figures"]["stream"]["c2_count"]["reports"] > 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"p.png"}
    saved = saved_and_read(done, tmp_path)
    told = "\n".join(line for which in ("response", "repeated", "standing") for line in TABLES[which](saved))
    for title in (
        "Q_S2 Count | no cache",
        "QO-cache, 20 MB",
        "asked again in the same batch",
        "Q_C2 Count",
        "RP-trees",
    ):
        assert title in told
    draw_warehouse(tmp_path / "again.png", saved)
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "p.png").read_bytes()


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(BadInput, match="no 'serches', there is searches, standing, stream"):
        warehouse.run(quiet, parts="serches")
