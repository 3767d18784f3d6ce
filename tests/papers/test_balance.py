"""The benchmark of balancing at a tiny size."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from nearcast.cli.bench_command import print_figures
from nearcast.common.errors import BadInput
from nearcast_papers.benchmarks import bench_balance as balance
from nearcast_papers.benchmarks.balance_plot import draw
from nearcast_papers.published.page import TABLES
from nearcast_papers.published.pictures import draw_balance
from tests.papers.saving import saved_and_read


@pytest.mark.slow
def test_every_strategy_has_its_figures(tmp_path: Path) -> None:
    sizes = {"subscriptions": 300, "batch_posts": 400, "batches": 9, "workers": 2, "ratio": 1.05}
    done = balance.run(lambda text: None, cases="scale", factors="0.5", **sizes)
    figures = done["figures"]["scale 0.5"]
    assert figures.keys() == {"router", "fresh", "off", "shift"}
    assert figures["off"]["adjustments"] == figures["off"]["queries_moved"] == 0
    assert figures["shift"]["adjustments"] > 0
    assert figures["shift"]["uneven_after"] < figures["off"]["uneven_after"]
    shift = figures["shift"]
    assert shift["within_5"]["target"] == "at least 0.85"
    assert len(shift["uneven"]) == sizes["batches"] and len(shift["adjusted"]) == shift["adjustments"]
    saved = saved_and_read(done, tmp_path)
    assert TABLES["plans"](saved)[2].startswith("| places drawn together by 0.5, A-Grid | off |")
    draw_balance(tmp_path / "again.png", saved)
    assert (tmp_path / "again.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_first_five_adjustments_led_to_is_told_apart_from_what_came_before_and_after() -> None:
    """
    batch     0   1   2 | 3   4   5   6   7   8   9
    rate     10  10  10 | 2   2   6   6   9   9   1    adjusted after 4 and 6
    """
    rates = [10.0, 10, 10, 2, 2, 6, 6, 9, 9, 1]
    assert balance.came_to(rates, [4, 6], 10.0) == (0.9, 2)
    assert balance.came_to(rates, [4], 10.0) == (0.6, None)
    assert balance.came_to(rates, [1, 4], 5.0) == (1.2, 1)  # what was done before the disturbance does not count
    assert balance.came_to(rates, [], 10.0) == (0.75, None)
    assert balance.came_to([1.0] * 9 + [10.0] * 9, [3, 4, 5, 6, 7, 8], 10.0) == (0.1, None)  # it took six


def test_a_case_for_each_factor_and_mistakes_in_one_line() -> None:
    assert list(balance.chosen(["posts", "scale"], "0.4,0.7")) == [
        ("posts", "posts", 1.0), ("scale 0.4", "scale", 0.4), ("scale 0.7", "scale", 0.7),
    ]  # fmt: skip
    for wrong in ({"cases": "posts,rain"}, {"cases": "scale", "factors": "half"}, {"batches": 5}):
        with pytest.raises(BadInput) as told:
            balance.run(lambda text: None, **wrong)
        assert "\n" not in str(told.value)


def test_figures_are_printed_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """A bench tells how many adjustments there were; `status` tells each under the same name."""
    print_figures("balance", "of some plans", {"figures": {"q3": {"off": {"adjustments": 3, "needed": None}}}})
    assert "figures.q3.off.adjustments" in capsys.readouterr().out


def coloured(path: Path, figures: dict[str, dict[str, object]]) -> float:
    """The share of a plot that is neither white, grey nor black."""
    draw(path, figures, calm=3)
    pixels = imread(path)[..., :3]
    assert pixels.shape[0] > 200 and pixels.shape[1] > 400
    return float((np.ptp(pixels, axis=2) > 0.2).mean())


def test_a_plot_has_a_line_for_each_plan_and_marks_where_it_adjusted(tmp_path: Path) -> None:
    """Each further line, and each mark on one, shows as more colour; 1, 2, 3 and 4 cases all find their place."""
    lines = {"uneven": [1.1, 1.2, 1.1, 3.0, 2.8, 1.5, 1.2], "adjusted": []}
    flat = {"uneven": [1.0] * 7, "adjusted": []}
    fresh = {"router": "qt", "fresh": {"uneven": 1.3}}
    none = coloured(tmp_path / "0.png", {"posts": {**fresh}})
    one = coloured(tmp_path / "1.png", {"posts": {**fresh, "off": lines}})
    two = coloured(tmp_path / "2.png", {"posts": {**fresh, "off": lines, "pm": {**flat, "uneven": [2.0] * 7}}})
    marked = coloured(tmp_path / "3.png", {"posts": {**fresh, "off": {**lines, "adjusted": [1, 3, 5]}}})
    assert none < 0.001 < one < two and one < marked
    for count in (2, 3, 4):
        assert coloured(tmp_path / "many.png", {f"case{n}": {**fresh, "off": lines} for n in range(count)}) > 0.001
