"""`nearcast plan`: the partitions of a state as a picture. No Spark."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nearcast.bench.canvas import HIGH, WHITE, letters, readable
from nearcast.cli.plan import DOTS, LINE, MARGIN, draw, summary
from nearcast.pipeline.batch import begin, run_batch
from nearcast.pipeline.settings import Settings
from nearcast.routing.partition import BY_QUERY, SPACE, Partition
from nearcast.state.directory import StateDirectory
from tests.cli.conftest import Said
from tests.reader.small_state import ops, posts

Cli = Callable[..., Said]
TOP = 2 * MARGIN + 2 * HIGH


def pixels(path: Path) -> np.ndarray:
    """A PNG as an array, read by the format's own description."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + body)
        parts[kind] = body
        at += 12 + size
    width, height, depth, colours = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (depth, colours) == (8, 2)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def two_halves(load: tuple[float, float, float]) -> Partition:
    """West: space. East: two leaves by text."""
    return Partition(
        "made", (-10.0, 0.0, 20.0, 10.0), 2, np.array([0, 1, 0, 1], np.int32), np.array([SPACE, BY_QUERY], np.uint8),
        np.array([0, 1, 3], np.int32), np.array(load), np.array([2, 0, 1], np.int32), 3,
    )  # fmt: skip


def area(picture: np.ndarray) -> np.ndarray:
    """The map alone."""
    wide = picture.shape[1] - 2 * MARGIN
    return picture[TOP : TOP + wide // 2, MARGIN : MARGIN + wide]


def shows(picture: np.ndarray, words: str, size: int) -> bool:
    """Whether words stand somewhere, in black or in white."""
    mask = letters(words, size)
    for ink in ((20, 20, 20), WHITE):
        inked = (picture == np.array(ink)).all(axis=2)
        windows = np.lib.stride_tricks.sliding_window_view(inked, mask.shape)
        if (windows == mask).all(axis=(2, 3)).any():
            return True
    return False


def test_heavier_nodes_are_darker_and_only_textual_ones_are_hatched() -> None:
    nothing = np.empty(0)
    halves = np.array_split(area(draw(two_halves((0.1, 0.5, 0.4)), nothing, nothing, 400).pixels), 2, axis=1)
    west, east = (np.unique(half.reshape(-1, 3), axis=0, return_counts=True) for half in halves)
    plain, heavy = (colours[counts.argmax()].astype(int) for colours, counts in (west, east))
    assert plain.sum() > heavy.sum() and readable(heavy) == WHITE
    kinds = [len(colours) for colours, _ in (west, east)]
    assert kinds == [3, 4], "area, line and number; and stripes"
    assert east[1].max() / east[1].sum() < 0.95


def test_owners_are_written_where_there_is_room() -> None:
    picture = area(draw(two_halves((1.0, 1.0, 1.0)), np.empty(0), np.empty(0), 400).pixels)
    west, east = np.array_split(picture, 2, axis=1)
    assert shows(west, "2", 2) and shows(east, "0 1", 2) and not shows(west, "0 1", 2)


def test_posts_are_dots_where_they_lie_and_those_outside_lie_on_the_border() -> None:
    lon, lat = np.array([-5.0, 99.0]), np.array([2.5, -3.0])
    picture = area(draw(two_halves((1.0, 0.0, 0.0)), lon, lat, 400).pixels)
    dots = np.argwhere((picture == np.array(DOTS[1])).all(axis=2))
    high, wide = picture.shape[:2]
    assert dots.tolist() == [[high - 1 - high // 4, wide // 4]], "the other is under the frame"
    assert (picture[-1] == np.array(LINE)).all()


def test_without_a_load_everything_is_pale() -> None:
    picture = area(draw(two_halves((0.0, 0.0, 0.0)), np.empty(0), np.empty(0), 300).pixels)
    assert np.isfinite(picture).all() and picture.mean() > 200


@pytest.mark.parametrize(("name", "size"), [("one cell", 1), ("more cells than pixels", 1024)])
def test_any_number_of_cells_fits(name: str, size: int) -> None:
    count = size * size
    numbers = np.arange(count + 1, dtype=np.int32)
    made = Partition(name, (0.0, 0.0, 1.0, 50.0), size, numbers[:-1], np.zeros(count, np.uint8), numbers,
                     np.ones(count), np.zeros(count, np.int32), 1)  # fmt: skip
    height, width = draw(made, np.zeros(1), np.zeros(1), 300).pixels.shape[:2]
    assert width == 300 and 300 < height < 500
    assert summary(made).endswith("1 worker")


def make_state(root: Path, router: str) -> Path:
    state, settings = StateDirectory(root), Settings(workers=3, router=router)
    sample = posts((1, 0, "flood in the subway", {}), (2, 1, "coffee", {}))
    begin(state, settings, sample)
    run_batch(state, settings, ops=ops({"op": "subscribe", "id": 1, "sql": "SELECT * FROM stream"}))
    run_batch(state, settings, posts=[sample])
    return root


@pytest.mark.parametrize(("router", "leaves"), [("grid", "4,096 leaves"), ("everyone", "64 leaves in 1 node, 1 cut")])
def test_a_plan_is_written_as_wide_as_asked(nearcast: Cli, tmp_path: Path, router: str, leaves: str) -> None:
    state, png = make_state(tmp_path / "state", router), tmp_path / "plan.png"
    said = nearcast("plan", "--state", state, "--png", png, "--width", 640)
    assert said.code == 0, said.err
    assert f"router {router} · {leaves}" in " ".join(said.err.split())
    picture = pixels(png)
    assert picture.shape[1] == 640 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 3


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
