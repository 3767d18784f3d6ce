"""`nearcast plan`: the partitions of a state as a picture. No Spark."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import PathPatch

from nearcast.cli.partition_map import ABOVE, BELOW, LEFT, RIGHT, WIDE, borders, degree, draw, paint, runs, spans
from nearcast.cli.plan_command import summary
from nearcast.engine.begin import begin
from nearcast.engine.local import run_locally
from nearcast.engine.settings import Settings
from nearcast.partitioning.partition import BY_QUERY, SPACE, Partition
from nearcast.storage.directory import StateDirectory
from tests.cli.conftest import Said
from tests.reader.small_state import ops, posts

Cli = Callable[..., Said]
NOTHING = np.empty(0)


def pixels(path: Path) -> np.ndarray:
    """A PNG as rows from the top of columns of red, green and blue, from 0 to 255."""
    return np.rint(imread(path)[..., :3] * 255).astype(int)


def two_halves(load: tuple[float, float, float]) -> Partition:
    """West: space. East: two leaves by text."""
    return Partition(
        "made", (-10.0, 0.0, 20.0, 10.0), 2, np.array([0, 1, 0, 1], np.int32), np.array([SPACE, BY_QUERY], np.uint8),
        np.array([0, 1, 3], np.int32), np.array(load), np.array([2, 0, 1], np.int32), 3,
    )  # fmt: skip


def squares(name: str, size: int, extent: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)) -> Partition:
    """Each cell a node."""
    count = size * size
    numbers = np.arange(count + 1, dtype=np.int32)
    return Partition(name, extent, size, numbers[:-1], np.zeros(count, np.uint8), numbers,
                     np.ones(count), np.zeros(count, np.int32), 1)  # fmt: skip


def quarters(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The middle of the north-west quarter of the map and that of the north-east: no border, no number."""
    picture = pixels(path)
    inch = picture.shape[1] / WIDE
    across = (WIDE - LEFT - RIGHT) * inch
    down = picture.shape[0] - (BELOW + ABOVE) * inch
    rows = slice(int(ABOVE * inch + 0.1 * down), int(ABOVE * inch + 0.35 * down))
    west, east = (
        slice(int(LEFT * inch + a * across), int(LEFT * inch + b * across)) for a, b in ((0.1, 0.4), (0.6, 0.9))
    )
    return picture[rows, west].reshape(-1, 3), picture[rows, east].reshape(-1, 3)


def test_heavier_nodes_are_darker_and_only_textual_ones_are_hatched(tmp_path: Path) -> None:
    draw(tmp_path / "x.png", two_halves((0.1, 0.5, 0.4)), NOTHING, NOTHING, 500, "")
    west, east = quarters(tmp_path / "x.png")
    assert len(np.unique(west, axis=0)) == 1, "one colour"
    colours, counts = np.unique(east, axis=0, return_counts=True)
    assert len(colours) > 1 and counts.max() < 0.95 * len(east), "stripes"
    assert colours[counts.argmax()].sum() < west[0].sum() - 50


def test_without_a_load_everything_is_pale(tmp_path: Path) -> None:
    draw(tmp_path / "x.png", two_halves((0.0, 0.0, 0.0)), NOTHING, NOTHING, 400, "")
    west, east = quarters(tmp_path / "x.png")
    assert west.mean() > 200 and east.mean() > 180


def test_owners_are_written_in_the_middle_where_there_is_room() -> None:
    axes = Figure().add_subplot()
    paint(axes, two_halves((1.0, 1.0, 1.0)), NOTHING, NOTHING, (6.0, 3.0))
    assert [(text.get_text(), *text.get_position()) for text in axes.texts] == [("2", -5.0, 5.0), ("0–1", 5.0, 5.0)]
    narrow = Figure().add_subplot()
    paint(narrow, two_halves((1.0, 1.0, 1.0)), NOTHING, NOTHING, (0.4, 3.0))
    assert [text.get_text() for text in narrow.texts] == ["2"], "14 points have no room for three letters"


def test_no_owner_is_written_over_another_node() -> None:
    """All but the north-east, which begins in the middle."""
    node = np.zeros((8, 8), np.int32)
    node[4:, 4:] = 1
    made = Partition("corner", (0.0, 0.0, 8.0, 8.0), 8, node.reshape(-1), np.zeros(2, np.uint8),
                     np.arange(3, dtype=np.int32), np.ones(2), np.array([4, 5], np.int32), 6)  # fmt: skip
    axes = Figure().add_subplot()
    paint(axes, made, NOTHING, NOTHING, (6.0, 6.0))
    assert [text.get_text() for text in axes.texts] == ["5"]


def test_posts_are_dots_where_they_lie_and_those_outside_lie_on_the_border() -> None:
    axes = Figure().add_subplot()
    paint(axes, two_halves((1.0, 0.0, 0.0)), np.array([-5.0, 99.0]), np.array([2.5, -3.0]), (6.0, 3.0))
    (dots,) = (each for each in axes.collections if isinstance(each, PathCollection))
    assert np.asarray(dots.get_offsets()).tolist() == [[-5.0, 2.5], [10.0, 0.0]]
    assert axes.get_xlim() == (-10.0, 10.0) and axes.get_ylim() == (0.0, 10.0)


def test_the_hatched_area_is_that_of_the_textual_nodes() -> None:
    axes = Figure().add_subplot()
    paint(axes, two_halves((1.0, 1.0, 1.0)), NOTHING, NOTHING, (6.0, 3.0))
    (patch,) = (each for each in axes.patches if isinstance(each, PathPatch))
    inside = patch.get_path().contains_points([[0.1, 0.1], [9.9, 9.9], [5.0, 2.0], [-0.1, 5.0], [-9.0, 1.0]])
    assert inside.tolist() == [True, True, True, False, False]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.randoms(use_true_random=False))
def test_borders_run_between_cells_of_different_nodes_and_nowhere_else(size: int, nodes: int, random) -> None:
    node = np.array([random.randrange(nodes) for _ in range(size * size)], np.int32).reshape(size, size)
    found = []
    for (x0, y0), (x1, y1) in (
        borders(node, squares("", size, (0.0, 0.0, float(size), float(size)))).round().astype(int)
    ):
        assert (x0 == x1) != (y0 == y1)
        found += [("|", x0, y) for y in range(y0, y1)] if x0 == x1 else [("-", x, y0) for x in range(x0, x1)]
    right = [("|", x, y) for y in range(size) for x in range(1, size) if node[y, x] != node[y, x - 1]]
    right += [("-", x, y) for y in range(1, size) for x in range(size) if node[y, x] != node[y - 1, x]]
    assert sorted(found) == sorted(right)


def test_a_straight_border_is_one_line() -> None:
    assert len(borders(np.arange(16).reshape(4, 4), squares("", 4))) == 6
    row, start, end = runs(np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool))
    assert list(zip(row.tolist(), start.tolist(), end.tolist(), strict=True)) == [(0, 0, 2), (0, 3, 4), (2, 0, 4)]


@pytest.mark.parametrize(
    ("numbers", "shown"), [([], ""), ([3], "3"), ([0, 1], "0–1"), ([0, 1, 2, 5, 7, 8], "0–2 5 7–8"), ([1, 3], "1 3")]
)
def test_neighbouring_workers_are_drawn_together(numbers: list[int], shown: str) -> None:
    assert spans(numbers) == shown


def test_degrees_say_their_side() -> None:
    shown = [degree(value, "W E") for value in (-12.5, -1e-12, 0.0, 150.0)]
    assert shown == ["12.5°W", "0°", "0°", "150°E"]


@pytest.mark.parametrize(("name", "size"), [("one cell", 1), ("more cells than pixels", 1024)])
def test_any_number_of_cells_fits(name: str, size: int, tmp_path: Path) -> None:
    made = squares(name, size, (0.0, 0.0, 1.0, 50.0))
    draw(tmp_path / "x.png", made, np.zeros(1), np.zeros(1), 300, name)
    height, width = pixels(tmp_path / "x.png").shape[:2]
    assert width == 300 and 300 < height < 500
    assert summary(made).endswith("1 worker")


def make_state(root: Path, router: str) -> Path:
    state, settings = StateDirectory(root), Settings(workers=3, router=router)
    sample = posts((1, 0, "flood in the subway", {}), (2, 1, "coffee", {}))
    begin(state, settings, sample)
    run_locally(state, settings, ops=ops({"op": "subscribe", "id": 1, "sql": "SELECT * FROM stream"}))
    run_locally(state, settings, posts=[sample])
    return root


@pytest.mark.parametrize(("router", "leaves"), [("grid", "4,096 leaves"), ("everyone", "64 leaves in 1 node, 1 cut")])
def test_a_plan_is_written_as_wide_as_asked(nearcast: Cli, tmp_path: Path, router: str, leaves: str) -> None:
    state, png = make_state(tmp_path / "state", router), tmp_path / "plan"
    said = nearcast("plan", "--state", state, "--png", png, "--width", 641)
    assert said.code == 0, said.err
    assert f"router {router} · {leaves}" in " ".join(said.err.split())
    picture = pixels(png)
    assert picture.shape[1] == 641 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 30


def test_what_cannot_be_drawn_is_one_clear_message(nearcast: Cli, small_state: Path, tmp_path: Path) -> None:
    StateDirectory(tmp_path / "new").create({})
    png = tmp_path / "x.png"
    for arguments, message in [
        (("--state", tmp_path / "none", "--png", png), "does not exist"),
        (("--state", tmp_path / "new", "--png", png), "no routing table yet"),
        (("--state", small_state, "--png", png, "--width", 5), "between 200 and 10,000"),
        (("--state", small_state, "--png", tmp_path / "no" / "x.png"), "cannot be written"),
    ]:
        said = nearcast("plan", *arguments)
        assert said.code == 2 and message in " ".join(said.err.split()) and not png.exists()


def test_only_drawing_imports_matplotlib(small_state: Path) -> None:
    code = (
        "import sys, nearcast.cli.plan_command, nearcast.cli.partition_map, nearcast_papers.benchmarks.bench_routing\n"
        "from nearcast.cli import main\n"
        f"try: main(['search', '--state', {str(small_state)!r}, 'SELECT * FROM stream'])\n"
        "except SystemExit as leaving: print(leaving.code or 0, 'matplotlib' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["0 False"], done.stderr
