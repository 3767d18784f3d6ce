"""`bench routing` at tiny sizes: its figures fit together, and what it counts is what the definitions say."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.image import imread

from nearcast.common.errors import BadInput
from nearcast.common.geo.distance import haversine_km
from nearcast.common.plotting import readable
from nearcast.partitioning.cost_model import workload, works
from nearcast.partitioning.kernels.query_counts import keyword_sets
from nearcast.partitioning.partition import Partition
from nearcast.partitioning.query_statistics import DEPTH, Statistics
from nearcast.partitioning.router_sample import CKQ, SKQ, STQ, TYPES
from nearcast.partitioning.routers import qt_tree, uniform_grid
from nearcast.partitioning.routers.registry import routers
from nearcast.partitioning.routing_table import RoutingTable
from nearcast.partitioning.tiles import bounds
from nearcast.partitioning.worker_load import MEASURED
from nearcast.storage.subscriptions.kernels.register import key_terms
from nearcast_papers.benchmarks import bench_routing as routing
from nearcast_papers.benchmarks.bench_routing import COLUMNS, numbers, variants
from nearcast_papers.benchmarks.routing_plot import draw, short, to_best
from nearcast_papers.benchmarks.routing_sets import SETS, Grounds, Half, generated, make_set, real
from nearcast_papers.benchmarks.routing_summary import TEXTUAL
from nearcast_papers.benchmarks.routing_work import Fresh, Routed, checked, circles, copies, expand, indexed, work
from nearcast_papers.published.page import TABLES
from nearcast_papers.published.pictures import draw_routing
from tests.papers.saving import saved_and_read

pytestmark = pytest.mark.slow

AT = {name: number for number, name in enumerate(COLUMNS)}
STANDING = ("indexed_max_to_mean", "load_us", "post_leaves", "dropped")
POSTS, QUERIES = 600, 150


def quiet(text: str) -> None:
    """Progress that nobody watches."""


@pytest.fixture(scope="module")
def grounds() -> Grounds:
    return Grounds(generated(POSTS, seed=3), seed=3)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    png = tmp_path_factory.mktemp("plot") / "routing.png"
    out = routing.run(quiet, posts=1000, queries=400, sets="q1,srq", workers="3", theta="16", png=str(png))
    assert png.read_bytes().startswith(b"\x89PNG")
    return out


def test_every_router_is_measured_on_every_set_and_the_figures_are_json(done: dict[str, Any]) -> None:
    assert json.loads(json.dumps(done)) == done
    assert set(done["figures"]) == {"q1", "srq"}
    for rows in done["figures"].values():
        assert set(routers()) | {"agrid/16", "grid/16", "grid/4"} == set(rows)
        assert all(len(row) == len(COLUMNS) for row in rows.values())


def test_routers_are_compared_with_the_qt_tree_and_by_load(done: dict[str, Any], tmp_path: Path) -> None:
    rows = done["figures"]
    compared = done["compared"]
    ratio = rows["srq"]["kd"][AT["checked"]] / rows["srq"]["qt"][AT["checked"]]
    assert compared["checked_to_qt"]["kd"] == {"srq": pytest.approx(ratio, rel=1e-3)}
    assert compared["load_us"]["kdt"] == {"q1": rows["q1"]["kdt"][AT["load_us"]]}
    assert compared["load_us"]["best of text"]["q1"] == min(rows["q1"][name][AT["load_us"]] for name in TEXTUAL)
    saved = saved_and_read(done, tmp_path)
    assert TABLES["checked"](saved)[0] == "| posts checked a query, to the QT-tree's | SRQ |"
    assert any(line.startswith("| A-Grid, 16 leaves |") for line in TABLES["load"](saved))
    draw_routing(tmp_path / "again.png", saved)
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")


def test_figures_lie_where_they_can_lie(done: dict[str, Any]) -> None:
    for name, rows in done["figures"].items():
        for row in rows.values():
            assert row[AT["leaves"]] >= 1 and row[AT["work"]] >= 0 and row[AT["checked"]] > 0
            assert row[AT["checked"]] / 3 <= row[AT["busiest"]] * 1.001 <= row[AT["checked"]] * 1.002
            assert 1 <= row[AT["copies"]] <= 3
            assert min(row[AT[column]] for column in ("ns_a_post", "ns_a_query", "table_kb", "build_s")) > 0
            assert row[AT["max_to_min"]] is None or row[AT["max_to_min"]] >= 1
            stands = name != "srq"
            assert all((row[AT[column]] is not None) == stands for column in STANDING)
            if stands:
                assert 0 <= row[AT["dropped"]] <= 1
                assert row[AT["post_leaves"]] >= (1 - row[AT["dropped"]]) * 0.999


def test_without_an_index_there_is_most_work_for_standing_queries(done: dict[str, Any]) -> None:
    rows = done["figures"]["q1"]
    for column in ("work", "checked"):
        most = rows["everyone"][AT[column]]
        assert all(row[AT[column]] <= most * 1.001 for row in rows.values())
    assert rows["everyone"][AT["copies"]] == 3


def test_the_findings_are_ratios_of_the_figures(done: dict[str, Any]) -> None:
    rows, found = done["figures"]["srq"], done["findings"]["srq checked kdt to qt"]
    assert found["value"] == pytest.approx(rows["kdt"][AT["checked"]] / rows["qt"][AT["checked"]], rel=1e-3)
    assert found["met"] == (found["value"] >= 1.01)
    assert sum(name.startswith("q1 load_us") for name in done["findings"]) == 2  # space and text


def test_what_the_project_aims_at_stands_beside_its_aim(done: dict[str, Any]) -> None:
    assert set(done["speed"]) == set(routers())
    for router, each in done["speed"].items():
        at_most = "600" if router.startswith("qt") else "300"
        assert each["ns_a_post"]["target"] == f"at most {at_most}"
        assert each["table_mb"]["value"] > 8 and each["table_mb"]["met"]
        assert "target" not in each["build_s"]  # of so few posts and queries it says nothing
    assert "target" in routing.speed(done["figures"], 1_000_000)["qt"]["build_s"]


# -- what is counted, one by one ---------------------------------------------------------------------------------------


def words_of(half: Half, post: int) -> set[int]:
    begin, end = half.posts.offsets[post : post + 2]
    return set(half.posts.terms[begin:end].tolist()) - {0}


def word_sets(fresh: Fresh, row: int) -> list[set[int]]:
    rows, starts, terms = keyword_sets(fresh.searches.code, fresh.searches.code_offsets.astype(np.int64))
    return [set(terms[starts[s] : starts[s + 1]].tolist()) for s in np.flatnonzero(rows == row)]


def counted(half: Half, fresh: Fresh, partition: Partition) -> np.ndarray:
    """The definition of `routing_work`, leaf by leaf, pair by pair."""
    routed, table = Routed.of(RoutingTable(partition), fresh), RoutingTable(partition)
    out = np.zeros(table.leaves)
    stored = [np.flatnonzero(routed.stored == leaf) for leaf in range(table.leaves)]
    heard = [set().union(*(words_of(half, post) for post in posts)) for posts in stored]
    for row, (begin, end) in enumerate(pairwise(table.leaves_of(fresh.searches, by_place=True)[0])):
        for leaf in table.leaves_of(fresh.searches, by_place=True)[1][begin:end]:
            if any(words <= heard[leaf] for words in word_sets(fresh, row)):
                out[leaf] += len(stored[leaf])
    filed, terms = key_terms(fresh.standing.code, fresh.standing.code_offsets)
    keepers = set(zip(*(part.tolist() for part in routed.kept), strict=True))
    for post, leaf in zip(*(part.tolist() for part in routed.matched), strict=True):
        own = words_of(half, post) | {0}
        out[leaf] += sum(
            (row, leaf) in keepers and term in own for row, term in zip(filed, terms.tolist(), strict=True)
        )
    return out


@pytest.mark.parametrize("name", ["q1", "srq", "mix", "ctq", "tornado-selective"])
@pytest.mark.parametrize("router", ["grid/4", "qt", "kdt", "text-metric", "everyone"])
def test_what_is_checked_is_counted_as_defined(grounds: Grounds, name: str, router: str) -> None:
    known, later = make_set(name, grounds, QUERIES, seed=3)
    fresh = Fresh.of(later)
    partition = dict(variants(["grid", "qt", "kdt", "text-metric", "everyone"], 3, [10], MEASURED))[router](
        known.sample, 3
    )
    found = checked(fresh, Routed.of(RoutingTable(partition), fresh), partition.leaves)
    assert found.sum() > 0
    assert found.tolist() == counted(later, fresh, partition).tolist()


@pytest.mark.parametrize("router", ["kd", "text-metric", "everyone"])
def test_with_an_index_that_knows_places_routers_share_out_the_same_sum(grounds: Grounds, router: str) -> None:
    known, later = make_set("q1", grounds, QUERIES, seed=3)
    fresh = Fresh.of(later)
    table = RoutingTable(routers()[router](known.sample, 3))
    routed = Routed.of(table, fresh)
    of_worker = indexed(fresh, routed, table.owners(3), 3)
    reached = np.unique(routed.matched[0])
    assert of_worker.sum() == pytest.approx(fresh.indexed[reached].sum()) and of_worker.sum() > 0
    filed, terms = key_terms(fresh.standing.code, fresh.standing.code_offsets)
    west, south, east, north = fresh.standing.boxes[filed].T
    inside = sum(
        int(((terms == term) & (west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)).sum())
        for post, (lon, lat) in enumerate(zip(later.posts.lon, later.posts.lat, strict=True))
        for term in words_of(later, post)
    )
    assert inside <= fresh.indexed.sum() <= 3 * inside + 10  # cells that are touched, not boxes that have the post


@pytest.mark.parametrize("name", ["srq", "stq", "crq", "ctq"])
def test_work_is_that_of_the_cost_model_where_leaves_are_cells_of_j(grounds: Grounds, name: str) -> None:
    half, _ = make_set(name, grounds, QUERIES, seed=3)
    partition = qt_tree.build_space(half.sample, 3, theta=16)
    table, fresh = RoutingTable(partition), Fresh.of(half)
    routed = Routed.of(table, fresh)
    j = Statistics.of(half.sample, word_depth=DEPTH)
    found = work(fresh, routed, table.leaves)
    stands = name in ("crq", "ctq")
    for leaf, (x0, y0, x1, _) in enumerate(bounds(partition).tolist()):
        side = x1 - x0
        level = int(np.log2(partition.cells // side))
        posts = routed.matched[1] == leaf if stands else routed.stored == leaf
        own = (routed.matched[0] if stands else np.arange(len(half.posts)))[posts]
        words = np.array(sorted(set().union(*(words_of(half, post) for post in own.tolist()))), np.uint64)
        expected = workload(j, works(j, level, x0 // side, y0 // side, len(own), words))
        assert found[leaf] == pytest.approx(expected, rel=0.01, abs=1e-9)
    assert found.sum() > 0


def test_on_searches_the_qt_tree_has_no_more_work_by_its_model_than_a_quadtree(grounds: Grounds) -> None:
    half, _ = make_set("srq", grounds, QUERIES, seed=3)
    fresh = Fresh.of(half)
    total = {}
    for way in ("best", "space", "text"):
        table = RoutingTable(qt_tree.build(half.sample, 3, theta=16, ways=way))
        total[way] = work(fresh, Routed.of(table, fresh), table.leaves).sum()
    assert total["best"] <= min(total["space"], total["text"]) * 1.02


def test_a_circle_reaches_to_the_kth_nearest_post_with_the_word(grounds: Grounds) -> None:
    _, half = make_set("skq", grounds, 40, seed=3)
    boxes = circles(half.posts, half.rows, k=3)
    sample, whole = half.sample, 0
    _, terms = key_terms(half.rows.code, half.rows.code_offsets)
    for row in range(len(half.rows)):
        lon, lat = sample.queries.boxes[row, :2].tolist()
        distances = sorted(
            haversine_km(lon, lat, float(half.posts.lon[post]), float(half.posts.lat[post]))
            for post in range(len(half.posts)) if int(terms[row]) in words_of(half, post)
        )  # fmt: skip
        if len(distances) < 3:
            assert boxes[row].tolist() == [-180.0, -90.0, 180.0, 90.0]
            whole += 1
        else:
            assert (boxes[row, 3] - lat == pytest.approx(distances[2] / 111.195, rel=1e-4)) or boxes[row, 3] == 90.0
    assert 0 < whole < len(half.rows)


def test_every_worker_keeps_a_standing_query_for_the_nearest(grounds: Grounds) -> None:
    known, later = make_set("mix", grounds, QUERIES, seed=3)
    table = RoutingTable(uniform_grid.build(known.sample, 5))
    kept = copies(Fresh.of(later), table, 5)
    near = np.r_[later.type[later.type < 3], later.type[later.type >= 3]] == CKQ
    assert kept[near].all() and not kept[~near].all() and kept.any(axis=1).all()


# -- sets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_fresh_queries_are_others_of_the_same_set(grounds: Grounds, name: str) -> None:
    known, later = make_set(name, grounds, QUERIES, seed=3)
    assert len(known.rows) == len(later.rows) == QUERIES and len(known.posts) == len(later.posts) == POSTS
    assert not np.array_equal(known.rows.boxes, later.rows.boxes)
    kinds = set(known.type.tolist())
    assert kinds == (set(range(6)) if name == "mix" else {TYPES.index(name.partition("-")[0])} if name[1:3] in
                     ("rq", "kq", "tq") else {TYPES.index("crq")})  # fmt: skip
    queries = known.sample.queries
    points = (queries.boxes[:, :2] == queries.boxes[:, 2:]).all(axis=1)
    assert np.array_equal(points, np.isin(known.type, (SKQ, CKQ)))
    wordless = np.diff(queries.code_offsets) == 0
    assert np.array_equal(wordless, np.isin(known.type, (STQ, TYPES.index("ctq"))))
    if name.endswith("gau"):
        assert np.hypot(known.posts.lon, known.posts.lat).max() < 6


def test_real_posts_are_taken_from_a_file(tmp_path: Path) -> None:
    made = generated(1000, seed=2).known
    pq.write_table(made.select(["lon", "lat", "text"]), tmp_path / "posts.parquet")
    out = routing.run(
        quiet, posts=5000, queries=100, sets="srq", routers="kd", data=str(tmp_path / "posts.parquet"), workers=2
    )
    assert out["parameters"]["data"] == "posts.parquet" and list(out["figures"]["srq"]) == ["kd"]
    for path, table in (("no.parquet", None), ("bare.parquet", pa.table({"lon": [1.0]}))):
        if table is not None:
            pq.write_table(table, tmp_path / path)
        with pytest.raises(BadInput, match="lon, lat and text"):
            routing.run(quiet, data=str(tmp_path / path))


def test_an_extent_takes_the_posts_of_a_part_of_the_world(tmp_path: Path) -> None:
    europe = routing.box_of("-10,36,30,70")
    made = generated(800, seed=2, within=europe)
    pq.write_table(generated(1000, seed=2).known.select(["lon", "lat", "text"]), tmp_path / "posts.parquet")
    taken = real(tmp_path / "posts.parquet", 800, 2, europe)
    assert 400 < len(made.known) <= len(made.fresh) <= 800 and made.extent == europe
    for table in (made.known, made.fresh, taken.known, taken.fresh):
        lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
        assert len(lon) and lon.min() >= -10 and lon.max() <= 30 and lat.min() >= 36 and lat.max() <= 70
    assert routing.box_of(None) == (-180, -90, 180, 90)
    for wrong in ("1,2,3", "5,0,4,9", "a,b,c,d", "-200,0,0,1"):
        with pytest.raises(BadInput, match="min_lon,min_lat"):
            routing.box_of(wrong)
    with pytest.raises(BadInput, match="no posts in"):
        real(tmp_path / "posts.parquet", 800, 2, (-179.0, -89.9, -178.0, -89.8))


@pytest.mark.parametrize("bad", ["", "1,x", "0", "4;5"])
def test_lists_of_numbers_have_commas(bad: str) -> None:
    assert numbers("workers", "1,4") == [1, 4] and numbers("workers", 3) == [3]
    with pytest.raises(BadInput, match="whole numbers"):
        numbers("workers", bad)


def test_unknown_sets_and_routers_are_refused() -> None:
    with pytest.raises(BadInput, match="--sets q9: there is q1"):
        routing.run(quiet, sets="q1,q9")
    with pytest.raises(BadInput, match="--routers best: there is grid"):
        routing.run(quiet, routers="best")


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_ranges_are_expanded_in_order() -> None:
    of, values = expand(np.array([3, 7, 5]), np.array([5, 7, 8]))
    assert of.tolist() == [0, 0, 2, 2, 2] and values.tolist() == [3, 4, 5, 6, 7]


def test_each_column_is_set_against_the_best_of_those_that_compare() -> None:
    values = np.array([[2.0, np.nan, 0.0, 5.0], [4.0, np.nan, 3.0, 6.0], [1.0, 7.0, 1.5, 4.0]])
    among = np.array([[True] * 4, [True, True, True, False], [False, False, False, True]])
    best = to_best(values, among)
    assert best[:, 0].tolist() == [1.0, 2.0, 0.5] and np.isnan(best[:, 1]).all()
    assert np.isnan(best[0, 2]) and best[1:, 2].tolist() == [1.0, 0.5] and best[:, 3].tolist() == [1.25, 1.5, 1.0]


def test_a_plot_has_a_panel_for_each_figure_and_grey_where_one_does_not_apply(tmp_path: Path) -> None:
    """Two routers on two sets; the second has no standing queries."""
    row: list[Any] = [8, 5.0, 2.0, 1.0, 1.0, 1.5, 3.0, 1.0, 1.0, 0.0, 9.0, 9.0, 1.0, 0.1]
    worse: list[Any] = [8, 500.0, 90.0, 1.0, None, 4.0, 90.0, 8.0, 1.0, 0.0, 9.0, 9.0, 1.0, 0.1]
    bare = [
        None if name in ("indexed_max_to_mean", "load_us") else value for name, value in zip(COLUMNS, row, strict=True)
    ]
    shares = []
    for number, figures in enumerate(({"q1": {"qt": row, "kdt": worse}}, {"q1": {"qt": bare, "kdt": bare}})):
        png = tmp_path / f"{number}.png"
        draw(png, figures, list(COLUMNS), 64)
        pixels = imread(png)[..., :3]
        assert pixels.shape[0] > 300 and pixels.shape[1] > 500
        dark = (pixels[..., 0] > 0.3) & (pixels[..., 1] < 0.15) & (pixels[..., 2] < 0.25)
        grey = (np.abs(pixels - 0xEE / 255) < 0.002).all(axis=2)
        shares.append((dark.mean(), grey.mean()))
    assert shares[0][0] > 2 * shares[1][0] and shares[0][1] < 0.01 < shares[1][1]


def test_numbers_of_a_plot_are_short() -> None:
    assert [short(value) for value in (0.5, 12.34, 123.4, 9_998.0, 54_321.0)] == ["0.50", "12.3", "123", "9998", "54k"]


def test_black_shows_on_pale_and_white_on_dark() -> None:
    assert readable((1.0, 1.0, 0.8, 1.0)) < readable((0.5, 0.0, 0.15, 1.0))


def test_a_picture_that_cannot_be_written_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"):
        draw(tmp_path / "no folder" / "x.png", {"q1": {"qt": [1.0] * len(COLUMNS)}}, list(COLUMNS), 64)
