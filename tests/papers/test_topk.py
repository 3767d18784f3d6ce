"""`bench topk`, at a size that says nothing about speed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nearcast.common.errors import BadInput
from nearcast.kinds.relevance.skyband_policy import CostBased, Policy
from nearcast_papers.baselines.buffer_policies import Kmax, PlainSkyband
from nearcast_papers.benchmarks import bench_topk as topk
from nearcast_papers.benchmarks.topk_data import TopkWorld, statistics
from nearcast_papers.benchmarks.topk_stream import MINUTE, BufferedStream, SlidingWindow, TopkSetting, drawn, measure
from nearcast_papers.published.figure_lists import figure_list
from nearcast_papers.published.page import TABLES
from nearcast_papers.published.pictures import draw_topk
from tests.papers.saving import saved_and_read

SMALL: dict[str, Any] = {
    "subscribers": 80, "small": 40, "window": 400, "posts": 60, "batch": 25, "single": 5, "k": 5, "ks": "3,5",
    "times": "1,2", "groups": "5,10", "kmax": "5,10", "ratio": "0.9,1.0", "workers": "2,4",
}  # fmt: skip


def quiet(text: str) -> None:
    """Progress that nobody watches."""


@pytest.mark.slow
def test_every_experiment_has_figures_and_a_panel(tmp_path: Path) -> None:
    parts = [name for name in topk.PARTS if name != "pipeline"]
    done = topk.run(quiet, **SMALL, parts=",".join(parts), png=str(tmp_path / "p.png"), folder=str(tmp_path))
    json.dumps(done)
    figures = done["figures"]
    assert list(figures) == parts
    assert {figures["dissemination"][name]["pairs_a_post"] for name in ("igpt", "ipt", "ciq")} == {
        figures["dissemination"]["igpt"]["pairs_a_post"]
    }
    assert figures["dissemination"]["batch_times_igpt"]["target"] == "at least 10"
    assert figures["reevaluation"]["cskyband"]["answers_checked"] > 50
    assert list(figures["words"]) == ["1", "2", "3", "4", "5", "zipf"]
    assert list(figures["k"]) == list(figures["time"]) == ["3", "5"]
    assert list(figures["subscribers"]) == ["40", "80"] and list(figures["window"]) == ["400", "800"]
    assert figures["kmax"]["10"]["buffer"] > figures["kmax"]["5"]["buffer"] - 1e-9
    assert figures["distribution"]["hashing 4"]["messages"] == 4.0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]
    saved = saved_and_read(done, tmp_path)
    draw_topk(tmp_path / "again.png", saved)
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")
    assert all(len(TABLES[which](saved)) > 3 for which in ("indexes", "buffers", "k", "tuned"))
    assert len(figure_list(saved)) == 2 + 3


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("policy", [CostBased(), Kmax(8), PlainSkyband(0.9)])
def test_a_stream_has_the_answers_of_its_window_after_every_batch(policy: Policy, timed: bool) -> None:
    stream = BufferedStream(TopkSetting.make(60, SlidingWindow(150, timed), 200, k=4), policy)
    for _ in range(8):
        stream.batch(25)
        assert stream.check() == 60


def test_a_wrong_answer_does_not_pass_the_check() -> None:
    stream = BufferedStream(TopkSetting.make(30, SlidingWindow(100), 10, k=3), Kmax(6))
    stream.buffers.size[:] = np.maximum(stream.buffers.size - stream.buffers.k, 0)
    with pytest.raises(AssertionError, match="is not that of the window"):
        stream.check()


def test_a_window_of_time_has_more_posts_at_some_times_than_at_others() -> None:
    window = SlidingWindow(300, timed=True)
    ts = window.times(2_000)
    held = [count - window.bound(ts, count) for count in range(600, 2_000, 10)]
    assert np.all(np.diff(ts) > 0) and min(held) < 300 < max(held)
    assert SlidingWindow(300).bound(SlidingWindow(300).times(1_000), 1_000) == 700
    assert SlidingWindow(300).times(2)[1] == 2 * MINUTE


def test_words_of_zipf_are_mostly_the_frequent_ones() -> None:
    world = TopkWorld(1, vocabulary=1_000)
    idf = statistics(world.texts(2_000, 0))
    texts = drawn(world.texts(500, 1), idf, (1, 3), 1)
    assert set(np.diff(texts.offsets)) == {1, 2, 3}
    often = np.argsort(-idf.count, kind="stable")
    assert np.mean(texts.terms == idf.term[often[0]]) == pytest.approx(1 / 7.5, abs=0.05)


def test_figures_a_post_add_up() -> None:
    found, _ = measure(TopkSetting.make(50, SlidingWindow(200), 50, k=5), CostBased(), 20)
    assert found["us_a_post"] == pytest.approx(found["arrival_us"] + found["expiry_us"], rel=0.01)
    assert found["pairs_a_post"] > 0 and 0 < found["buffer"] <= 1.8 * 5 + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": "wrods"}, "no 'wrods', there is dissemination"),
        ({"ks": "10,x"}, "--ks 10,x: whole numbers from 1 on"),
        ({"ratio": "1.5"}, "--ratio 1.5: numbers above 0 and up to 1"),
    ],
)
def test_a_mistake_in_an_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        topk.run(quiet, **{"parts": "k,ratio", **options})
